"""The benchmarks' metrics, against their equations written out."""

import math

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.examples import examples, metrics
from tfeff import datasets


def counts(labels, predictions):
    pairs = list(zip(labels, predictions))
    return [pairs.count(pair) for pair in ((1, 1), (0, 0), (0, 1), (1, 0))]


def f1(labels, predictions):
    tp, _, fp, fn = counts(labels, predictions)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan


def matthews(labels, predictions):
    tp, tn, fp, fn = counts(labels, predictions)
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / math.sqrt(below) if below else math.nan


def pearson(x, y):
    dx, dy = np.subtract(x, np.mean(x)), np.subtract(y, np.mean(y))
    return (dx * dy).sum() / math.sqrt((dx**2).sum() * (dy**2).sum())


def ranks(values):
    """Places in order, from 1; equal values share their mean place."""
    order = sorted(values)
    return [
        np.mean([i + 1 for i, other in enumerate(order) if other == value])
        for value in values
    ]


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1))
def test_binary_tasks(pairs):
    labels, predictions = zip(*pairs)
    same = np.mean([a == b for a, b in pairs])
    expected = {
        "CoLA": {"matthews_correlation": matthews(labels, predictions)},
        "MRPC": {"f1": f1(labels, predictions)},
        "QQP": {"f1": f1(labels, predictions)},
        **dict.fromkeys(("SST-2", "QNLI", "RTE", "WNLI", "MNLI"), {}),
    }
    for task, others in expected.items():
        found = metrics(task, labels, predictions)
        others = {**others, "accuracy": same}
        assert list(found) == list(others) == list(datasets.get(task).metric_names)
        assert found == pytest.approx(others, nan_ok=True)
        assert all(type(value) is float for value in found.values())


def test_ratings():
    labels = [0.0, 2.5, 5.0, 1.2, 2.5]
    predictions = [0.3, 9.0, 4.0, 4.0, -1.0]
    assert metrics("STS-B", labels, predictions) == pytest.approx(
        {
            "pearson": pearson(labels, predictions),
            "spearman": pearson(ranks(labels), ranks(predictions)),
        }
    )
    # Integers and float32 are ratings too.
    assert metrics("STS-B", np.float32([1, 2]), [3, 9])["pearson"] == 1.0


def test_classes_of_mnli():
    assert metrics("MNLI", [0, 1, 2, 2], [0, 2, 2, 1]) == {"accuracy": 0.5}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("task", "labels", "predictions", "undefined"),
    [
        ("CoLA", [0, 1, 1], [1, 1, 1], "matthews_correlation"),
        ("CoLA", [0, 0, 0], [0, 1, 0], "matthews_correlation"),
        ("CoLA", [1], [1], "matthews_correlation"),
        ("MRPC", [0, 0], [0, 0], "f1"),
        ("STS-B", [1.0, 2.0], [3.0, 3.0], "pearson"),
        ("STS-B", [2.0, 2.0], [1.0, 3.0], "spearman"),
        ("STS-B", [2.0], [1.0], "spearman"),
    ],
)
def test_undefined_is_not_a_number(task, labels, predictions, undefined):
    found = metrics(task, labels, predictions)
    assert math.isnan(found[undefined])
    if "accuracy" in found:
        assert found["accuracy"] == np.mean(np.equal(labels, predictions))


def test_superglue():
    assert metrics("BoolQ", [1, 0, 1], [1, 1, 1]) == {"accuracy": pytest.approx(2 / 3)}
    # Questions 0 of the passages 0 and 1 are two questions; answers in any order.
    ids = [(0, 0, 0), (1, 0, 3), (0, 1, 2), (0, 0, 1), (1, 0, 4)]
    labels, predictions = [1, 0, 1, 0, 1], [1, 0, 0, 0, 1]
    assert metrics("MultiRC", labels, predictions, ids) == {
        "f1a": pytest.approx(f1(labels, predictions)),
        "exact_match": pytest.approx(2 / 3),
        "accuracy": pytest.approx(4 / 5),
    }
    nothing = metrics("MultiRC", [0, 0], [0, 0], ids[:2])
    assert math.isnan(nothing["f1a"]) and nothing["exact_match"] == 1.0


def test_race():
    ids = ["middle1.txt-0", "high1.txt-0", "high1.txt-1"]
    assert metrics("RACE", [0, 1, 3], [0, 1, 2], ids) == {
        "accuracy": pytest.approx(2 / 3),
        "accuracy_middle": 1.0,
        "accuracy_high": 0.5,
    }
    assert math.isnan(metrics("RACE", [0], [0], ["high1.txt-0"])["accuracy_middle"])


@pytest.mark.parametrize(
    ("error", "labels", "predictions", "message"),
    [
        (ValueError, [], [], "equally many, at least 1. Received: 0 and 0"),
        (ValueError, [0, 1], [0], "equally many, at least 1. Received: 2 and 1"),
        (ValueError, [0, 2], [0, 1], r"`labels` must be .*Received: 2 at 1"),
        (ValueError, [0, 1], [-1, 1], r"`predictions` must be .*Received: -1 at 0"),
        (TypeError, [0, 1], [0.2, 0.9], "`predictions` must be integers. .*float64"),
        (TypeError, [0.0, 1.0], [0, 1], "`labels` must be integers. .*float64"),
        (ValueError, [0, 1], [[0, 1]], r"one axis.*predictions of shape \(1, 2\)"),
    ],
)
def test_bad_classes(error, labels, predictions, message):
    with pytest.raises(error, match=message):
        metrics("CoLA", labels, predictions)
    with pytest.raises(error, match=message):
        datasets.f1(labels, predictions)


def test_other_bad_input():
    with pytest.raises(ValueError, match="`predictions` must be finite. Received: nan"):
        metrics("STS-B", [0.0, 1.0], [1.0, math.nan])
    with pytest.raises(TypeError, match="`labels` must be numbers"):
        metrics("STS-B", ["a"], [1.0])
    with pytest.raises(ValueError, match="`examples` must have labels. Received: none"):
        metrics("RTE", None, [0], ids=["7"])
    with pytest.raises(ValueError, match=r"must be of RTE, .*Received: \('0', '1'\)"):
        datasets.get("RTE").metrics(examples("SST-2", [0]), [0])
    with pytest.raises(TypeError, match="`examples` must be `TextExamples` of RTE"):
        datasets.get("RTE").metrics(examples("RACE", [0]), [0])
    with pytest.raises(TypeError, match="`predictions` must be integers"):
        datasets.accuracy([0, 1], [[0], [0, 1]])
    with pytest.raises(TypeError, match="`predictions` must be numbers"):
        datasets.pearson([0, 1], [[0], [0, 1]])
    half = keras.ops.cast([0.5, 1, 2], "bfloat16")
    assert datasets.pearson([1, 2, 4], half) == pytest.approx(1)
    for bad in ([3], [None]):
        with pytest.raises(TypeError, match="`ids` must be"):
            metrics("RACE", [0], [0], bad)
    for bad in ([3], ["ids"], [(1, 2)]):
        with pytest.raises(TypeError, match="`ids` must be"):
            metrics("MultiRC", [0], [0], bad)


def test_metrics_by_themselves():
    """On more classes than two, and where what they take differs."""
    assert datasets.accuracy([0, 5, 2], np.int64([0, 5, 3])) == pytest.approx(2 / 3)
    # Gorodkin's correlation of three classes: (c s - sum p t) / sqrt(...).
    labels, predictions = [0, 1, 2, 2], [0, 2, 2, 1]
    correct, total = 2, 4
    right, predicted = np.bincount(labels), np.bincount(predictions)
    above = correct * total - right @ predicted
    below = math.sqrt((total**2 - right @ right) * (total**2 - predicted @ predicted))
    found = datasets.matthews_correlation(labels, predictions)
    assert found == pytest.approx(above / below)
    with pytest.raises(ValueError, match="`labels` must be classes from 0 to 1"):
        datasets.f1(labels, predictions)
    # The mean of F1 of each class against the others; of the classes that are there.
    each = [
        f1([int(x == c) for x in labels], [int(x == c) for x in predictions])
        for c in range(3)
    ]
    assert datasets.macro_f1(labels, predictions) == pytest.approx(np.mean(each))
    assert datasets.macro_f1([0, 7], [0, 0]) == pytest.approx((2 / 3 + 0) / 2)
    with pytest.raises(TypeError, match="`labels` must be integers"):
        datasets.accuracy([0.5], [1])
    half = np.random.default_rng(0).normal(size=(2, 999)).astype("float16")
    for metric in (datasets.pearson, datasets.spearman):
        assert metric(*half) == metric(*half.astype("float64"))
        assert metric([1, 2, 3], [2.0, 4.0, 9.0]) > 0.9
        with pytest.raises(ValueError, match="`labels` must be finite"):
            metric([math.inf, 1], [1, 2])
