"""A grid of fine-tuning runs: every setting with every seed, once each."""

import contextlib
import itertools
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfeff.training import run_lock, run_seal
from tfeff.training.scores import (
    read_metrics,
    score_and_deviation,
    score_text,
    worst_if_nan,
    write_metrics,
)
from tfeff.utils.checks import (
    check_best_metric,
    check_mapping,
    check_ordered,
    check_scores,
)
from tfeff.utils.digests import FILE_NAME
from tfeff.utils.files import put_back, remove_folder, remove_with_replaced
from tfeff.utils.paths import check_path
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import INTERRUPTED, METRICS


class Grid:
    """Runs of several settings with several seeds, that go on where they stopped.

    Each cell, a setting with a seed, has a folder of its own under `directory`, named
    after its values: `learning_rate=1e-05,batch_size=16,seed=0`. A cell is finished
    when its `metrics.json` is there; it is not run again. When a cell that was killed
    is run again, its folder is deleted first, whatever it holds, unless it has left a
    folder `interrupted`, to resume from. That folder is removed when the cell is
    finished. One process at a time may run cells of a directory.

    Args:
        directory: the folder of the cells.
        axes: for each setting its name and values, such as
            `{"batch_size": [16, 32], "learning_rate": [1e-5]}`.
        seeds: the seeds that each combination is run with.
        metric: the name of the metric that tells the best; greater is better.

    Attributes:
        summary: what `run` returned; None before.

    Raises:
        TypeError: if an axis or `seeds` is no list of values, or `metric` no string.
        ValueError: if one is empty, or has a value or its text twice.

    Example:

    >>> import tempfile
    >>> grid = Grid(tempfile.mkdtemp(), {"rate": [1, 2]}, [0, 1], "score")
    >>> def cell(folder, rate, seed):
    ...     return {"score": 10.0 * rate + seed}
    >>> summary = grid.run(cell)
    >>> summary["best"]["setting"], summary["best"]["mean"]["score"]
    ({'rate': 2}, 20.5)

    Reference:
        Jiang et al., "ConvBERT", section 6.3, and Qiu et al., "BlockBERT", section A.4,
        which search rates, decays, epochs or batch sizes so.
    """

    def __init__(
        self,
        directory: str | os.PathLike,
        axes: Mapping[str, Sequence],
        seeds: Sequence[int],
        metric: str,
    ):
        directory = check_path("directory", directory)
        check_mapping("axes", axes, "settings to their values")
        self.directory = os.path.abspath(directory)
        self.axes = {
            _axis(name): _values(name, values) for name, values in axes.items()
        }
        self.seeds = _values("seeds", seeds)
        self.metric = check_best_metric("metric", metric)
        self.summary: Any = None

    def settings(self) -> list[dict]:
        """All combinations of the axes' values."""
        combinations = itertools.product(*self.axes.values())
        return [dict(zip(self.axes, values)) for values in combinations]

    def folder(self, setting: Mapping, seed: int) -> str:
        """The folder of a cell.

        Args:
            setting: the values of the axes by their names, one of `settings()`.
            seed: the seed.
        """
        parts = [f"{name}={value}" for name, value in setting.items()]
        return os.path.join(self.directory, ",".join([*parts, f"seed={seed}"]))

    def run(self, cell: Callable[..., Mapping[str, float]]) -> dict:
        """Runs the cells that are not finished, and sums up.

        Args:
            cell: called as `cell(folder, **setting, seed=seed)`, with an empty folder
                to write to; returns the metrics by name.

        Returns:
            Dict of `metric`; `rows`, for each setting `setting`, `seeds`, and `mean`
            and `deviation` of each metric over the seeds (the sample's deviation;
            not a number for one seed); and `best`: the row with the highest mean of
            `metric`, with `best_seed` and its `folder`. A mean over an undefined
            metric is undefined (NaN), and ranks lowest; where all means are, the row
            whose best seed is the best. Of equal ones it is the first.

        Raises:
            ValueError: if a cell returns no `metric`, or a file of a finished cell is
                damaged (delete the cell's folder to have it run again); where cells
                are to be run, if another process runs some of the directory.
            OSError: if what a killed cell left cannot be deleted.
        """
        found = self._cells(cell)
        rows: list[dict[str, Any]] = []
        ranks = []
        for setting, cells in zip(self.settings(), found, strict=True):
            values = {
                name: [metrics.get(name, math.nan) for metrics in cells]
                for name in cells[0]
            }
            of_seeds = [worst_if_nan(value) for value in values[self.metric]]
            best_seed = self.seeds[of_seeds.index(max(of_seeds))]
            rows.append(
                {
                    "setting": setting,
                    "seeds": self.seeds,
                    "mean": {n: math.fsum(v) / len(v) for n, v in values.items()},
                    "deviation": {n: _deviation(v) for n, v in values.items()},
                    "best_seed": best_seed,
                    "folder": self.folder(setting, best_seed),
                }
            )
            mean = rows[-1]["mean"][self.metric]
            ranks.append(
                (worst_if_nan(mean), max(of_seeds) if math.isnan(mean) else 0.0)
            )
        best = rows[ranks.index(max(ranks))]
        self.summary = {"metric": self.metric, "rows": rows, "best": best}
        return self.summary

    def table(self, others: Mapping[str, Mapping[str, float]] | None = None) -> str:
        """The summary in Markdown: mean ± deviation of each metric.

        Args:
            others: metrics of further rows by their names, such as a baseline's.

        Raises:
            ValueError: before `run`.
        """
        if self.summary is None:
            raise ValueError(
                "`run` must be called before `table`. Received: a grid that was not run"
            )
        names = list(self.summary["best"]["mean"])
        lines = [
            "| " + " | ".join([*self.axes, *names]) + " |",
            "|---" * (len(self.axes) + len(names)) + "|",
        ]
        for row in self.summary["rows"]:
            marks = "**" * (row is self.summary["best"])
            cells = [str(value) for value in row["setting"].values()]
            # Cells may differ in their metrics.
            mean, deviation = row["mean"], row["deviation"]
            cells += [
                score_and_deviation(mean.get(n, math.nan), deviation.get(n, math.nan))
                for n in names
            ]
            lines.append("| " + " | ".join(f"{marks}{c}{marks}" for c in cells) + " |")
        for title, metrics in (others or {}).items():
            cells = [title, *[""] * (len(self.axes) - 1)]
            cells += [score_text(metrics.get(name, math.nan)) for name in names]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def _cells(self, cell):
        """The metrics of all cells, for each setting a list."""
        settings, seeds = self.settings(), self.seeds
        folders = [self.folder(x, seed) for x in settings for seed in seeds]
        with contextlib.ExitStack() as stack:
            # Who reads a finished grid need not be able to write to it.
            if not all(is_there(os.path.join(x, METRICS)) for x in folders):
                lock = run_lock.lock_directory(self.directory)
                stack.callback(lock.close)
                if lock.users > 1:  # Another thread has it.
                    raise ValueError(
                        "`directory` must not be of a grid that is running. Received: "
                        f"directory={self.directory!r}, which this process runs"
                    )
            elif run_lock.read(self.directory) is not None:
                # A process that was killed after the last cell left it.
                with contextlib.suppress(ValueError):
                    run_lock.lock_directory(self.directory).close()
            return [[self._cell(cell, x, seed) for seed in seeds] for x in settings]

    def _cell(self, cell, setting, seed):
        folder = self.folder(setting, seed)
        path = os.path.join(folder, METRICS)
        if not is_there(path):
            saved = os.path.join(folder, INTERRUPTED)
            put_back(saved)
            if not is_there(saved):
                remove_folder(folder)
            os.makedirs(folder, exist_ok=True)
            metrics = check_scores("cell", cell(folder, **setting, seed=seed))
            if self.metric not in metrics:
                raise ValueError(
                    f"`cell` must return {self.metric!r}. Received: {list(metrics)}"
                )
            write_metrics(metrics, path)
        metrics = read_metrics(path)
        if self.metric not in metrics:
            raise ValueError(
                f"{path} must have {self.metric!r}. Received: {list(metrics)}"
            )
        if not is_there(os.path.join(folder, FILE_NAME)):
            # What the cell was resumed from.
            remove_with_replaced(os.path.join(folder, INTERRUPTED))
        run_seal.seal_folder_once(folder)
        return metrics


def _axis(name):
    """The name of an axis: an argument of the cells, which is in folders' names."""
    if not isinstance(name, str) or not name.isidentifier():
        raise TypeError(f"`axes` must have names of arguments. Received: {name!r}")
    if name in ("folder", "seed"):
        raise ValueError(
            f"`axes` must have other names than folder and seed. Received: {name!r}"
        )
    return name


def _values(name, values):
    """A list of values that differ, in folders' names too."""
    values = list(check_ordered(name, values, "a list of values"))
    for value in values:
        if os.pardir in str(value).split(os.sep):
            raise ValueError(
                f"`{name}` must be values without '..' in their texts, of which the "
                f"folders' names are made. Received: {value!r}"
            )
    if not values or any(
        one == other or str(one) == str(other)
        for one, other in itertools.combinations(values, 2)
    ):
        raise ValueError(
            f"`{name}` must be values, each once. Received: {name}={values}"
        )
    return values


def _deviation(values):
    if len(values) < 2 or any(math.isnan(value) for value in values):
        return math.nan
    return statistics.stdev(values)
