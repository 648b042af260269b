"""Metrics of classification and rating by name, computed by scikit-learn and SciPy.

A metric that is 0 / 0, such as a correlation if all predictions are of one class, is
NaN, never 0.
"""

import math

import numpy as np
import scipy.stats
import sklearn.metrics

from tfeff.datasets.checks import check_classes, check_ratings, check_same_number


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The share of correct predictions.

        accuracy = 1/N Σ_i [y_i = p_i]

    with the labels `y` and the predictions `p`.

    Args:
        labels: `[N]`, the right classes.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there are no labels, or the lengths differ.
        TypeError: if labels or predictions are not integers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.accuracy([0, 1, 2, 2], [0, 2, 2, 2])
    0.75
    """
    labels, predictions = _classes(labels, predictions)
    return float(sklearn.metrics.accuracy_score(labels, predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of the label 1: 2TP / (2TP + FP + FN).

    Args:
        labels: `[N]`, the right classes, 0 or 1.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from 0 to 1; NaN if 1 is neither a label nor predicted.

    Raises:
        ValueError: if there are no labels, the lengths differ, or a value is neither
            0 nor 1.
        TypeError: if labels or predictions are not integers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.f1([1, 1, 1, 0], [1, 0, 1, 1])
    0.6666666666666666
    """
    labels, predictions = _classes(labels, predictions, ("0", "1"))
    return float(sklearn.metrics.f1_score(labels, predictions, zero_division=np.nan))


def macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The mean over the classes of F1, 2TP / (2TP + FP + FN).

    Args:
        labels: `[N]`, the right classes.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from 0 to 1. A class that is neither a label nor predicted does not
        count.

    Raises:
        ValueError: if there are no labels, or the lengths differ.
        TypeError: if labels or predictions are not integers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.macro_f1([0, 0, 1, 2], [0, 0, 1, 1])
    0.5555555555555555
    """
    labels, predictions = _classes(labels, predictions)
    score = sklearn.metrics.f1_score(
        labels, predictions, average="macro", zero_division=0.0
    )
    return float(score)


def matthews_correlation(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews' correlation (TP·TN − FP·FN) / √((TP+FP)(TP+FN)(TN+FP)(TN+FN)).

    Args:
        labels: `[N]`, the right classes.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from -1 to 1; NaN if labels or predictions are of one class alone.

    Raises:
        ValueError: if there are no labels, or the lengths differ.
        TypeError: if labels or predictions are not integers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.matthews_correlation([1, 1, 0, 0], [0, 0, 1, 1])
    -1.0
    """
    labels, predictions = _classes(labels, predictions)
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(sklearn.metrics.matthews_corrcoef(labels, predictions))


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Pearson's correlation: the covariance over the product of the deviations.

        r = Σ_i (y_i − ȳ)(p_i − p̄) / √(Σ_i (y_i − ȳ)² Σ_i (p_i − p̄)²)

    with the labels `y`, the predictions `p` and their means.

    Args:
        labels: `[N]`, the right ratings.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from -1 to 1; NaN if labels or predictions are all equal.

    Raises:
        ValueError: if there are no labels, the lengths differ, or a value is not
            finite.
        TypeError: if labels or predictions are not numbers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.pearson([1.0, 2.0], [3.0, 9.0])
    1.0
    """
    labels, predictions = _ratings(labels, predictions)
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(scipy.stats.pearsonr(labels, predictions).statistic)


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Spearman's correlation: Pearson's of the ranks.

        ρ = r(rank(y), rank(p))

    with the labels `y`, the predictions `p` and Pearson's `r`; equal values all have
    the mean of their ranks.

    Args:
        labels: `[N]`, the right ratings.
        predictions: `[N]`, the predicted ones.

    Returns:
        A number from -1 to 1; NaN if labels or predictions are all equal.

    Raises:
        ValueError: if there are no labels, the lengths differ, or a value is not
            finite.
        TypeError: if labels or predictions are not numbers.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.spearman([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])
    1.0
    """
    labels, predictions = _ratings(labels, predictions)
    if _constant(labels) or _constant(predictions):
        return math.nan
    return float(scipy.stats.spearmanr(labels, predictions).statistic)


METRICS = {
    metric.__name__: metric
    for metric in (accuracy, f1, macro_f1, matthews_correlation, pearson, spearman)
}
OF_RATINGS = (pearson.__name__, spearman.__name__)


def _classes(labels, predictions, names=None):
    labels = check_classes("labels", labels, names)
    predictions = check_classes("predictions", predictions, names)
    check_same_number(labels, predictions)
    return labels, predictions


def _ratings(labels, predictions):
    labels = check_ratings("labels", labels)
    predictions = check_ratings("predictions", predictions)
    check_same_number(labels, predictions)
    return labels, predictions


def _constant(values):
    return bool((values == values[0]).all())
