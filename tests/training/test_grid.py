"""Grids of runs: each cell once, in its own folder, and summed up."""

import errno
import json
import math
import os
import types

import pytest

from tfeff.training import Grid, run_lock
from tfeff.training.scores import score_text, write_metrics

AXES = {"batch_size": [16, 32], "rate": [1e-5, 3e-5]}
SCORES = {
    (16, 1e-5, 0): 0.5,
    (16, 1e-5, 1): 0.7,
    (16, 3e-5, 0): 0.9,
    (16, 3e-5, 1): math.nan,
    (32, 1e-5, 0): 0.65,
    (32, 1e-5, 1): 0.66,
    (32, 3e-5, 0): 0.1,
    (32, 3e-5, 1): 0.2,
}


class Cells:
    """Runs cells by SCORES, and dies at the start of the one of that number."""

    def __init__(self, dies_at=None):
        self.dies_at = dies_at
        self.ran = []

    def __call__(self, folder, batch_size, rate, seed):
        assert os.listdir(folder) == []
        with open(os.path.join(folder, "dev_metrics.csv"), "w") as file:
            file.write("step")
        if len(self.ran) == self.dies_at:
            raise KeyboardInterrupt
        self.ran.append((batch_size, rate, seed))
        return {"score": SCORES[self.ran[-1]], "loss": 1.0}


def test_what_a_finished_cell_was_resumed_from_is_removed(tmp_path):
    """Also where the cell ended, and the process was killed before it was removed."""
    grid = Grid(tmp_path, {"rate": [1]}, [0], "score")
    folder = grid.folder({"rate": 1}, 0)
    for name in ("interrupted", "interrupted.replaced-1"):
        os.makedirs(os.path.join(folder, name))
    for name in ("interrupted_talks", "interrupted_at.txt"):
        write_metrics({}, os.path.join(folder, name))
    write_metrics({"score": 0.5}, os.path.join(folder, "metrics.json"))
    assert grid.run(lambda *_: {})["best"]["mean"] == {"score": 0.5}
    own = ["interrupted_at.txt", "interrupted_talks"]
    assert sorted(os.listdir(folder)) == ["SHA256SUMS", *own, "metrics.json"]


def test_a_grid_that_was_killed_runs_only_what_is_missing(tmp_path):
    whole, first, second = Cells(), Cells(dies_at=3), Cells()
    expected = Grid(tmp_path / "whole", AXES, [0, 1], "score").run(whole)
    assert whole.ran == list(SCORES)
    with pytest.raises(KeyboardInterrupt):
        Grid(tmp_path / "killed", AXES, [0, 1], "score").run(first)
    grid = Grid(tmp_path / "killed", AXES, [0, 1], "score")
    summary = grid.run(second)
    assert first.ran + second.ran == whole.ran and len(first.ran) == 3
    for one, two in zip(expected["rows"], summary["rows"], strict=True):
        assert one["setting"] == two["setting"]
        assert repr(one["mean"]) == repr(two["mean"])

    best = summary["best"]
    assert best["setting"] == {"batch_size": 32, "rate": 1e-5}
    assert best["best_seed"] == 1
    assert os.path.basename(best["folder"]) == "batch_size=32,rate=1e-05,seed=1"
    assert best["mean"]["score"] == pytest.approx(0.655)
    assert best["deviation"]["score"] == pytest.approx(0.01 / math.sqrt(2))
    # A seed whose metric is undefined makes the mean so, and is not left out.
    assert math.isnan(summary["rows"][1]["mean"]["score"])
    assert summary["rows"][1]["best_seed"] == 0
    lines = grid.table().splitlines()
    assert lines[0] == "| batch_size | rate | score | loss |"
    assert lines[2] == "| 16 | 1e-05 | 0.6000 ± 0.1414 | 1.0000 ± 0.0000 |"
    assert "| undefined |" in lines[3]
    assert lines[4].startswith("| **32** | **1e-05** | **0.6550 ± 0.0071**")
    others = {"constant": {"score": 0.25, "loss": math.nan}, "none": {}}
    assert grid.table(others).splitlines() == [
        *lines,
        "| constant |  | 0.2500 | undefined |",
        "| none |  | undefined | undefined |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (0.5, "0.5000"),
        (-0.5, "-0.5000"),
        (0.001, "0.0010"),
        (0.00012345678, "0.0001235"),
        (-0.0000043219, "-4.322e-06"),
        (1181.8, "1181.8000"),
        (251234.567, "251234.6"),
        (math.nan, "undefined"),
        (None, "undefined"),
    ],
)
def test_scores_of_every_size_are_told(value, text):
    assert score_text(value) == text


def test_a_deviation_has_the_digits_of_the_mean(tmp_path):
    scores = {"f1": 0.5, "error": 2e-4, "price": 2e5}

    def cell(folder, rate, seed):
        return {name: value * (1 + 1e-4 * seed) for name, value in scores.items()}

    grid = Grid(tmp_path, {"rate": [1]}, [0, 1], "f1")
    grid.run(cell)
    assert grid.table().splitlines()[2] == (
        "| **1** | **0.5000 ± 0.0000** | **0.0002 ± 1.414e-08** | **200010.0 ± 14.1** |"
    )


def test_undefined_is_null_on_disk_and_never_zero(tmp_path):
    Grid(tmp_path, {"rate": [3e-5]}, [1], "score").run(
        lambda folder, rate, seed: {"score": math.nan}
    )
    path = tmp_path / "rate=3e-05,seed=1" / "metrics.json"
    assert json.loads(path.read_text()) == {"score": None}
    grid = Grid(tmp_path, {"rate": [3e-5]}, [1], "score")
    summary = grid.run(None)
    assert math.isnan(summary["best"]["mean"]["score"])
    assert math.isnan(summary["best"]["deviation"]["score"])
    write_metrics(summary, tmp_path / "all.json")
    written = json.loads((tmp_path / "all.json").read_text())
    assert written["best"]["mean"] == {"score": None}
    path.write_text('{"score": ')
    with pytest.raises(ValueError, match="Damaged since .*metrics.json"):
        grid.run(None)


@pytest.mark.parametrize(
    ("scores", "rate", "seed"),
    [
        ((math.nan, math.nan, math.nan, 0.3, 0.2, math.nan), 2, 1),
        ((math.nan,) * 6, 1, 0),
        ((math.nan, 0.9, 0.1, 0.1, 0.1, 0.1), 2, 0),
        ((0.4, 0.5, 0.3, 0.6, 0.6, 0.3), 1, 1),  # Equal means: the first one.
    ],
)
def test_the_best_where_metrics_are_undefined(tmp_path, scores, rate, seed):
    left = iter(scores)
    grid = Grid(tmp_path, {"rate": [1, 2, 3]}, [0, 1], "score")
    best = grid.run(lambda folder, rate, seed: {"score": next(left)})["best"]
    assert (best["setting"]["rate"], best["best_seed"]) == (rate, seed)


def test_cells_of_an_earlier_version_may_lack_a_metric(tmp_path):
    def run(rates, *names):
        grid = Grid(tmp_path, {"rate": rates}, [1], "score")
        grid.run(lambda folder, rate, seed: dict.fromkeys(names, 10 * rate))
        return grid.table()

    run([0.1], "score")
    table = run([0.1, 0.2], "score", "error")
    assert table.splitlines()[2:] == [
        "| 0.1 | 1.0000 | undefined |",
        "| **0.2** | **2.0000** | **2.0000** |",
    ]


def test_any_lists_are_axes(tmp_path):
    axes = {"rate": iter([1, 2]), "seeds": range(2)}
    grid = Grid(tmp_path, axes, map(int, "34"), "score")
    assert (grid.axes, grid.seeds) == ({"rate": [1, 2], "seeds": [0, 1]}, [3, 4])
    write_metrics(
        types.MappingProxyType({"a": types.MappingProxyType({"b": math.nan})}),
        tmp_path / "metrics.json",
    )
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"a": {"b": None}}


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="`rate` must be values.*rate=\\[\\]"):
        Grid(tmp_path, {"rate": []}, [0], "score")
    with pytest.raises(ValueError, match="`seeds` must be values, each once"):
        Grid(tmp_path, {"rate": [1]}, [0, 0], "score")
    for sizes in ([1, "1"], [1, 1.0], [[1, 2], [1, 2]]):
        with pytest.raises(ValueError, match="`sizes` must be values, each once"):
            Grid(tmp_path, {"sizes": sizes}, [0], "score")
    assert len(Grid(tmp_path, {"sizes": [[1, 2], [3]]}, [0], "score").settings()) == 2
    for value in ("../up", "x/../../up"):
        with pytest.raises(ValueError, match=r"`path` must be values without '\.\.'"):
            Grid(tmp_path, {"path": [value]}, [0], "score")
    for name in ("seed", "folder"):
        with pytest.raises(ValueError, match=f"`axes` must have other names.*'{name}'"):
            Grid(tmp_path, {name: [1]}, [0], "score")
    for name in (1, "", "a/b", None):
        with pytest.raises(TypeError, match="`axes` must have names of arguments"):
            Grid(tmp_path, {name: [1]}, [0], "score")
    with pytest.raises(ValueError, match="`cell` must return 'score'"):
        Grid(tmp_path, {"rate": [1]}, [0], "score").run(lambda f, rate, seed: {"f1": 1})
    with pytest.raises(TypeError, match="`cell` must return a mapping of numbers"):
        Grid(tmp_path, {"rate": [1]}, [0], "score").run(lambda f, rate, seed: None)
    with pytest.raises(ValueError, match="`metric` must choose the best model"):
        Grid(tmp_path, {"rate": [1]}, [0], "loss")


@pytest.mark.parametrize("text", ["[1]", '{"f1": {"a": 1}}', '{"loss": 1}'])
def test_damaged_metrics_of_a_finished_cell_are_named(tmp_path, text):
    grid = Grid(tmp_path, {"rate": [1.0]}, [0], "f1")
    folder = grid.folder({"rate": 1.0}, 0)
    os.makedirs(folder)
    with open(os.path.join(folder, "metrics.json"), "w", encoding="utf-8") as file:
        file.write(text)
    with pytest.raises(ValueError, match="metrics.json must h"):
        grid.run(lambda folder, rate, seed: {"f1": 0.0})


def test_a_grid_of_a_relative_path_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grid = Grid("grid", {"rate": [1]}, [0], "score")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    summary = grid.run(lambda folder, rate, seed: {"score": 1.0})
    assert summary["best"]["folder"] == str(tmp_path / "grid" / "rate=1,seed=0")
    assert os.listdir(tmp_path / "other") == []


def test_a_cell_that_cannot_be_deleted_is_named(tmp_path, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", "file")

    (tmp_path / "rate=1,seed=0").mkdir()
    (tmp_path / "rate=1,seed=0" / "file").touch()
    monkeypatch.setattr("shutil.rmtree", refuse)
    grid = Grid(tmp_path, {"rate": [1]}, [0], "score")
    with pytest.raises(PermissionError, match="denied, while removing .*/rate=1"):
        grid.run(lambda folder, rate, seed: {"score": 1.0})


def test_a_lock_that_a_killed_process_left_is_removed(tmp_path):
    """It was killed after the last cell; the grid of another process keeps its own."""
    grid = Grid(tmp_path, AXES, (0, 1), "score")
    best = grid.run(Cells())["best"]
    lock = tmp_path / "run.lock"
    lock.write_text("{}")
    assert grid.run(Cells())["best"] == best
    assert not lock.exists()
    held = run_lock.lock_directory(str(tmp_path))
    assert grid.run(Cells())["best"] == best
    assert lock.exists()
    held.close()
    assert not lock.exists()


def test_there_is_no_summary_before_a_run(tmp_path):
    grid = Grid(tmp_path, AXES, [0], "score")
    assert grid.summary is None
    with pytest.raises(ValueError, match="`run` must be called before `table`"):
        grid.table()


@pytest.mark.parametrize("values", ["abc", 5, None])
def test_an_axis_is_a_list_of_values(tmp_path, values):
    with pytest.raises(TypeError, match=f"`rate` must be a list.*rate={values!r}"):
        Grid(tmp_path, {"rate": values}, [0], "score")


def test_a_grid_runs_once_at_a_time(tmp_path):
    """Also in one process, whose threads have the lock together."""
    grid = Grid(tmp_path, AXES, [0], "score")

    def cell(folder, **setting):
        with pytest.raises(ValueError, match="`directory` must not be of a grid that"):
            Grid(tmp_path, AXES, [0], "score").run(cell)
        assert os.path.isdir(folder)
        return {"score": 1.0}

    assert grid.run(cell)
    assert grid.run(cell)


def test_a_cell_that_a_failing_disk_hides_is_not_run_again(tmp_path, monkeypatch):
    grid = Grid(tmp_path / "grid", {"rate": [1e-5]}, [0], "score")
    ran = []

    def cell(folder, rate, seed):
        ran.append(seed)
        return {"score": 0.5}

    grid.run(cell)
    stat = os.stat

    def failing(path, *args, **kwargs):
        if str(path).endswith("metrics.json"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return stat(path, *args, **kwargs)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output"):
        patch.setattr(os, "stat", failing)
        grid.run(cell)
    grid.run(cell)
    assert ran == [0]
