"""Cells that were deleted are run again: what a run keeps is of one model all the same.

What is trained on changes between the starts, so that the weights do.
"""

import functools
import json
import os
import shutil

import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.recipes import (
    AnswerSettings,
    EmbedSettings,
    FinetuneSettings,
    answer,
    embed,
    finetune,
)
from tfeff.recipes.run_exports import RunModel, has_model, write_model

SIZES = dict(vocabulary_size=60, num_layers=1, max_sequence_length=24)
SIZES |= dict(hidden_dim=16, intermediate_dim=16)
COMMON = dict(pretrained="preset", batch_sizes=4, learning_rates=1e-2, steps=2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = tfeff.encoders.build("bert_tiny", **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), "preset")
    write_data(tmp_path, DOCUMENTS)
    return tmp_path


def write_data(folder, texts):
    for task in ("SST-2", "STS-B"):
        (folder / task).mkdir(exist_ok=True)
    rows = "".join(f"{text}\t{i % 2}\n" for i, text in enumerate(texts[:8]))
    pairs = "".join(f"{a}\t{b}\t{len(b) % 5}\n" for a, b in zip(texts, texts[3:]))
    for split in ("train", "dev"):
        (folder / f"SST-2/{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
        path = folder / f"STS-B/{split}.tsv"
        path.write_text(f"sentence1\tsentence2\tscore\n{pairs}")
    (folder / "texts.txt").write_text("\n".join(texts))
    questions = [
        {
            "id": f"q{i}",
            "question": "What was it?",
            "answers": [{"text": text[:9], "answer_start": 0}],
        }
        for i, text in enumerate(texts[:4])
    ]
    paragraphs = [
        {"context": text, "qas": [question]} for text, question in zip(texts, questions)
    ]
    data = {"version": "1.1", "data": [{"paragraphs": paragraphs}]}
    (folder / "squad.json").write_text(json.dumps(data))


def finetune_it(**part):
    settings = dict(run_dir="run", task="SST-2", data=".", **COMMON)
    return finetune(FinetuneSettings(**settings, **part))


def embed_it():
    settings = dict(run_dir="run", data=".", examples="texts.txt", **COMMON)
    return embed(EmbedSettings(**settings, dropout=0.1))


def answer_it(**part):
    settings = dict(train="squad.json", dev="squad.json", sequence_length=24, stride=9)
    return answer(AnswerSettings(run_dir="run", **settings, **COMMON, **part))


def kept(run):
    """The weights of the run's model, after they are compared with its preset's."""
    model = tfeff.training.load_checkpoint(run / "model.keras").get_weights()
    preset = tfeff.tasks.load_task(run)[0].get_weights()
    for one, other in zip(model, preset, strict=True):
        np.testing.assert_array_equal(one, other)
    return model


def times(run):
    """When the files were written, but for those that every start writes again."""
    again = ("SHA256SUMS", "metrics.json", "summary.md")
    files = [path for path in run.rglob("*") if path.is_file()]
    return {p: p.stat().st_mtime_ns for p in files if p.name not in again}


def same(one, other):
    return all(map(np.array_equal, one, other))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [finetune_it, embed_it, answer_it])
def test_what_is_kept_is_of_one_model(recipe, folder, capsys):
    run = folder / "run"
    recipe(**({} if recipe is embed_it else {"predict_split": "dev"}))
    predicted = run / "predictions" / "dev" / "metrics.json"
    assert predicted.exists() is (recipe is not embed_it)
    first = kept(run)
    before, metrics = times(run), (run / "metrics.json").read_bytes()
    recipe()
    assert times(run) == before  # A finished run stays as it is.
    assert (run / "metrics.json").read_bytes() == metrics

    shutil.rmtree(run / "cells")
    write_data(folder, DOCUMENTS[::-1])
    capsys.readouterr()
    summary = recipe()
    # The predictions of a part that this start does not ask for were of the other one.
    assert not predicted.parent.parent.exists()
    removed = "predictions was of another model, or unfinished: it is removed\n"
    assert (removed in capsys.readouterr().out) is (recipe is not embed_it)
    assert not same(first, kept(run))
    best = summary.get("grid", summary)["best"]["folder"]
    assert same(
        tfeff.training.load_checkpoint(f"{best}/model.keras").get_weights(), kept(run)
    )
    exports = [str(run / "export" / name) for name in "12"]
    assert tfeff.export.versions(run / "export") == exports
    if recipe is answer_it:
        predictions = json.loads((run / "predictions.json").read_text())
        data = tfeff.datasets.get("squad1")
        scores = data.metrics(data.read("dev", "squad.json"), predictions)
        assert {name: summary[name] for name in scores} == pytest.approx(scores)
    before = times(run)
    recipe()
    assert times(run) == before


@pytest.mark.slow
def test_a_writer_of_ones_own_writes_again(folder):
    def write(split, examples, predictions, folder):
        answers = {answer.id: answer.text for answer in predictions}
        path = os.path.join(folder, "answers.json")
        return (tfeff.datasets.write_json(answers, path),)

    files = {split: ("squad.json",) for split in ("train", "dev")}
    mine = tfeff.datasets.span_dataset("Mine", files, writer=write)
    settings = dict(train="squad.json", dev="squad.json", sequence_length=24, stride=9)
    given = AnswerSettings(run_dir="run", task="Mine", **settings, **COMMON)
    first = answer(given, mine)
    before = (folder / "run" / "answers.json").read_bytes()
    assert answer(given, mine) == first
    shutil.rmtree(folder / "run" / "export")
    assert answer(given, mine) == first
    assert tfeff.export.versions(folder / "run" / "export")
    assert (folder / "run" / "answers.json").read_bytes() == before


@pytest.mark.slow
def test_an_encoder_that_is_scored_and_changes_meanwhile(folder):
    given = EmbedSettings(run_dir="run", data=".", pretrained="preset")
    embed(given)
    before = times(folder / "run")
    embed(given)
    assert times(folder / "run") == before
    shutil.rmtree("preset")
    encoder = tfeff.encoders.build("bert_tiny", **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), "preset")
    with pytest.raises(
        ValueError, match="new folder where the encoder of `pretrained`"
    ):
        embed(given)
    assert times(folder / "run") == before


@pytest.mark.slow
def test_a_start_that_ends_in_between_is_made_up_for(folder):
    models = [
        tfeff.tasks.Classifier(tfeff.encoders.build("bert_tiny", **SIZES), 2)
        for _ in range(2)
    ]
    files = [str(folder / f"{i}.keras") for i in range(2)]
    for model, file in zip(models, files):
        tfeff.training.save_checkpoint(model, file)
    run = tfeff.training.RunDirectory("run", {})

    def write(index, is_kept=False, save=None):
        save = save or functools.partial(shutil.copy, files[index])
        return write_model(run, RunModel(models[index], is_kept, save), tokenizer())

    write(0)
    assert has_model(run, files[0]) and not has_model(run, files[1])

    def fail(path):
        raise OSError("The disk is full")

    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            write(1, has_model(run, files[1]), fail)
        assert not has_model(run, files[1])
    exported = write(1)
    assert exported == tfeff.export.versions(run.path("export"))[-1]
    assert has_model(run, files[1])
    kept(folder / "run")
    tfeff.export.check_export(exported)
    assert not list((folder / "run").glob(".partial-*"))
    # The file of the model was deleted: its preset and export are another model's.
    os.remove(run.path("model.keras"))
    with open(os.path.join(exported, "SHA256SUMS"), "rb") as file:
        digests = file.read()
    exported = write(0)
    assert has_model(run, files[0])
    kept(folder / "run")
    with open(os.path.join(exported, "SHA256SUMS"), "rb") as file:
        assert file.read() != digests
    run.close()
