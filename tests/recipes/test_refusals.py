"""Flags that cannot be are named in a line, before a folder is made or text is read."""

import inspect
import json
import re

import pytest

import tfeff
from tfeff.command import main
from tfeff.recipes.fields import fields_of

TEXTS = [f"{i} green bottles hanging on the wall" for i in range(16)]
SIZES = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=16)
OVERRIDES = [f"--override={name}={size}" for name, size in SIZES.items()]
SMALL = [
    *("--steps=4", "--batch_size=4", "--sequence_length=16", "--corpus=text.txt"),
    *("--validation_fraction=0.2", *OVERRIDES),
]
PRETRAIN = [
    *("pretrain", *SMALL, "--eval_every=2", "--preset=bert_tiny"),
    "--vocabulary_size=36",
]
STACK = ["stack", *PRETRAIN[1:], "--override=num_layers=2"]
STACK = [flag for flag in STACK if "num_layers" not in flag] + ["--num_layers=2"]
DISTILL = ["distill", *SMALL, "--teacher=preset", "--student=bert_tiny"]
PAIRS = "--objective=sentence_order"
TUNE = ["--pretrained=preset", "--steps=2", "--eval_every=1"]
FINETUNE = ["finetune", *TUNE, "--task=SST-2", "--data=glue", "--batch_sizes=4"]
ANSWER = ["answer", *TUNE, "--task=squad1", "--train=squad.json", "--dev=squad.json"]
ANSWER += ["--sequence_length=24", "--stride=4"]
TASK = ["--stage=task", "--task=SST-2", "--data=glue", "--teacher=preset"]
TASK = ["distill", *TASK, "--student=preset", "--steps=2", "--prediction_steps=2"]
EMBED = ["embed", "--pretrained=preset", "--data=glue"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a text, and of a preset that has read it."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "text.txt").write_text("\n\n".join(TEXTS))
    (folder / "few").mkdir()
    (folder / "few" / "train.txt").write_text("the O\n\ncat B-PER\n")
    pairs = ["anchor\tpositive", *map("{}\ta".format, TEXTS)]
    (folder / "pairs.tsv").write_text("\n".join(pairs))
    (folder / "one.txt").write_text(f"{TEXTS[0]}\n{TEXTS[0]}\n")
    write_questions(folder / "squad.json", ["the wall", "7"])
    write_questions(folder / "half.json", ["the wall", None])
    rows = [f"{text}\t{i % 2}" for i, text in enumerate(TEXTS)]
    ids = ["7", *range(1, 16)]
    for task, files in {
        "SST-2": {
            "train": ["sentence\tlabel", *rows],
            "dev": ["sentence\tlabel", *rows],
            "test": ["index\tsentence", *map("{}\t{}".format, ids, TEXTS)],
        },
        "STS-B": {"dev": ["sentence1\tsentence2\tscore", *map("a\t{}".format, rows)]},
    }.items():
        (folder / "glue" / task).mkdir(parents=True)
        for split, lines in files.items():
            path = folder / "glue" / task / f"{split}.tsv"
            path.write_text("\n".join(lines) + "\n")
    sizes = dict(vocabulary_size=36, max_sequence_length=24, **SIZES)
    tfeff.tasks.save_pretrained(
        tfeff.encoders.build("bert_tiny", **sizes),
        tfeff.data.train_tokenizer(TEXTS * 4, 30),
        folder / "preset",
    )
    return folder


def write_questions(path, answers):
    """Questions of the SQuAD format; those of the answer None have none."""
    passage = "7 green bottles hanging on the wall"
    found = [
        [] if text is None else [{"text": text, "answer_start": passage.index(text)}]
        for text in answers
    ]
    questions = [
        {"id": str(i), "question": "on what", "answers": one}
        for i, one in enumerate(found)
    ]
    data = [{"paragraphs": [{"context": passage, "qas": questions}]}]
    path.write_text(json.dumps({"version": "1.1", "data": data}))


def refusal(command, flags, capsys):
    """The line of an error, which names a flag, or an argument that `override` has."""
    # A list that is given twice would be told of in a line of its own.
    lists = {flag.partition("=")[0] for flag in flags} & {"--corpus"}
    command = [x for x in command if x.partition("=")[0] not in lists]
    status = main.main([*command, "--run_dir=run", *flags])
    error = capsys.readouterr().err
    assert status in (1, 2) and error.startswith("error: ")
    assert len(error.splitlines()) == 1
    fields = fields_of(main._load(main.COMMANDS[command[0]].settings))
    known = {field.name for field in fields}
    known |= set(inspect.signature(tfeff.encoders.Encoder).parameters)
    assert re.search(r"`(\w+)`", error)[1] in known
    return error


@pytest.mark.parametrize(
    ("command", "flags", "named"),
    [
        (PRETRAIN, ["--objective=next_sentence", "--cross_documents"], "cross_docum"),
        (PRETRAIN, [PAIRS, "--sequence_length=4"], "sequence_length"),
        (PRETRAIN, ["--steps_per_execution=3"], "steps_per_execution"),
        (PRETRAIN, ["--accumulation_steps=1000000000"], "accumulation_steps"),
        (PRETRAIN, ["--seed=-1"], "seed"),
        (PRETRAIN, ["--override=vocabulary_size=20"], "override"),
        (PRETRAIN, ["--override=max_sequence_length=8"], "override"),
        (PRETRAIN, ["--override=dropout=0.5", "--dropout=0.0"], "override"),
        (PRETRAIN, ["--override=attention_dropout=0", "--attention_dropout=0"], "over"),
        (
            PRETRAIN,
            ["--override=memory_efficient=block", "--memory_efficient=attention"],
            "over",
        ),
        (PRETRAIN, ["--override=dtype=mixed_float16"], "override"),
        (PRETRAIN, ["--override=dtype=banana"], "override"),
        (PRETRAIN, ["--override=name=a b/c"], "override"),
        (PRETRAIN, ["--override=trainable=false"], "override"),
        (PRETRAIN, ["--override=hidden_dim=15"], "num_heads"),
        *(
            (
                [*PRETRAIN, "--objective=replaced_token"],
                [f"--generator_override={argument}"],
                "generator_override",
            )
            for argument in ("dtype=float16", "vocabulary_size=9", "name=a b/c")
        ),
        (STACK, ["--override=num_layers=8"], "override"),
        *((STACK, [f"--switch_steps={steps}"], "switch_steps") for steps in "0346"),
        (DISTILL, ["--override=vocabulary_size=20"], "override"),
        (DISTILL, ["--override=max_sequence_length=8"], "override"),
        (DISTILL, ["--override=dtype=banana"], "dtype"),
        (DISTILL, ["--override=name=a b/c"], "override"),
        (DISTILL, ["--seed=-1"], "seed"),
        (DISTILL, ["--accumulation_steps=1000000000"], "accumulation_steps"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_settings_are_tried_before_a_folder_is_made(
    folder, monkeypatch, capsys, command, flags, named
):
    monkeypatch.chdir(folder)
    for recipe in ("pretraining", "distilling"):
        monkeypatch.delattr(f"tfeff.recipes.{recipe}.open_run")
    assert f"`{named}" in refusal(command, flags, capsys)
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("command", "flags", "named"),
    [
        (FINETUNE, ["--predict_split=test"], "predict_split"),
        (ANSWER, ["--predict_split=dev", "--test=half.json"], "predict_split"),
        (ANSWER, ["--test=nowhere.json"], "test"),
        (EMBED, ["--save_lora"], "examples"),
        (EMBED, ["--lora_rank=3"], "examples"),
        (EMBED, ["--train_examples=5"], "examples"),
        (EMBED, ["--examples=one.txt"], "examples"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_grid_is_tried_before_its_first_training(
    folder, monkeypatch, capsys, command, flags, named
):
    monkeypatch.chdir(folder)
    monkeypatch.delattr(tfeff.training.Grid, "run")
    assert f"`{named}`" in refusal(command, flags, capsys)
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("command", "flags", "named"),
    [
        *(
            (command, [f"--run_dir={path}"], "run_dir")
            for command in (PRETRAIN, STACK, DISTILL, FINETUNE, ANSWER, EMBED, TASK)
            for path in ("", "text.txt", "glue", "s3:/bucket/run")
        ),
        *(
            (command, [f"--pretrained={path}"], "pretrained")
            for command in (FINETUNE, ANSWER, EMBED, ["pretrain", "--steps=4"])
            for path in ("", "nowhere", "nowhere@3")
        ),
        (FINETUNE, ["--pretrained_steps=7"], "pretrained_steps"),
        *(
            (command, [f"--data={path}"], "data")
            for command in (FINETUNE, EMBED)
            for path in ("", "nowhere")
        ),
        (FINETUNE, ["--predict_split=tset"], "predict_split"),
        (FINETUNE, ["--predict_split=test_new"], "data"),
        (FINETUNE, ["--train_examples=1000"], "train_examples"),
        (FINETUNE, ["--task=WikiANN", "--data=few"], "data"),
        *((command, ["--task=SST2"], "task") for command in (FINETUNE, EMBED)),
        (EMBED, ["--examples=pairs.tsv", "--train_examples=99"], "train_examples"),
        (EMBED, ["--split=tset"], "split"),
        *((ANSWER, [f"--{part}=glue"], part) for part in ("train", "dev")),
        (ANSWER, ["--predict_split=dev", "--test=glue"], "test"),
        (ANSWER, ["--predict_split=tset"], "predict_split"),
        (ANSWER, ["--predict_split=test_new"], "predict_split"),
        (ANSWER, ["--dev=half.json"], "dev"),
        *((ANSWER, [f"--task={task}"], "task") for task in ("sqad", "SST-2")),
        (ANSWER, ["--dev_split=tset"], "dev_split"),
        *(
            (command, [f"--corpus={name}"], "corpus")
            for command in (PRETRAIN, STACK, DISTILL)
            for name in ("", "nowhere/*.txt", "text.txt,", "pairs.tsv")
        ),
        (PRETRAIN, ["--validation=nowhere.txt"], "validation"),
        (PRETRAIN, ["--generator_ratio=0.3", "--objective=replaced_token"], "generat"),
        (PRETRAIN, ["--generator_ratio=1e-3", "--objective=replaced_token"], "generat"),
        (PRETRAIN, ["--validation=text.txt", "--validation_fraction=0.5"], "validatio"),
        (
            PRETRAIN,
            ["--generator_override=banana=1", "--objective=replaced_token"],
            "generator_override",
        ),
        *(
            (command, ["--override=banana=1"], "override")
            for command in (STACK, DISTILL)
        ),
        (DISTILL, ["--teacher=nowhere"], "teacher"),
        (DISTILL, ["--student=preset"], "student"),
        (DISTILL, ["--teacher=nowhere@3"], "teacher"),
        (TASK, ["--teacher=nowhere"], "teacher"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_messages_name_the_flag(folder, monkeypatch, capsys, command, flags, named):
    monkeypatch.chdir(folder)
    monkeypatch.delattr(tfeff.training.Grid, "run")
    assert f"`{named}" in refusal(command, flags, capsys)
    assert not (folder / "run").exists()
