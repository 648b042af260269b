"""Metrics of labelled phrases, those of CoNLL's official script, by seqeval."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from tfeff.data.arrays import as_array
from tfeff.data.finetuning.examples import TokenExamples
from tfeff.datasets.checks import check_classes
from tfeff.datasets.metrics import accuracy
from tfeff.utils.checks import check_ordered

PHRASE_METRICS = ("f1", "precision", "recall", "accuracy")


def is_of_phrase(label: str) -> bool:
    """Whether a label is `O`, or marks phrases by `B-` and `I-`."""
    return label == "O" or label.startswith(("B-", "I-"))


def some_metrics(
    names: Sequence[str], examples: TokenExamples, predictions: Sequence[np.ndarray]
) -> dict[str, float]:
    """Those metrics of `phrase_metrics` that have these names.

    The accuracy alone needs no phrases: `names` is then `("accuracy",)`.
    """
    if names == ("accuracy",):
        right, found = map(np.concatenate, _compared(examples, predictions))
        return {"accuracy": accuracy(right, found)}
    scores = phrase_metrics(examples, predictions)
    return {name: scores[name] for name in names}


def phrase_metrics(
    examples: TokenExamples, predictions: Sequence[np.ndarray]
) -> dict[str, float]:
    """F1, precision and recall of phrases, and the accuracy of words.

        precision = TP / (TP + FP)
        recall = TP / (TP + FN)
        f1 = 2 TP / (2 TP + FP + FN)
        accuracy = 1/W Σ_w [y_w = p_w]

    with `TP` phrases that are found, `FP` predicted ones that are wrong and `FN` that
    are missed, and the labels `y` and predictions `p` of all `W` words. A phrase counts
    as found if its type, first and last word are right. Labels are read as CoNLL's
    `conlleval` reads them: an `I-` without a `B-` before it begins a phrase. BIOES
    and BILOU are read, too.

    Args:
        examples: sentences with labels.
        predictions: for each sentence `[W]` integers, the predicted labels.

    Returns:
        `f1`, `precision`, `recall` and `accuracy`; NaN where it is 0 / 0.

    Raises:
        ValueError: if there are no labels, the lengths differ, or a prediction is none
            of the labels.
        TypeError: if the predictions are not lists of integers.

    Example:

    >>> import tfeff
    >>> examples = tfeff.data.TokenExamples(
    ...     (("Ada", "and", "Bob"),), ([1, 0, 1],), ("O", "B-PER", "I-PER"), ("0",)
    ... )
    >>> tfeff.datasets.phrase_metrics(examples, [[1, 2, 1]])
    {'f1': 0.5, 'precision': 0.5, 'recall': 0.5, 'accuracy': 0.6666666666666666}
    """
    from seqeval import metrics

    compared = _compared(examples, predictions)
    names = _as_seqeval(_names(examples))
    right, found = (
        [[names[label] for label in row] for row in rows] for rows in compared
    )
    with warnings.catch_warnings():
        # NaN says what is undefined; labels need not be of phrases.
        warnings.simplefilter("ignore")
        scores = {
            "f1": metrics.f1_score(right, found),
            "precision": metrics.precision_score(right, found),
            "recall": metrics.recall_score(right, found),
            "accuracy": metrics.accuracy_score(right, found),
        }
        wanted, got = (
            len(metrics.sequence_labeling.get_entities(rows)) for rows in (right, found)
        )
    defined = {"f1": wanted + got, "precision": got, "recall": wanted, "accuracy": 1}
    return {
        name: float(score) if defined[name] else math.nan
        for name, score in scores.items()
    }


def _as_seqeval(names):
    """The labels with seqeval's prefixes: of BILOU, `L-` and `U-` are `E-` and `S-`."""
    prefixes = {name.split("-")[0] for name in names if name != "O"}
    if not prefixes <= set("BILU"):
        return names
    others = {"L": "E", "U": "S"}
    return [others.get(name[0], name[0]) + name[1:] for name in names]


def _compared(examples, predictions):
    """The labels of the sentences, and the predicted ones, or an error."""
    if not isinstance(examples, TokenExamples):
        raise TypeError(
            f"`examples` must be `TokenExamples`. Received: examples={examples!r:.80}"
        )
    if examples.labels is None:
        raise ValueError("`examples` must have labels. Received: none")
    return examples.labels, check_labels(examples, predictions)


def check_labels(
    examples: TokenExamples, predictions: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The predicted labels of each sentence as arrays `[W]`, or an error."""
    check_ordered("predictions", predictions, "labels for each sentence")
    predictions = [
        as_array("predictions", row, "labels of words") for row in predictions
    ]
    sizes = [len(sentence) for sentence in examples.words]
    if [row.shape for row in predictions] != [(size,) for size in sizes]:
        raise ValueError(
            "`predictions` must have a label for each word of each sentence. Received: "
            f"{sum(row.size for row in predictions)} labels in {len(predictions)} "
            f"sentences, for {sum(sizes)} words in {len(sizes)}"
        )
    names = _names(examples)
    return [
        check_classes("predictions", row, names, f" of {index}")
        for index, row in enumerate(predictions)
    ]


def _names(examples: TokenExamples) -> tuple[str, ...]:
    if examples.label_names is None:
        raise ValueError("`examples` must have `label_names`. Received: none")
    return examples.label_names
