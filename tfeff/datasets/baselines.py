"""Baselines that read no text: a floor under every score.

A class that is common in a development set gives a score by itself: on MRPC, where two
pairs in three are paraphrases, who always says so has 0.81 of F1.
"""

import collections
from typing import cast

import numpy as np

from tfeff.data.finetuning.examples import SpanExamples, TokenExamples
from tfeff.datasets.kinds import KINDS, AnyExamples


def baseline_name(examples: AnyExamples) -> str:
    """The name of the baseline of such examples.

    Args:
        examples: examples of a task.

    Returns:
        `"majority baseline"`, of ratings `"mean baseline"`, of words
        `"most-frequent-tag baseline"`.

    Raises:
        TypeError: if `examples` are of no such kind.

    Example: see `baseline_predictions`.
    """
    _check_kind("examples", examples)
    if isinstance(examples, TokenExamples):
        return "most-frequent-tag baseline"
    return f"{'mean' if examples.is_rated else 'majority'} baseline"


def baseline_predictions(
    train: AnyExamples, examples: AnyExamples
) -> np.ndarray | dict[str, str] | list[np.ndarray]:
    """Predictions from training labels alone, as `Dataset.metrics` takes them.

    For texts and options the commonest class, for ratings their mean, for questions
    the commonest answer, which may be none. For words each one's commonest label, and
    for words that are not in `train` the commonest label of all. Of equally common
    ones it is the first: by id, or as answers stand in `train`.

    Args:
        train: examples with labels.
        examples: of the same kind, to predict.

    Returns:
        `[N]` int32 classes or float32 ratings; for questions a text by id; for words
        `[W]` int32 for each sentence.

    Raises:
        TypeError: if the examples are of two kinds.
        ValueError: if `train` is empty or has no labels.

    Example:

    >>> import tfeff
    >>> names = ("O", "B-PER")
    >>> train = tfeff.data.TokenExamples(
    ...     (("Ada", "saw", "Bob"),), ([1, 0, 1],), names, ("0",)
    ... )
    >>> new = tfeff.data.TokenExamples((("Bob", "saw", "Eve"),))
    >>> [row.tolist() for row in tfeff.datasets.baseline_predictions(train, new)]
    [[1, 0, 1]]
    >>> tfeff.datasets.baseline_name(train)
    'most-frequent-tag baseline'

    Reference:
        Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 shared task:
        Chunking", 2000, section 4, whose baseline has the commonest chunk tag of each
        part of speech.
    """
    _check_kind("train", train)
    if type(train) is not type(examples):
        raise TypeError(
            "`train` and `examples` must be of one kind. Received: "
            f"{type(train).__name__} and {type(examples).__name__}"
        )
    if not len(train):
        raise ValueError("`train` must have labelled examples. Received: no examples")
    if isinstance(train, SpanExamples):
        answers = collections.Counter(
            next(iter(question.answers), "") for question in train.questions
        )
        ((answer, _),) = answers.most_common(1)
        return {q.id: answer for q in cast(SpanExamples, examples).questions}
    if train.labels is None:
        raise ValueError("`train` must have labelled examples. Received: no labels")
    if isinstance(train, TokenExamples):
        return _tags(train, examples)
    if train.is_rated:
        return np.full(len(examples), np.mean(train.labels, dtype="float64"), "float32")
    return np.full(len(examples), np.bincount(train.labels).argmax(), "int32")


def _check_kind(name, examples):
    if not isinstance(examples, KINDS):
        known = [kind.__name__ for kind in KINDS]
        raise TypeError(
            f"`{name}` must be one of {known}. Received: {name}={examples!r:.80}"
        )


def _tags(train, examples):
    """Each word's commonest label."""
    counts = collections.defaultdict(lambda: np.zeros(len(train.label_names), int))
    for sentence, labels in zip(train.words, train.labels):
        for word, label in zip(sentence, labels):
            counts[word][label] += 1
    commonest = sum(counts.values()).argmax()
    tags = {word: count.argmax() for word, count in counts.items()}
    return [
        np.array([tags.get(word, commonest) for word in sentence], "int32")
        for sentence in examples.words
    ]
