"""What is told of predictions: metrics, and how far ratings are from the labels."""

import math
import os

import numpy as np
import pytest

import tfeff
from tests.subjects.serving import serve
from tfeff.recipes.baselines import make_baseline, scores_line
from tfeff.recipes.task_model import rating_units
from tfeff.recipes.task_scores import (
    print_two_ratings,
    print_undefined,
    print_unlearnt,
    task_scores,
)

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
    line = scores_line({"mean_absolute_error": 0.00023456}, baseline)
    assert line == "mean_absolute_error 0.0002346, mean baseline 200.0000"
    diverged = task_scores(PRICES, dev, None)
    assert list(diverged) == list(scores) and all(map(math.isnan, diverged.values()))


@pytest.mark.parametrize("name", ["Stars", "STS-B"])
def test_the_scores_are_those_of_the_written_ratings(tmp_path, name):
    dataset = tfeff.datasets.get("STS-B")
    if name == "Stars":
        dataset = tfeff.datasets.tsv_dataset(name, ("text",), "stars", ratings=(0, 5))
    dev, test = priced(5.0, 3.0, 0.0, 1.0), np.array([9.5, 2.5, -3.25, -2.0], "float32")
    scores = task_scores(dataset, dev, test)
    (path,) = dataset.write_predictions("dev", dev, test, tmp_path)
    written = np.genfromtxt(path, skip_header=1)[:, 1]
    np.testing.assert_array_equal(written, [5.0, 2.5, 0.0, 0.0])
    assert scores["mean_absolute_error"] == np.mean(np.abs(dev.labels - written))
    assert dataset.metrics(dev, written).items() <= scores.items()
    # Within the range nothing is another score, and cosines are of no range.
    inside = test.clip(0.5, 4.5)
    found = task_scores(dataset, dev, inside)
    assert dataset.metrics(dev, inside).items() <= found.items()
    assert dataset.metrics(dev, test)["spearman"] > 0.99 > scores["spearman"]


def test_ratings_of_ones_own_begin_at_their_mean():
    assert rating_units(PRICES, priced(1.0, 4.0)) == {"scale": 1.5, "offset": 2.5}
    assert rating_units(PRICES, priced(3.0, 3.0)) == {"offset": 3.0}
    assert rating_units(tfeff.datasets.get("STS-B"), priced(1.0, 4.0)) == {}
    classes = tfeff.datasets.get("SST-2")
    examples = tfeff.data.TextExamples(["a"], None, [0], classes.label_names)
    assert rating_units(classes, examples) == {}


@pytest.mark.slow
def test_prices_are_learnt_and_served(tmp_path, capsys):
    words = ["tin", "iron", "brass", "silver", "gold"]
    lines = [
        f"{a} {b}\t{1000 * i + 200 * j}"
        for i, a in enumerate(words)
        for j, b in enumerate(words)
    ]
    os.makedirs(tmp_path / "Prices")
    for split in ("train", "dev"):
        text = "\n".join(["text\tprice", *lines])
        (tmp_path / "Prices" / f"{split}.tsv").write_text(text)
    tokenizer = tfeff.data.train_tokenizer(words * 9, 19)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=19, num_layers=1, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, tmp_path / "preset")
    settings = tfeff.recipes.FinetuneSettings(
        run_dir=str(tmp_path / "run"),
        task="Prices",
        data=str(tmp_path),
        pretrained=str(tmp_path / "preset"),
        learning_rates=(1e-3,),
        batch_sizes=(5,),
        sequence_length=4,
        steps=60,
        predict_split="dev",
    )
    found = tfeff.recipes.finetune(settings, PRICES)
    printed = capsys.readouterr().out
    assert "of 25 to predict are longer than 4 tokens and lose their ends" in printed
    error = "dev_mean_absolute_error"
    assert found["best"]["mean"][error] < 0.8 * found["baseline"]["metrics"][error]
    dev = PRICES.read("dev", tmp_path)
    served = serve(tmp_path / "run" / "export" / "1", "rate", dev.first)["score"]
    scores = task_scores(PRICES, dev, served)
    assert found["best"]["mean"][error] == pytest.approx(
        scores["mean_absolute_error"], rel=1e-4
    )


@pytest.mark.parametrize(
    ("name", "labels", "metric"),
    [
        ("STS-B", (2.5, 2.5), "pearson"),
        ("STS-B", (2.5, 2.0), None),
        ("CoLA", (1, 1), "matthews_correlation"),
        ("CoLA", (1, 0), None),
        ("MRPC", (0, 0), "f1"),
        ("MRPC", (1, 1), None),
        ("SST-2", (1, 1), None),
        ("CoNLL-2003", ([0, 0], [0]), "f1"),
        ("CoNLL-2003", ([0, 0], [1]), None),
        ("CoNLL-2003", ([1], [1]), None),
    ],
)
def test_a_part_that_tells_no_best_model_is_told(name, labels, metric, capsys):
    dataset = tfeff.datasets.get(name)
    if isinstance(labels[0], list):
        words = [["a"] * len(row) for row in labels]
        examples = tfeff.data.TokenExamples(
            words, labels, dataset.label_names, ["0", "1"]
        )
    else:
        examples = tfeff.data.TextExamples(
            ["a", "b"], None, labels, dataset.label_names
        )
    print_undefined(dataset, dataset.metric_names[0], "dev", examples)
    told = f"the labels of dev are all equal: even of right predictions the {metric} "
    told += "is undefined, and tells no best model\n"
    assert capsys.readouterr().out == ("" if metric is None else told)


def test_labels_that_nothing_to_train_on_has_are_told(capsys):
    def texts(*labels):
        rows = [str(index) for index, _ in enumerate(labels)]
        return tfeff.data.TextExamples(rows, None, labels, ("no", "maybe", "yes"))

    def words(*labels):
        rows = [["a"] * len(row) for row in labels]
        ids = [str(index) for index, _ in enumerate(labels)]
        return tfeff.data.TokenExamples(rows, labels, ("O", "B-PER", "B-LOC"), ids)

    print_unlearnt(texts(0, 0), {"dev": texts(0, 2, 1, 2), "other": texts(0)})
    told = "labels of dev that no example to train on has, and no model learns: "
    assert capsys.readouterr().out == f"{told}maybe, yes\n"
    print_unlearnt(words([0, 1], [0]), {"dev": words([0], [2, 0])})
    assert capsys.readouterr().out == f"{told}B-LOC\n"
    print_unlearnt(texts(0, 1, 2), {"dev": texts(2)})
    print_unlearnt(priced(0, 1), {"dev": priced(0, 2)})
    assert capsys.readouterr().out == ""


def test_classes_that_are_read_as_ratings_are_told(capsys):
    print_two_ratings(PRICES, priced(0, 1, 1, 0))
    assert capsys.readouterr().out == (
        "Prices has no label_names, so its labels are ratings: all are 0 or 1. If "
        "they are classes, name them\n"
    )
    print_two_ratings(PRICES, priced(0, 1, 2))
    print_two_ratings(PRICES, priced(1, 1))
    dataset = tfeff.datasets.get("SST-2")
    classes = tfeff.data.TextExamples(["a", "b"], None, [0, 1], dataset.label_names)
    print_two_ratings(dataset, classes)
    assert capsys.readouterr().out == ""


def test_classes_have_their_metrics_alone():
    dataset = tfeff.datasets.get("SST-2")
    examples = tfeff.data.TextExamples(["a", "b"], None, [0, 1], dataset.label_names)
    assert task_scores(dataset, examples, [1, 1]) == {"accuracy": 0.5}
    assert list(task_scores(dataset, examples, None)) == ["accuracy"]
