"""Scores of a training, as a file of JSON and as text."""

import json
import math
import os
from collections.abc import Mapping

from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_json, check_mapping
from tfeff.utils.files import write_text
from tfeff.utils.json_files import read_object
from tfeff.utils.paths import check_path


@paths(path=REPLACE)
def write_metrics(metrics: Mapping, path: str | os.PathLike) -> None:
    """Writes metrics as JSON, whole or not at all. Undefined values become null.

    Args:
        metrics: numbers by name, or dicts and lists of such. NaN and infinity are
            undefined.
        path: the file; one of that name is replaced.

    Raises:
        TypeError: if `metrics` is no mapping of JSON values, or `path` no path.

    Example:

    >>> import json, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "metrics.json")
    >>> write_metrics({"f1": float("nan"), "accuracy": 0.5}, path)
    >>> with open(path) as file:
    ...     json.load(file)
    {'f1': None, 'accuracy': 0.5}
    """
    check_mapping("metrics", metrics, "names to JSON values")
    check_json("metrics", _without_nan(metrics))
    path = check_path("path", path)
    write_text(path, metrics_json(metrics) + "\n")


def metrics_json(metrics: Mapping) -> str:
    """Metrics as JSON text, null where one is undefined."""
    return json.dumps(_without_nan(metrics), indent=2, allow_nan=False)


def score_text(value: float | None) -> str:
    """A score to print: with four digits after the point, or of small ones in all."""
    if value is None or math.isnan(value):
        return "undefined"
    return format(value, _digits(value))


def read_metrics(path: str | os.PathLike) -> dict[str, float]:
    """The metrics of a cell, NaN where one is null."""
    metrics = read_object(os.fspath(path))
    if not all(
        value is None or isinstance(value, (int, float)) for value in metrics.values()
    ):
        raise ValueError(f"{path} must hold numbers by name. Received: {metrics}")
    return {n: math.nan if v is None else float(v) for n, v in metrics.items()}


def _without_nan(value):
    if isinstance(value, Mapping):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def worst_if_nan(value: float) -> float:
    """The value, or -inf if undefined, which is below all others."""
    return -math.inf if math.isnan(value) else value


def score_and_deviation(mean: float, deviation: float) -> str:
    """A mean to print, with the deviation where both are defined."""
    text = score_text(mean)
    if math.isnan(mean) or math.isnan(deviation):
        return text
    return f"{text} ± {deviation:{_digits(mean)}}"


def _digits(value):
    """The format of a number of this size, and of a deviation beside it."""
    if abs(value) >= 1e4:
        return ".1f"
    return ".4f" if abs(value) >= 1e-3 or value == 0 else ".4g"
