"""The scores of predictions: a data set's metrics, and the error of ratings."""

import math
from typing import Any

import numpy as np

import tfeff

RATING_ERROR = "mean_absolute_error"


def task_scores(
    dataset: tfeff.datasets.Dataset, examples: Any, predictions: Any
) -> dict[str, float]:
    """The metrics of a data set, and of ratings their mean absolute error.

        error = 1/N Σ_i |y_i - p_i|

    of the predictions p as `Dataset.write_predictions` writes them: clipped to the
    range of the ratings. Correlations see neither a wrong scale nor a wrong offset, and
    those of the mean rating, which is the baseline, are undefined.

    Args:
        dataset: the data set.
        examples: examples with labels.
        predictions: as for `Dataset.metrics`; `None` where the model diverged, so that
            all scores are undefined.

    Returns:
        The scores by name.
    """
    rated = has_ratings(dataset)
    if predictions is None:
        names = [*dataset.metric_names, *[RATING_ERROR] * rated]
        return dict.fromkeys(names, math.nan)
    predictions = dataset.clip(predictions)
    scores = dataset.metrics(examples, predictions)
    if rated:
        errors = np.subtract(examples.labels, predictions, dtype="float64")
        scores.setdefault(RATING_ERROR, float(np.mean(np.abs(errors))))
    return scores


def print_undefined(
    dataset: tfeff.datasets.Dataset, metric: str, part: str, examples: Any
) -> None:
    """Prints a line where equal labels of a part leave the metric undefined.

    Args:
        dataset: the data set.
        metric: that of its metrics which tells the best.
        part: the name of the part.
        examples: its examples.
    """
    labels = getattr(examples, "labels", None)
    if labels is None:  # of spans
        return
    are_words = isinstance(examples, tfeff.data.TokenExamples)
    if len(np.unique(np.concatenate(labels) if are_words else labels)) > 1:
        return
    if math.isnan(dataset.metrics(examples, labels)[metric]):
        print(
            f"the labels of {part} are all equal: even of right predictions the "
            f"{metric} is undefined, and tells no best model"
        )


def print_two_ratings(dataset: tfeff.datasets.Dataset, examples: Any) -> None:
    """Prints a line where ratings take two values, as classes without names do.

    Args:
        dataset: the data set.
        examples: those to train on.
    """
    if has_ratings(dataset) and len(values := np.unique(examples.labels)) == 2:
        print(
            f"{dataset.name} has no label_names, so its labels are ratings: all are "
            f"{values[0]:g} or {values[1]:g}. If they are classes, name them"
        )


def has_ratings(dataset: tfeff.datasets.Dataset) -> bool:
    """Whether the labels of a data set are ratings of texts."""
    return dataset.kind is tfeff.data.TextExamples and dataset.label_names is None
