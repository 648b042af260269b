"""The examples tell how they are called, and do what they promise."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

import tfeff
from tests.datasets.files import rows, write
from tests.subjects.sentences import DOCUMENTS, tokenizer

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))
# In place of what the examples set, so that they end in seconds.
SMALL = {"hidden_dim": 16, "intermediate_dim": 16, "dropout": 0.0}
SHORT_TEXT = {
    "max_characters": 60_000,
    "validation_fraction": 0.2,
    "vocabulary_size": 400,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_is_printed_and_nothing_is_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(name, "--help", monkeypatch=monkeypatch)
    assert f"python examples/{name}" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def run(name, *arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(FOLDER / name), run_name="__main__")


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """Runs an example in a folder, with other values of some of its settings."""

    def run_shortened(name, settings, shorter, *arguments):
        make = getattr(tfeff.recipes, settings)
        monkeypatch.setattr(tfeff.recipes, settings, lambda **x: make(**x | shorter))
        monkeypatch.chdir(tmp_path)
        run(name, *arguments, monkeypatch=monkeypatch)
        return capsys.readouterr().out.splitlines()

    return run_shortened


@pytest.fixture
def pretrained(tmp_path):
    """A run with the preset of a very small encoder."""
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        num_layers=1,
        max_sequence_length=48,
        **SMALL,
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "first" / "preset")
    return tmp_path / "first"


def metrics(folder):
    return json.loads((folder / "metrics.json").read_text())


@pytest.mark.slow
def test_pretrain(printed, tmp_path):
    shorter = SHORT_TEXT | {"steps": 4, "override": SMALL | {"num_layers": 1}}
    lines = printed("pretrain.py", "PretrainSettings", shorter, "run")
    *fillings, last = lines[-6:]
    found = [float(re.fullmatch(r".+: (0\.\d{3})", line)[1]) for line in fillings]
    assert found == sorted(found, reverse=True)
    encoder, _ = tfeff.tasks.load_pretrained(tmp_path / "run")
    assert last == f"{encoder.count_params():,} weights, 400 pieces"
    assert encoder.num_layers == 1


@pytest.mark.slow
def test_finetune(printed, pretrained, tmp_path):
    labelled = [(text, str(index % 2)) for index, text in enumerate(DOCUMENTS)]
    for split in ("train", "dev"):
        path = tmp_path / "glue" / "SST-2" / f"{split}.tsv"
        write(path, rows(("sentence", "label"), *labelled))
    shorter = {"sequence_length": 16, "batch_sizes": (4,), "train_examples": 8}
    lines = printed(
        "finetune.py", "FinetuneSettings", shorter, pretrained, "glue", "run"
    )
    scores, *classified = lines[-3:]
    best = metrics(tmp_path / "run")["best"]
    accuracy = best["mean"]["dev_accuracy"]
    assert scores == f"accuracy {accuracy:.4f} with {best['setting']}"
    texts = ("what a joy to watch", "a dull and hopeless film")
    for text, line in zip(texts, classified, strict=True):
        assert re.fullmatch(rf"{text}: \w+, probability [01]\.\d\d", line), line


@pytest.mark.slow
def test_answer(printed, pretrained, tmp_path):
    passage = DOCUMENTS[0]
    questions = [
        {
            "id": f"q{index}",
            "question": f"What was it, {index}?",
            "answers": [{"text": text, "answer_start": passage.index(text)}],
        }
        for index, text in enumerate(("The small cat", "the green house"))
    ]
    data = [{"paragraphs": [{"context": passage, "qas": questions}]}]
    for split in ("train", "dev"):
        path = tmp_path / "squad" / f"{split}-v1.1.json"
        write(path, json.dumps({"version": "1.1", "data": data}))
    shorter = {"sequence_length": 48, "train_examples": 2, "dev_examples": 1}
    lines = printed("answer.py", "AnswerSettings", shorter, pretrained, "squad", "run")
    scores, *answers = lines[-3:]
    found = metrics(tmp_path / "run")
    expected = f"F1 {found['f1']:.4f}, exact matches {found['exact_match']:.4f}"
    assert scores == expected
    example = runpy.run_path(str(FOLDER / "answer.py"))
    for question, line in zip(example["QUESTIONS"], answers, strict=True):
        assert line.startswith(f"{question} ")
        assert line.removeprefix(f"{question} ") in example["PASSAGE"]


@pytest.mark.slow
def test_stack(printed, tmp_path):
    shorter = SHORT_TEXT | {"steps": 6, "eval_every": 1, "override": SMALL}
    first, *stages = printed("stack.py", "StackSettings", shorter, "run")[-7:]
    assert first == "4 layers"
    found = [re.fullmatch(r"step (\d), (\d) layers: \d\.\d+", line) for line in stages]
    assert [int(match[1]) for match in found] == list(range(1, 7))
    depths = [int(match[2]) for match in found]
    assert set(depths) == {1, 2, 4} and depths == sorted(depths)
    assert (tmp_path / "run" / "export" / "1").is_dir()
