"""`tfeff finetune` as a user runs it, on tiny tasks."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.datasets import get
from tfeff.recipes import FinetuneSettings

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A preset of a tiny encoder that has never been trained."""
    path = tmp_path_factory.mktemp("pretrained") / "run" / "preset"
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=16,
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer(), path)
    return path.parent


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """SST-2, STS-B, MNLI and RACE of 8 examples a part."""
    folder = tmp_path_factory.mktemp("data")
    labels = {
        "SST-2": ("sentence\tlabel", ["0", "1"], ["train", "dev", "test"]),
        "STS-B": ("sentence1\tsentence2\tscore", ["0.5", "4.25"], ["train", "dev"]),
        "MNLI": (
            "sentence1\tsentence2\tgold_label",
            ["entailment", "neutral", "contradiction"],
            ["train", "dev_matched", "dev_mismatched"],
        ),
    }
    for task, (header, names, splits) in labels.items():
        (folder / task).mkdir()
        for split in splits:
            columns = header.count("\t")
            rows = [
                "\t".join([*DOCUMENTS[i : i + columns], names[i % len(names)]])
                for i in range(8)
            ]
            text = "\n".join([header, *rows])
            (folder / task / f"{split}.tsv").write_text(text, encoding="utf-8")
    for split in ("train", "dev"):
        for level in ("middle", "high"):
            (folder / split / level).mkdir(parents=True)
            passage = {
                "id": f"{level}1.txt",
                "article": DOCUMENTS[3],
                "questions": ["It was _ .", "it?"] * 2,
                "options": [["boxes", "zebras", "house", "cat"]] * 4,
                "answers": list("ABCD"),
            }
            (folder / split / level / "1.txt").write_text(json.dumps(passage))
    return folder


def run(task, data, pretrained, run_dir, *flags):
    return subprocess.run(
        [
            *(sys.executable, "-m", "tfeff", "finetune"),
            f"--task={task}",
            f"--data={data}",
            f"--pretrained={pretrained}",
            f"--run_dir={run_dir}",
            "--steps=3",
            "--eval_every=2",
            "--batch_sizes=4",
            *flags,
        ],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )


def serve(run_dir, name, **inputs):
    import tensorflow_text  # noqa: F401

    signature = tf.saved_model.load(str(run_dir / "export" / "1")).signatures[name]
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    return {key: value.numpy() for key, value in signature(**inputs).items()}


@pytest.mark.slow
def test_a_grid_ends_with_the_best_model_and_goes_on_after_a_kill(
    data, pretrained, tmp_path
):
    run_dir = tmp_path / "run"
    flags = ("--learning_rates=1e-3,3e-2", "--seeds=0,1", "--predict_split=test")
    result = run("SST-2", data, pretrained, run_dir, *flags)
    assert result.returncode == 0, result.stderr
    summary = json.loads((run_dir / "metrics.json").read_text())
    assert len(summary["rows"]) == 2 and summary["metric"] == "dev_accuracy"
    cells = sorted((run_dir / "cells").iterdir())
    assert len(cells) == 4
    for cell in cells:
        with open(cell / "dev_metrics.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["step"] for row in rows] == ["2", "3"]
        best = max(float(row["dev_accuracy"]) for row in rows)
        assert json.loads((cell / "metrics.json").read_text()) == {"dev_accuracy": best}

    dev = get("SST-2").read("dev", data)
    served = serve(run_dir, "classify", text=dev.first)
    predictions = served["probabilities"].argmax(-1)
    expected = json.loads(
        (Path(summary["best"]["folder"]) / "metrics.json").read_text()
    )
    accuracy = get("SST-2").metrics(dev, predictions)["accuracy"]
    assert accuracy == expected["dev_accuracy"]
    assert served["label"].tolist() == [str(p).encode() for p in predictions]
    with open(run_dir / "predictions" / "test" / "SST-2.tsv") as file:
        assert file.read().split() == [
            *("index", "prediction"),
            *(x for i, p in enumerate(predictions) for x in (str(i), str(p))),
        ]  # The test part has the texts of the dev part.

    # Killed in its second cell, it has the metrics of the others and runs that one.
    text = (run_dir / "summary.md").read_text()
    (cells[1] / "metrics.json").unlink()
    kept = [(cells[i] / "model.keras").stat().st_mtime_ns for i in (0, 2, 3)]
    result = run("SST-2", data, pretrained, run_dir, *flags)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("learning rate 0.") == 1
    assert json.loads((run_dir / "metrics.json").read_text()) == summary
    assert (run_dir / "summary.md").read_text() == text
    now = [(cells[i] / "model.keras").stat().st_mtime_ns for i in (0, 2, 3)]
    assert now == kept

    result = run("SST-2", data, pretrained, run_dir, "--seeds=5")
    assert result.returncode != 0
    assert "seeds: there [0, 1], now [5]" in result.stderr


@pytest.mark.slow
def test_a_data_set_that_a_file_describes(data, pretrained, tmp_path):
    folder = tmp_path / "own" / "Reviews"
    shutil.copytree(data / "SST-2", folder)
    record = {"texts": ["sentence"], "label": "label", "label_names": ["0", "1"]}
    (folder / "dataset.json").write_text(json.dumps(record))
    run_dir = tmp_path / "run"
    command = ("Reviews", folder.parent, pretrained, run_dir, "--batch_sizes=32")
    command += ("--predict_split=test",)
    result = run(*command)
    assert result.returncode == 0, result.stderr
    assert "each step takes 32 rows of 8 examples: some of them" in result.stdout
    assert (run_dir / "predictions" / "test" / "Reviews.tsv").exists()
    assert serve(run_dir, "classify", text=["a"])["label"][0] in (b"0", b"1")

    # Another file is predicted by the finished run, which trains nothing.
    (folder / "test_new.tsv").write_text("sentence\na\nb\n")
    result = run(*command[:-1], "--predict_split=test_new")
    assert result.returncode == 0, result.stderr
    assert "learning rate" not in result.stdout
    new = run_dir / "predictions" / "test_new" / "Reviews.tsv"
    assert len(new.read_text().splitlines()) == 3

    # With other labels, what is trained is not taken for what would be.
    record["label_names"] = ["1", "0"]
    (folder / "dataset.json").write_text(json.dumps(record))
    result = run(*command)
    assert result.returncode != 0
    assert (
        "which has read other label_names, examples (train, dev) than" in result.stderr
    )


@pytest.mark.slow
def test_broken_lines_and_diverged_settings(data, pretrained, tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    rows = [f"{i}\t1\t2\t{DOCUMENTS[i]}\tWhy?\t{i % 2}" for i in range(8)]
    (tmp_path / "QQP").mkdir()
    for split, lines in (("train", [*rows, "9\tbroken"]), ("dev", rows)):
        text = "\n".join([header, *lines])
        (tmp_path / "QQP" / f"{split}.tsv").write_text(text, encoding="utf-8")
    refused = run("QQP", tmp_path, pretrained, tmp_path / "run")
    assert refused.returncode != 0
    assert "train.tsv, line 10: must have 6 columns" in refused.stderr
    assert not (tmp_path / "run").exists()

    flags = ("--skip_malformed", "--learning_rates=1e38,1e-3", "--plots")
    result = run("QQP", tmp_path, pretrained, tmp_path / "run", *flags)
    assert result.returncode == 0, result.stderr
    assert "1 lines left out" in result.stdout and "line 10" in result.stdout
    summary = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert summary["best"]["setting"]["learning_rate"] == 1e-3
    assert None in [row["mean"]["dev_f1"] for row in summary["rows"]]
    _, kept = tfeff.tasks.load_pretrained(tmp_path / "run")
    assert kept.vocabulary_size() == tokenizer().vocabulary_size()
    assert (tmp_path / "run" / "plots" / "average_attention.png").exists()


@pytest.mark.slow
def test_ratings_of_longer_sequences_than_pretrained(data, pretrained, tmp_path):
    result = run(
        "STS-B",
        data,
        pretrained,
        tmp_path / "run",
        "--sequence_length=30",
        "--pooling=layerwise",
        "--layer_decay=0.8",
        "--train_examples=6",
        "--learning_rates=3e-2",
        "--steps=30",
    )
    assert result.returncode == 0, result.stderr
    assert "STS-B: 6 examples to train on" in result.stdout
    best = json.loads((tmp_path / "run" / "metrics.json").read_text())["best"]["mean"]
    dev = get("STS-B").read("dev", data)
    served = serve(tmp_path / "run", "rate", text=dev.first, text_pair=dev.second)
    # Scores are served as they are, and judged within the range of the ratings.
    expected = get("STS-B").metrics(dev, np.clip(served["score"], 0, 5))
    assert best["dev_pearson"] == pytest.approx(expected["pearson"], abs=1e-3)


@pytest.mark.slow
def test_both_parts_of_mnli(data, pretrained, tmp_path):
    flag = "--pooler_activation=relu"
    result = run("MNLI", data, pretrained, tmp_path / "run", flag)
    assert result.returncode == 0, result.stderr
    model, _ = tfeff.tasks.load_task(tmp_path / "run")
    assert model.pooler_activation == "relu"
    summary = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert list(summary["best"]["mean"]) == [
        "dev_matched_accuracy",
        "dev_mismatched_accuracy",
    ]
    assert summary["metric"] == "dev_matched_accuracy"


@pytest.mark.slow
def test_options_of_race(data, pretrained, tmp_path):
    result = run("RACE", data, pretrained, tmp_path / "run", "--predict_split=dev")
    assert result.returncode == 0, result.stderr
    dev = get("RACE").read("dev", data)
    served = serve(
        tmp_path / "run",
        "choose",
        passage=dev.passages,
        question=dev.questions,
        options=dev.options,
    )
    best = json.loads((tmp_path / "run" / "metrics.json").read_text())["best"]["mean"]
    expected = get("RACE").metrics(dev, served["index"].astype(int))
    assert best == pytest.approx({f"dev_{k}": v for k, v in expected.items()})
    path = tmp_path / "run" / "predictions" / "dev" / "RACE.json"
    letters = json.loads(path.read_text())
    assert letters == dict(zip(dev.ids, np.array(list("ABCD"))[served["index"]]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("SST2", (), "Did you mean 'SST-2'?"),
        ("squad1", (), "task='squad1', a data set of `SpanExamples`"),
        ("RACE", ("--skip_malformed",), "RACE is read with the options ['levels']"),
        ("CoLA", (), "CoLA"),  # There is no such folder.
        ("SST-2", ("--pretrained=nowhere",), "`pretrained` must be a preset"),
        ("SST-2", ("--learning_rates=fast",), "must be numbers. Received: fast"),
        ("SST-2", ("--sequence_length=2",), "`sequence_length` must be"),
    ],
)
def test_bad_flags_leave_no_folder(data, pretrained, tmp_path, task, flags, message):
    result = run(task, data, pretrained, tmp_path / "run", *flags)
    assert result.returncode != 0
    assert message in result.stderr + result.stdout
    assert not (tmp_path / "run").exists()


def test_batches_of_many_lengths_are_refused_on_a_tpu(pretrained, data, tmp_path):
    settings = FinetuneSettings(
        pretrained=str(pretrained / "preset"),
        task="SST-2",
        data=str(data),
        run_dir=str(tmp_path / "run"),
        strategy="tpu",
        pad_to_longest=True,
    )
    with pytest.raises(ValueError, match="`pad_to_longest` must be left out on a TPU"):
        tfeff.recipes.finetune(settings)
    assert not (tmp_path / "run").exists()
