"""The official scores of SQuAD."""

import sys

import pytest

from tfeff.data.finetuning.examples import Question, SpanExamples
from tfeff.datasets import squad_v1_metrics, squad_v2_metrics


def asked(name, *answers):
    return Question(name, "Who?", "…", answers)


@pytest.fixture
def garden():
    pytest.importorskip("official", reason="needs Model Garden's scripts")


@pytest.mark.usefixtures("garden")
def test_version_1():
    questions = [asked("a", "the Ada"), asked("b", "x", "red green"), asked("c", "y")]
    predictions = {"a": "ADA!", "b": "green red blue", "c": "z"}
    expected = {"f1": 100 * (1 + 0.8 + 0) / 3, "exact_match": 100 / 3}
    found = squad_v1_metrics(SpanExamples(tuple(questions)), predictions)
    assert found == pytest.approx(expected)
    assert squad_v1_metrics(questions, predictions) == pytest.approx(expected)


@pytest.mark.usefixtures("garden")
def test_version_2():
    questions = [asked("a", "Ada"), asked("b"), asked("c"), asked("d", "red green")]
    predictions = {"a": "Ada", "b": "", "c": "what", "d": "red"}
    found = squad_v2_metrics(questions, predictions)
    assert found["exact"] == pytest.approx(50)
    assert found["f1"] == pytest.approx(100 * (1 + 1 + 0 + 2 / 3) / 4)
    assert found["HasAns_f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert (found["NoAns_exact"], found["total"]) == (50, 4)
    # With a threshold between 0.2 and 0.7 the wrong answer to c is withdrawn.
    likely = {"a": 0.1, "b": 0.9, "c": 0.7, "d": 0.2}
    tuned = squad_v2_metrics(questions, predictions, likely)
    assert tuned["f1"] == found["f1"]
    assert tuned["final_f1"] == pytest.approx(100 * (1 + 1 + 1 + 2 / 3) / 4)
    assert tuned["final_f1_thresh"] == 0.2


@pytest.mark.parametrize("metrics", [squad_v1_metrics, squad_v2_metrics])
def test_predictions_are_for_the_questions(metrics):
    questions = [asked("a", "x"), asked("b", "x")]
    with pytest.raises(ValueError, match="they lack 1 of them, such as 'b'"):
        metrics(questions, {"a": "x"})
    with pytest.raises(ValueError, match="they have 1 others, such as 'c'"):
        metrics(questions, {"a": "x", "b": "x", "c": "x"})
    with pytest.raises(ValueError, match="`questions` must hold questions"):
        metrics([], {})


def test_bad_input():
    questions = [asked("a", "x"), asked("b")]
    predictions = {"a": "x", "b": ""}
    with pytest.raises(ValueError, match="`questions` must have answers.*'b' without"):
        squad_v1_metrics(questions, predictions)
    with pytest.raises(ValueError, match="`questions` must have answers.*'b' without"):
        squad_v1_metrics(iter(questions), predictions)
    for bad in (None, 3, "a", [3]):
        with pytest.raises(TypeError, match="`questions` must be a list"):
            squad_v1_metrics(bad, predictions)
    for bad in (None, 3, ["a", "b"]):
        with pytest.raises(TypeError, match="`predictions` must be a mapping"):
            squad_v1_metrics(questions, bad)
    with pytest.raises(ValueError, match="`no_answer_probabilities` must be for the"):
        squad_v2_metrics(questions, predictions, {"a": 0.0})
    for bad in (1.5, -0.1, float("nan"), "x"):
        with pytest.raises(ValueError, match=r"must be from 0 to 1. Received: .*'a'"):
            squad_v2_metrics(questions, predictions, {"a": bad, "b": 0.0})


def test_without_model_garden(monkeypatch):
    monkeypatch.setitem(sys.modules, "official.nlp.tools.squad_evaluate_v1_1", None)
    with pytest.raises(ImportError, match=r"pip install tfeff\[garden\]"):
        squad_v1_metrics([asked("a", "x")], {"a": "x"})
