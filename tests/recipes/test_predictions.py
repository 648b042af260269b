"""Predictions of a part, as the last step of fine-tuning writes them."""

import json
import os
import types

import numpy as np
import pytest

import tfeff
from tfeff.recipes import answering, finetuning
from tfeff.recipes.predictions import remove_predictions

URL = "s3://bucket/run"


def leave_metrics(run, split):
    """What an earlier start wrote, whose part had labels."""
    os.makedirs(run.path("predictions", split))
    path = run.path("predictions", split, "metrics.json")
    open(path, "w").close()
    return path


@pytest.fixture
def run(tmp_path):
    """A run at a URL, of which this process has a copy."""
    return types.SimpleNamespace(
        path=lambda *parts: str(tmp_path.joinpath(*parts)),
        shown=lambda path: path.replace(str(tmp_path), URL),
    )


def test_predictions_are_told_where_they_are_published(run, capsys):
    names = tfeff.datasets.get("SST-2").label_names
    task = types.SimpleNamespace(
        dataset=tfeff.datasets.get("SST-2"),
        to_predict=types.SimpleNamespace(
            examples=tfeff.data.TextExamples(("fun",), None, None, names, ("0",)),
            predictions=lambda model: np.array([0]),
        ),
        predicted_baseline=None,
    )
    metrics = leave_metrics(run, "test")
    finetuning.predict_part(task, None, "test", run)
    assert not os.path.exists(metrics)
    printed = capsys.readouterr().out
    assert printed == f"predictions: {URL}/predictions/test/SST-2.tsv\n"


def test_answers_are_told_where_they_are_published(run, monkeypatch, capsys):
    answers = (tfeff.data.SpanAnswer("a", "cat", 10, 13, 1.0, 0.0),)
    given = {}
    model = types.SimpleNamespace(answers=lambda *_, **k: given.update(k) or answers)
    monkeypatch.setattr(tfeff.training, "load_checkpoint", lambda _: model)
    question = tfeff.data.Question(
        "a", "the cat", "the small cat", ("cat",), ((10, 13),)
    )
    metrics = leave_metrics(run, "dev")
    settings = types.SimpleNamespace(predict_split="dev", max_answer_tokens=3)
    task = types.SimpleNamespace(
        dataset=tfeff.datasets.get("SQuAD1.1"),
        to_predict=types.SimpleNamespace(questions=(question,)),
        predicted_baseline=None,
    )
    answering.predict_part(settings, run, task, {})
    assert not os.path.exists(metrics)
    assert capsys.readouterr().out == f"predictions of dev: {URL}/predictions/dev\n"
    assert given == {"max_answer_tokens": 3}


def test_answers_below_the_threshold_are_withheld(run, monkeypatch):
    questions = [
        tfeff.data.Question(name, "the cat", "the small cat", ("cat",), ((10, 13),))
        for name in "ab"
    ]
    answers = (
        tfeff.data.SpanAnswer("a", "cat", 10, 13, 1.0, 0.9),
        tfeff.data.SpanAnswer("b", "cat", 10, 13, 1.0, 0.1),
    )
    model = types.SimpleNamespace(answers=lambda *_, **__: answers)
    monkeypatch.setattr(tfeff.training, "load_checkpoint", lambda _: model)
    task = types.SimpleNamespace(
        dataset=tfeff.datasets.get("SQuAD2.0"),
        to_predict=types.SimpleNamespace(questions=tuple(questions)),
        predicted_baseline=None,
    )
    settings = types.SimpleNamespace(predict_split="dev", max_answer_tokens=3)
    answering.predict_part(settings, run, task, {"no_answer_threshold": 0.5})
    with open(run.path("predictions", "dev", "predictions.json")) as file:
        assert json.load(file) == {"a": "", "b": "cat"}


def test_predictions_of_all_parts_are_removed(run, capsys):
    leave_metrics(run, "dev")
    leave_metrics(run, "test")
    remove_predictions(run)
    assert not os.path.exists(run.path("predictions"))
    assert capsys.readouterr().out == (
        f"{URL}/predictions was of another model, or unfinished: it is removed\n"
    )
    remove_predictions(run)
    assert capsys.readouterr().out == ""
