"""Learning curves show the numbers of the files."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from tfeff import plots


def drawn(figure):
    """From the label of each line to its points."""
    (axes,) = figure.axes
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_every_loss_of_every_run_is_drawn(tmp_path, figures):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("step,loss,val_loss\n1,3.5,3.75\n2,2.5,\n")
    b.write_text("step,loss\n4,1.5\n")
    plots.learning_curves({"a": a, "b": str(b)}, tmp_path / "curves.png")
    assert drawn(figures[0]) == {
        "a, training": [[1, 3.5], [2, 2.5]],
        "a, validation": [[1, 3.75]],
        "b, training": [[4, 1.5]],
    }
    assert not figures[0].axes[0].collections


def test_an_older_figure_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("step,loss\n1,3.5\n2,2.5\n")
    Path("curves.png").write_text("an old figure")
    plots.learning_curves({"a": "a.csv"}, "curves.png", log_scale=True)
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir()) == ["a.csv", "curves.png"]


def test_seeds_are_drawn_as_mean_and_deviation_at_their_common_steps(tmp_path, figures):
    losses = {0: (4.0, 2.0, 1.0), 1: (5.0, 4.0), 2: (9.0, 3.0, 7.0, 8.0)}
    files = []
    for seed, values in losses.items():
        files.append(tmp_path / f"{seed}.csv")
        rows = [f"{10 * i},9,{value}\n" for i, value in enumerate(values)]
        files[-1].write_text("step,loss,val_loss\n" + "".join(rows))
    plots.learning_curves(
        {"model": files},
        tmp_path / "curves.png",
        validation_only=True,
        log_scale=True,
        loss_range=(1, 10),
    )
    assert drawn(figures[0]) == {"model, validation": [[0, 6.0], [10, 3.0]]}
    (axes,) = figures[0].axes
    (band,) = axes.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices.round(6)}
    for x, mean, values in ((0, 6.0, (4, 5, 9)), (10, 3.0, (2, 4, 3))):
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 3)
        for edge in (mean - deviation, mean + deviation):
            assert (x, round(edge, 6)) in corners
    assert axes.get_yscale() == "log" and axes.get_ylim() == (1, 10)


def test_a_loss_that_is_not_a_number_leaves_a_gap(tmp_path, figures):
    (tmp_path / "a.csv").write_text("step,loss\n1,3.5\n2,nan\n3,2.5\n")
    plots.learning_curves({"a": tmp_path / "a.csv"}, tmp_path / "curves.png")
    losses = np.array(drawn(figures[0])["a, training"])[:, 1]
    np.testing.assert_array_equal(losses, [3.5, np.nan, 2.5])


def test_columns_that_a_training_did_not_have_are_left_out(tmp_path, figures):
    # As Keras writes it without validation data.
    (tmp_path / "a.csv").write_text("step,loss,val_loss\n1,3.5,NA\n2,3.0,NA\n")
    plots.learning_curves({"a": tmp_path / "a.csv"}, tmp_path / "curves.png")
    losses = np.array(drawn(figures[0])["a, training"])[:, 1]
    np.testing.assert_array_equal(losses, [3.5, 3.0])


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (["epoch,accuracy\n0,1\n"], {}, r"0\.csv with \['accuracy', 'epoch'\]"),
        (["step,loss\n1,2\n2,high\n"], {}, "0.csv, line 3: .*'high'"),
        (["step,loss\n1.5,2\n"], {}, "0.csv, line 2: .*'1.5'"),
        (["step,loss\n"], {}, "must hold values of loss or val_loss"),
        ([""], {}, "must have columns step and loss"),
        (["step,loss\n1,2\n"], {"validation_only": True}, "values of val_loss"),
        (["step,loss\n1,2\n", "step,loss\n2,2\n"], {}, "none in the files of 'run'"),
        (["step,loss\n1,2\n"], {"loss_range": (2, 1)}, r"loss_range=\(2, 1\)"),
        (["step,loss\n1,2\n"], {"loss_range": 3}, "loss_range=3"),
        (
            ["step,loss\n1,2\n"],
            {"loss_range": (0, 1), "log_scale": True},
            "logarithmic",
        ),
        ([None], {}, "0.csv, which is no file"),
        ([], {}, "`metrics` must have files. Received: none of 'run'"),
        (["step,loss\n1,Ä\n"], {}, "`metrics` must be CSV files. .*0.csv: 'utf-8'"),
        (["step,loss\n1,2\n"], {"path": "nowhere/curves.png"}, "a folder that exists"),
    ],
)
def test_bad_input_leaves_no_file(tmp_path, texts, settings, message):
    files = [tmp_path / f"{index}.csv" for index in range(len(texts))]
    for file, text in zip(files, texts):
        if text is not None:
            file.write_text(text, encoding="latin-1")
    before = sorted(tmp_path.iterdir())
    settings = dict(settings)
    path = tmp_path / settings.pop("path", "curves.png")
    with pytest.raises(ValueError, match=message):
        plots.learning_curves({"run": files}, path, **settings)
    assert sorted(tmp_path.iterdir()) == before


def test_arguments_of_another_type(tmp_path):
    with pytest.raises(TypeError, match="`metrics` must be a mapping of labels"):
        plots.learning_curves(["a.csv"], tmp_path / "curves.png")
    (tmp_path / "a.csv").write_text("step,loss\n1,3.5\n")
    with pytest.raises(TypeError, match="`path` must be a path"):
        plots.learning_curves({"a": tmp_path / "a.csv"}, 3)
    for files in (5, [5]):
        with pytest.raises(TypeError, match="`metrics` must be a"):
            plots.learning_curves({"a": files}, tmp_path / "curves.png")


@pytest.mark.parametrize("label", ["a$$b", "cost$^$", "run$x_$y"])
def test_dollars_are_no_formulas(tmp_path, label):
    table = tmp_path / "metrics.csv"
    table.write_text("step,loss\n1,3.5\n2,2.5\n")
    plots.learning_curves({label: table}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
