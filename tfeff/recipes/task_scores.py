"""The scores of predictions: a data set's metrics, and the error of ratings."""

import math
from collections.abc import Mapping
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
    if examples.labels is None:  # of spans
        return
    if len(_distinct_labels(examples)) > 1:
        return
    if math.isnan(dataset.metrics(examples, examples.labels)[metric]):
        print(
            f"the labels of {part} are all equal: even of right predictions the "
            f"{metric} is undefined, and tells no best model"
        )


def print_unlearnt(train: Any, parts: Mapping[str, Any]) -> None:
    """Prints a line where parts have labels that no example to train on has.

    Args:
        train: the examples to train on.
        parts: the examples to score by, by the names of their parts.
    """
    if isinstance(train, tfeff.data.ChoiceExamples) or train.label_names is None:
        return
    learnt = _distinct_labels(train)
    for name, part in parts.items():
        unlearnt = np.setdiff1d(_distinct_labels(part), learnt)
        if unlearnt.size:
            print(
                f"labels of {name} that no example to train on has, and no model "
                f"learns: {', '.join(train.label_names[label] for label in unlearnt)}"
            )


def _distinct_labels(examples):
    are_words = isinstance(examples, tfeff.data.TokenExamples)
    return np.unique(np.concatenate(examples.labels) if are_words else examples.labels)


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
