"""The scores of predictions from training labels alone, beside a recipe's."""

import tempfile
from collections.abc import Mapping
from typing import Any

import tfeff
from tfeff.recipes.task_scores import task_scores
from tfeff.training.scores import score_text


def make_baseline(
    dataset: tfeff.datasets.Dataset, train: Any, parts: Mapping[str, Any]
) -> dict:
    """A baseline as `metrics.json` holds it.

    Args:
        dataset: the data set.
        train: its examples to train on.
        parts: those that are scored, by what the names of their metrics begin with.

    Returns:
        Dict of `name`, and `metrics` by name.
    """
    guess = tfeff.datasets.baseline_predictions
    metrics = {
        f"{prefix}{name}": value
        for prefix, part in parts.items()
        for name, value in task_scores(dataset, part, guess(train, part)).items()
    }
    return {"name": tfeff.datasets.baseline_name(train), "metrics": metrics}


def baseline_to_predict(
    dataset: tfeff.datasets.Dataset, train: Any, split: str, examples: Any
) -> dict | None:
    """The baseline of a part that a recipe will predict, before it trains.

    Args:
        dataset, train: as of `make_baseline`.
        split: the name of the part.
        examples: its examples.

    Returns:
        As of `make_baseline`; `None` for a part without labels.

    Raises:
        ValueError: if predictions of the part could not be written or scored.
    """
    try:
        guesses = tfeff.datasets.baseline_predictions(train, examples)
        with tempfile.TemporaryDirectory() as folder:
            dataset.write_predictions(split, examples, guesses, folder)
        if not examples.is_labelled:
            return None
        return make_baseline(dataset, train, {"": examples})
    except ValueError as error:
        raise ValueError(
            "`predict_split` must be a part whose predictions can be written and "
            f"scored. Received: predict_split={split!r}: {error}"
        ) from error


def scores_line(metrics: Mapping[str, float], baseline: Mapping) -> str:
    """Metrics in a line, each beside that of the baseline."""
    return "; ".join(f"{name} {score(metrics, name, baseline)}" for name in metrics)


def score(metrics: Mapping[str, float], name: str, baseline: Mapping) -> str:
    """A metric, and the baseline's, which has no thresholds."""
    found = score_text(metrics[name])
    if name in baseline["metrics"]:
        found += f", {baseline['name']} {score_text(baseline['metrics'][name])}"
    return found
