"""What is told of predictions: metrics, and how far ratings are from the labels."""

import math

import numpy as np
import pytest

import tfeff
from tfeff.recipes.baselines import make_baseline, scores_line
from tfeff.recipes.task_scores import task_scores

PRICES = tfeff.datasets.tsv_dataset("Prices", ("text",), "price")


def priced(*prices):
    return tfeff.data.TextExamples(["a"] * len(prices), labels=prices)


def test_the_error_of_ratings_beside_that_of_their_mean():
    train, dev = priced(1000.0, 1400.0), priced(1000.0, 1100.0, 1500.0)
    useless = np.array([18.1, 18.2, 18.3], "float32")
    scores = task_scores(PRICES, dev, useless)
    assert list(scores) == ["pearson", "spearman", "mean_absolute_error"]
    assert scores["spearman"] == pytest.approx(1.0)
    assert scores["mean_absolute_error"] == pytest.approx(1200 - 18.2, rel=1e-6)
    baseline = make_baseline(PRICES, train, {"": dev})
    assert baseline["metrics"]["mean_absolute_error"] == pytest.approx(200.0)
    assert scores_line(scores, baseline).endswith(
        "spearman 1.0000, mean baseline undefined; "
        "mean_absolute_error 1181.8000, mean baseline 200.0000"
    )
    diverged = task_scores(PRICES, dev, None)
    assert list(diverged) == list(scores) and all(map(math.isnan, diverged.values()))


def test_classes_have_their_metrics_alone():
    dataset = tfeff.datasets.get("SST-2")
    examples = tfeff.data.TextExamples(["a", "b"], None, [0, 1], dataset.label_names)
    assert task_scores(dataset, examples, [1, 1]) == {"accuracy": 0.5}
    assert list(task_scores(dataset, examples, None)) == ["accuracy"]
