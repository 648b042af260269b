"""Losses over steps, from the metrics of any number of runs."""

import csv
import math
import os
from collections.abc import Mapping, Sequence

import numpy as np

from tfeff.plots.figure import figure_axes, legend_beside, shown
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_iterable, check_mapping
from tfeff.utils.digests import check_file
from tfeff.utils.paths import check_path

_LABELS = {"loss": "training", "val_loss": "validation"}


@paths(path=REPLACE)
def learning_curves(
    metrics: Mapping[str, str | os.PathLike | Sequence],
    path: str | os.PathLike,
    *,
    validation_only: bool = False,
    log_scale: bool = False,
    loss_range: tuple[float, float] | None = None,
) -> None:
    """Draws training and validation losses of several runs in one figure.

    A label may have several files, one for each seed of a run. The curve is then their
    mean, with a band of one standard deviation (of the seeds, the divisor being their
    number) to either side, at the steps that all of them have.

    Args:
        metrics: dict from a label to a run's `metrics.csv`, or a list of them, with
            columns `step`, `loss` and perhaps `val_loss` (training is dashed).
        path: the PNG file to write; replaced if it is there.
        validation_only: whether to leave out the training loss.
        log_scale: whether the axis of the loss is logarithmic.
        loss_range: lowest and highest loss to show; `None` for all.

    Raises:
        ValueError: if there is nothing to draw, a file is missing or lacks the
            columns, a value is not a number, seeds have no step in common,
            `loss_range` is not two increasing numbers (above 0 if `log_scale`), or
            the folder of `path` is missing.
        TypeError: if `metrics` is not a mapping, or `path` not a path.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    tfeff.plots.learning_curves(
        {
            "bert": "runs/bert/metrics.csv",
            "shatter": ["runs/shatter_0/metrics.csv", "runs/shatter_1/metrics.csv"],
        },
        "curves.png",
    )
    ```
    """
    check_mapping("metrics", metrics, "labels to files")
    _check_range(loss_range, log_scale)
    columns = ("val_loss",) if validation_only else ("loss", "val_loss")
    curves = [
        (index, column, label, curve)
        for index, (label, files) in enumerate(metrics.items())
        for column, curve in _curves(label, files, columns).items()
    ]
    if not curves:
        raise ValueError(
            f"`metrics` must hold values of {' or '.join(columns)}. "
            f"Received: {dict(metrics)!r}"
        )
    with figure_axes(path) as (axes,):
        for index, column, label, (steps, mean, deviation) in curves:
            color, style = f"C{index % 10}", "--" if column == "loss" else "-"
            name = shown(f"{label}, {_LABELS[column]}")
            axes.plot(steps, mean, style, color=color, label=name)
            if deviation is not None:
                low, high = mean - deviation, mean + deviation
                axes.fill_between(steps, low, high, color=color, alpha=0.2, lw=0)
        axes.set(xlabel="step", ylabel="loss")
        if log_scale:
            axes.set_yscale("log")
        if loss_range is not None:
            axes.set_ylim(loss_range)
        legend_beside(axes)


def _curves(label, files, columns):
    """Dict from each column of the files to steps, mean and deviation of the seeds."""
    several = not isinstance(files, (str, os.PathLike))
    if several:
        check_iterable("metrics", files, "a file or a list of files")
    runs = [_read(file, columns) for file in (files if several else [files])]
    if not runs:
        raise ValueError(f"`metrics` must have files. Received: none of {label!r}")
    curves = {}
    for column in columns:
        points = [run[column] for run in runs]
        if not any(points):
            continue
        steps = sorted(set.intersection(*map(set, points)))
        if not steps:
            raise ValueError(
                f"`metrics` of one label must have steps with {column} in common. "
                f"Received: none in the files of {label!r}"
            )
        values = np.array([[run[step] for step in steps] for run in points])
        deviation = values.std(axis=0) if several else None
        curves[column] = steps, values.mean(axis=0), deviation
    return curves


def _read(path, columns):
    """Dict from each column to a dict from step to value."""
    path = check_path("metrics", path)
    if not os.path.isfile(path):
        raise ValueError(f"`metrics` must be files. Received: {path}, which is no file")
    check_file(path)
    try:
        return _values(path, columns)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"`metrics` must be CSV files. Received: {path}: {error}"
        ) from error


def _values(path, columns):
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if not {"step", "loss"} <= set(reader.fieldnames or ()):
            raise ValueError(
                f"`metrics` must have columns step and loss. Received: {path} with "
                f"{sorted(reader.fieldnames or ())}"
            )
        values = {column: {} for column in columns}
        for row in reader:
            try:
                step = int(row["step"])
                for column in columns:
                    # Keras writes "NA" when training without validation data.
                    if row.get(column) not in (None, "", "NA"):
                        values[column][step] = float(row[column])
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{path}, line {reader.line_num}: steps and losses must be "
                    f"numbers. Received: {error}"
                ) from error
    return values


def _check_range(loss_range, log_scale):
    if loss_range is None:
        return
    try:
        low, high = map(float, loss_range)
        right = low < high and math.isfinite(low) and math.isfinite(high)
    except (TypeError, ValueError):
        right = False
    if not right or (log_scale and low <= 0):
        raise ValueError(
            "`loss_range` must be two increasing numbers, above 0 on a logarithmic "
            f"scale. Received: loss_range={loss_range!r}, log_scale={log_scale}"
        )
