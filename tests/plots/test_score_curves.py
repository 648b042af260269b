"""Scores over steps of pretraining show the best setting of each step."""

import json
import math

import pytest

from tfeff import plots
from tfeff.plots.score_curves import scores_by_step


def row(step, rate, mean, deviation=None):
    return {
        "setting": {"pretrained_step": step, "learning_rate": rate},
        "mean": {"dev_accuracy": mean, "dev_f1": 0.25},
        "deviation": {"dev_accuracy": deviation, "dev_f1": None},
    }


SEEDS = [
    row(200, 1e-3, 0.5, 0.25),
    row(100, 1e-3, 0.375, 0.125),
    row(200, 1e-2, 0.75, 0.0625),
    row(100, 1e-2, None),
    row(300, 1e-3, None),
]


def write(path, rows, metric="dev_accuracy"):
    path.write_text(json.dumps({"metric": metric, "rows": rows, "best": rows[0]}))
    return path


def test_the_best_of_each_step():
    found = scores_by_step({"rows": SEEDS}, "dev_accuracy")
    assert list(found.items()) == [(100, (0.375, 0.125)), (200, (0.75, 0.0625))]
    # As `finetune` returns them: not a number, in place of null.
    rows = [row(100, 1e-3, math.nan, math.nan), row(100, 1e-2, 0.5, math.nan)]
    (mean, deviation) = scores_by_step({"rows": rows}, "dev_accuracy")[100]
    assert mean == 0.5 and math.isnan(deviation)


def test_a_line_a_run(tmp_path, figures):
    files = {
        "bert": write(tmp_path / "a.json", SEEDS),
        "shatter": str(write(tmp_path / "b.json", [row(50, 1, 0.5), row(100, 1, 1.0)])),
    }
    plots.score_curves(files, tmp_path / "curves.png")
    plots.score_curves(files, tmp_path / "curves.png", metric="dev_f1")
    accuracy, f1 = (figure.axes[0] for figure in figures)
    assert (accuracy.get_xlabel(), accuracy.get_ylabel()) == (
        "pretraining step",
        "dev_accuracy",
    )
    drawn = [
        container.lines[0].get_xydata().tolist() for container in accuracy.containers
    ]
    assert drawn == [[[100, 0.375], [200, 0.75]], [[50, 0.5], [100, 1.0]]]
    labels = [container.get_label() for container in accuracy.containers]
    assert labels == ["bert", "shatter"]
    (bars,) = accuracy.containers[0].lines[2]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [
        [0.25, 0.5],
        [0.6875, 0.8125],
    ]
    assert not accuracy.containers[1].has_yerr  # Of one seed.
    assert f1.containers[1].lines[0].get_xydata().tolist() == [[50, 0.25], [100, 0.25]]


def test_bad_input_leaves_no_file(tmp_path):
    path = tmp_path / "curves.png"
    good = write(tmp_path / "good.json", SEEDS)
    plain = row(1, 1, 0.5)
    del plain["setting"]["pretrained_step"]
    none = write(tmp_path / "none.json", [plain])
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    other = tmp_path / "other.json"
    other.write_text('{"loss": 1.0}')
    for files, message in (
        ({}, "must have files"),
        ({"a": tmp_path / "nowhere"}, "nowhere, which is no file"),
        ({"a": good, "b": none}, "'dev_accuracy', which is not in .*none.json"),
        ({"a": damaged}, "damaged.json is not valid JSON"),
        ({"a": other}, "metrics.json of runs of `tfeff finetune`.*other.json"),
    ):
        with pytest.raises(ValueError, match=message):
            plots.score_curves(files, path)
    with pytest.raises(ValueError, match="'dev_recall'"):
        plots.score_curves({"a": good}, path, metric="dev_recall")
    with pytest.raises(TypeError, match="`metrics` must be a mapping of labels"):
        plots.score_curves([good], path)
    with pytest.raises(TypeError, match="`metrics` must be a path"):
        plots.score_curves({"a": 3}, path)
    assert not path.exists()
