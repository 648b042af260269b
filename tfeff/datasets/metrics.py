"""The metrics of classification and rating, computed by scikit-learn and SciPy.

Where a metric is 0 / 0, as a correlation is for predictions of one class alone, it is
not a number (NaN), never 0.
"""

import collections
import math
from collections.abc import Sequence

import numpy as np
import scipy.stats
import sklearn.metrics

from tfeff.datasets.checks import check_list, check_triples, check_values
from tfeff.datasets.glue import GLUE_TASKS
from tfeff.datasets.superglue import SUPERGLUE_TASKS
from tfeff.utils.checks import check_choice


def glue_metrics(
    task: str, labels: np.ndarray, predictions: np.ndarray
) -> dict[str, float]:
    """What GLUE reports for a task; the first one is to choose the best model by.

    Matthews' correlation (TP·TN − FP·FN) / √((TP+FP)(TP+FN)(TN+FP)(TN+FN)) and
    accuracy for CoLA; F1 = 2TP / (2TP + FP + FN) of the label 1 and accuracy for MRPC
    and QQP; Pearson's and Spearman's correlation for STS-B; accuracy for the others.

    Args:
        task: the name of one of the nine tasks.
        labels: `[N]`, the right classes or ratings.
        predictions: `[N]`, the predicted ones.

    Returns:
        The metrics by name, between -1 and 1; NaN where one is undefined.

    Raises:
        ValueError: if there is no such task, there are no labels, the lengths differ,
            or a value is not a class of the task or a finite number.

    Example:

    >>> glue_metrics("MRPC", [1, 1, 0, 0], [1, 0, 0, 0])["accuracy"]
    0.75

    Reference:
        Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
        Language Understanding", 2019, section 3.
    """
    names = GLUE_TASKS[check_choice("task", task, GLUE_TASKS)].label_names
    labels, predictions = _checked(labels, predictions, names)
    metrics = {
        "CoLA": (matthews_correlation, accuracy),
        "MRPC": (f1, accuracy),
        "QQP": (f1, accuracy),
        "STS-B": (pearson, spearman),
    }.get(task, (accuracy,))
    return {metric.__name__: metric(labels, predictions) for metric in metrics}


def superglue_metrics(
    task: str, labels: np.ndarray, predictions: np.ndarray, ids: Sequence[tuple] = ()
) -> dict[str, float]:
    """What SuperGLUE reports for a task; the first one is to choose the best model by.

    Accuracy for BoolQ. For MultiRC, F1 of the label 1 over all answers (`"f1a"`) and
    the share of questions all of whose answers are right (`"exact_match"`).

    Args:
        task: `"BoolQ"` or `"MultiRC"`.
        labels: `[N]`, the right classes.
        predictions: `[N]`, the predicted ones.
        ids: for MultiRC, `[N]` triples (passage, question, answer).

    Returns:
        The metrics by name, between 0 and 1; NaN where one is undefined.

    Raises:
        ValueError: if there is no such task, there are no labels, the lengths differ,
            or a value is not a class of the task.

    Example:

    >>> ids = [(0, 0, 0), (0, 0, 1), (0, 1, 2)]
    >>> superglue_metrics("MultiRC", [1, 0, 1], [1, 1, 1], ids)["exact_match"]
    0.5

    Reference:
        Wang et al., "SuperGLUE: A Stickier Benchmark for General-Purpose Language
        Understanding Systems", 2019, section 3.
    """
    names = SUPERGLUE_TASKS[check_choice("task", task, SUPERGLUE_TASKS)]
    labels, predictions = _checked(labels, predictions, names)
    if task == "BoolQ":
        return {"accuracy": accuracy(labels, predictions)}
    ids = _check_ids(check_triples("ids", ids), labels)
    answers = collections.defaultdict(lambda: ([], []))
    for (passage, question, _), label, prediction in zip(ids, labels, predictions):
        answers[passage, question][0].append(label)
        answers[passage, question][1].append(prediction)
    exact = [right == predicted for right, predicted in answers.values()]
    return {"f1a": f1(labels, predictions), "exact_match": float(np.mean(exact))}


def race_metrics(
    labels: np.ndarray, predictions: np.ndarray, ids: Sequence[str]
) -> dict[str, float]:
    """Accuracy on RACE, of all questions and of each school's.

    Args:
        labels: `[N]`, the right options, 0 to 3.
        predictions: `[N]`, the predicted ones.
        ids: `[N]`, as from `tfeff.datasets.read_race`: they begin with the school.

    Returns:
        `"accuracy"`, `"accuracy_middle"` and `"accuracy_high"`; NaN for a school of
        which there are no questions.

    Raises:
        ValueError: if there are no labels, the lengths differ, or a value is not an
            option.

    Example:

    >>> race_metrics([0, 3], [0, 1], ["middle1.txt-0", "high1.txt-0"])["accuracy"]
    0.5

    Reference:
        Lai et al., "RACE: Large-scale ReAding Comprehension Dataset From
        Examinations", 2017, section 5.
    """
    labels, predictions = _checked(labels, predictions, ("A", "B", "C", "D"))
    ids = _check_ids(check_list("ids", ids, str), labels)
    metrics = {"accuracy": accuracy(labels, predictions)}
    for level in ("middle", "high"):
        rows = [i for i, name in enumerate(ids) if name.startswith(level)]
        value = accuracy(labels[rows], predictions[rows]) if rows else math.nan
        metrics[f"accuracy_{level}"] = value
    return metrics


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The share of predictions that are right."""
    return float(sklearn.metrics.accuracy_score(labels, predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of the label 1; NaN if it is neither a label nor predicted."""
    return float(sklearn.metrics.f1_score(labels, predictions, zero_division=np.nan))


def matthews_correlation(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews' correlation; NaN if labels or predictions are of one class alone."""
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(sklearn.metrics.matthews_corrcoef(labels, predictions))


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Pearson's correlation; NaN if labels or predictions are all equal."""
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(scipy.stats.pearsonr(labels, predictions).statistic)


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Spearman's rank correlation; NaN if labels or predictions are all equal."""
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(scipy.stats.spearmanr(labels, predictions).statistic)


def _constant(values):
    return bool((values == values[0]).all())


def _check_ids(ids, labels):
    if len(ids) != len(labels):
        raise ValueError(
            f"`ids` must be as many as `labels`, {len(labels)}. Received: {len(ids)}"
        )
    return ids


def _checked(labels, predictions, names):
    """Both as arrays; `names` are those of the classes, or None for ratings."""
    labels = check_values("labels", labels, names)
    predictions = check_values("predictions", predictions, names)
    if len(labels) == 0 or len(labels) != len(predictions):
        raise ValueError(
            "`labels` and `predictions` must be equally many, at least 1. Received: "
            f"{len(labels)} and {len(predictions)}"
        )
    return labels, predictions
