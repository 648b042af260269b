"""What the commands leave on a user's screen: no warning that is not the user's.

Each runs in a process of its own, as users run them. On standard error there are lines
of progress alone; what is printed last is a command that runs.
"""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

import tfeff
from tests.checks.pages import REPOSITORY
from tests.subjects.sentences import DOCUMENTS
from tfeff.training import distribution

PROGRESS = re.compile(r"step [\d,]+/[\d,]+ .*|Tokenizing: .*")
SMALL = (
    "--corpus=text.txt --vocabulary_size=60 --sequence_length=24 --batch_size=4 "
    "--steps=2 --eval_every=2 --override=hidden_dim=16 --override=intermediate_dim=16"
)
# In their order: later ones start from earlier ones. The folder `glue` is the one that
# the printed command names.
COMMANDS = {
    "pretrain": f"pretrain --run_dir=mlm {SMALL}",
    "evaluate": "evaluate --run_dir=mlm --corpus=text.txt --pseudo_perplexity",
    "finetune": "finetune --run_dir=sst --task=SST-2 --data=glue --pretrained=mlm "
    "--steps=2 --eval_every=1 --lora_rank=2",
    "answer": "answer --run_dir=squad --pretrained=mlm --train=squad.json "
    "--dev=squad.json --sequence_length=24 --stride=8 --steps=2 --eval_every=1",
    "embed": "embed --run_dir=embedded --pretrained=mlm --data=glue --steps=2 "
    "--examples=sentences.txt --dropout=0.1 --batch_sizes=4 --eval_every=1",
    "words": "finetune --run_dir=words --task=WikiANN --data=ner --pretrained=mlm "
    "--steps=2 --eval_every=1 --batch_sizes=2",
    "distill": "distill --run_dir=small --teacher=mlm --student=bert_tiny "
    "--override=hidden_dim=16 --override=intermediate_dim=16 --override=num_layers=1 "
    "--corpus=text.txt --sequence_length=24 --batch_size=4 --steps=2",
    "distill on a task": "distill --stage=task --run_dir=small-sst --teacher=sst "
    "--student=small --task=SST-2 --data=glue --steps=2 --prediction_steps=2 "
    "--sequence_length=24 --batch_size=4",
    "stack": f"stack --run_dir=stacked --num_layers=2 {SMALL} --eval_every=1",
    "convert": "convert --to=huggingface plain for_transformers",
    "convert back": "convert for_transformers plain_again",
    **{
        name: f"pretrain --run_dir={name} --preset=bert_tiny --objective={name} {SMALL}"
        for name in ("replaced_token", "permutation_lm", "sentence_order")
    },
    "plain": f"pretrain --run_dir=plain --preset=bert_tiny {SMALL}",
    "report": "report --runs=sst",
    "presets": "presets",
}
ORDER = [
    *("plain", "pretrain"),
    *(n for n in COMMANDS if n not in ("plain", "pretrain")),
]
NEXT = {"pretrain", "finetune", "words", "answer", "distill", "stack", "convert back"}


def run(command, folder):
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, "-m", "tfeff", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def unwanted(result):
    """Lines of standard error that are not of progress."""
    assert result.returncode == 0, result.stderr
    return [x for x in result.stderr.splitlines() if not PROGRESS.fullmatch(x)]


def write_data(folder):
    (folder / "text.txt").write_text("\n\n".join(DOCUMENTS * 4), encoding="utf-8")
    (folder / "glue" / "SST-2").mkdir(parents=True)
    rows = [f"{text}\t{i % 2}" for i, text in enumerate(DOCUMENTS[:6])]
    for split in ("train", "dev"):
        table = folder / "glue" / "SST-2" / f"{split}.tsv"
        table.write_text("\n".join(["sentence\tlabel", *rows]), encoding="utf-8")
    (folder / "sentences.txt").write_text("\n".join(DOCUMENTS), encoding="utf-8")
    (folder / "glue" / "STS-B").mkdir()
    (folder / "glue" / "STS-B" / "dev.tsv").write_text(
        "sentence1\tsentence2\tscore\n"
        + "\n".join(f"{text}\ta cat\t{i}.5" for i, text in enumerate(DOCUMENTS[:4]))
    )
    (folder / "ner").mkdir()
    for split in ("train", "dev"):
        (folder / "ner" / f"{split}.txt").write_text("Nobody B-PER\nwatched O\n\n" * 4)
    questions = [
        {
            "id": str(i),
            "question": "Who watched?",
            "answers": [{"text": "The small cat", "answer_start": 0}],
        }
        for i in range(4)
    ]
    paragraphs = [{"context": DOCUMENTS[0], "qas": questions}]
    data = {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}
    (folder / "squad.json").write_text(json.dumps(data), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data, and with what the commands so far have made."""
    folder = tmp_path_factory.mktemp("screen")
    write_data(folder)
    return folder


@pytest.mark.slow
def test_pretraining_leaves_progress_alone(tmp_path):
    write_data(tmp_path)
    result = run(shlex.split(COMMANDS["plain"]), tmp_path)
    assert unwanted(result) == []
    assert result.stdout.splitlines()[-1] == (
        "  tfeff finetune --pretrained=plain --task=SST-2 --data=glue "
        "--run_dir=plain-sst2"
    )


@pytest.mark.slow
def test_commands_leave_progress_alone_and_say_what_is_next(folder):
    found, printed = {}, {}
    for name in ORDER:
        result = run(shlex.split(COMMANDS[name]), folder)
        found[name], printed[name] = unwanted(result), result.stdout
        if name in NEXT:
            *_, title, command = result.stdout.splitlines()
            assert title.startswith("next, ") and title.endswith(":")
            program, *arguments = shlex.split(command)
            assert program == "tfeff"
            if arguments[0] == "report" or name in ("pretrain", "convert back"):
                found[f"after {name}"] = unwanted(run(arguments, folder))
    assert found == dict.fromkeys(found, [])
    metrics = json.loads(printed["evaluate"])
    assert metrics["pseudo_perplexity_per_word"] > metrics["pseudo_perplexity"]
    last = "  transformers.BertModel.from_pretrained('for_transformers')"
    assert printed["convert"].splitlines()[-1] == last


def test_a_gpu_that_tensorflow_does_not_find_is_told(monkeypatch, capsys):
    monkeypatch.setattr(distribution.glob, "glob", lambda _: ["/dev/nvidia0"])
    monkeypatch.setattr(distribution.tf.config, "list_physical_devices", lambda _: [])
    for hidden, count in (("", 0), ("-1", 0), ("0", 1), (None, 1)):
        distribution._tell_of_idle_gpus.cache_clear()
        if hidden is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        tfeff.training.make_strategy()
        tfeff.training.make_strategy()
        told = capsys.readouterr().err
        assert told.count("pip install 'tensorflow[and-cuda]'") == count
    distribution._tell_of_idle_gpus.cache_clear()
    monkeypatch.setattr(distribution.glob, "glob", lambda _: [])
    tfeff.training.make_strategy()
    assert not capsys.readouterr().err


def test_the_level_of_messages_that_a_user_sets_stays(monkeypatch):
    from tfeff.utils import native_messages

    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    for devices, level in ([], "3"), (["/dev/nvidia0"], "2"):
        monkeypatch.setattr(
            native_messages.glob, "glob", lambda _, devices=devices: devices
        )
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
        native_messages.set_log_level()
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
        native_messages.set_log_level()
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == level
