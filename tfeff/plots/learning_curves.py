"""Losses over steps, from the metrics of any number of runs."""

import csv
import os
from collections.abc import Mapping


def learning_curves(metrics: Mapping[str, str], path: str) -> None:
    """Draws training and validation loss of several runs into one picture.

    Args:
        metrics: from the label of a run to its `metrics.csv`, with columns `step`,
            `loss` and perhaps `val_loss` (dashed: training).
        path: the PNG file to write; replaced if it is there.

    Raises:
        ValueError: if a file lacks the columns.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    tfeff.plots.learning_curves(
        {"bert": "runs/bert/metrics.csv", "shatter": "runs/shatter/metrics.csv"},
        "curves.png",
    )
    ```
    """
    from matplotlib.figure import Figure

    runs = {label: _read(file) for label, file in metrics.items()}
    figure = Figure(figsize=(7, 4.5), layout="tight")
    axes = figure.subplots()
    for index, (label, rows) in enumerate(runs.items()):
        for column, style in (("loss", "--"), ("val_loss", "-")):
            points = [
                (int(row["step"]), float(row[column]))
                for row in rows
                if row.get(column)
            ]
            if points:
                name = f"{label}, {'training' if column == 'loss' else 'validation'}"
                axes.plot(*zip(*points), style, color=f"C{index}", label=name)
    axes.set(xlabel="step", ylabel="loss (nats a token)")
    axes.legend()
    partial = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.partial")
    figure.savefig(partial, format="png", dpi=150)
    os.replace(partial, path)


def _read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and not {"step", "loss"} <= set(rows[0]):
        raise ValueError(
            f"`metrics` must have columns step and loss. Received: {path} with "
            f"{sorted(rows[0])}"
        )
    return rows
