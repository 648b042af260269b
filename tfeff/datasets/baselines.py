"""What a model that reads no text answers: a floor under every score.

A class that is common in a development set gives a score by itself: on MRPC, where two
pairs in three are paraphrases, who always says so has 0.81 of F1.
"""

import collections

import numpy as np

from tfeff.data.finetuning.examples import (
    ChoiceExamples,
    SpanExamples,
    TextExamples,
    TokenExamples,
)

MAJORITY, MEAN, TAG = "majority", "mean", "most-frequent-tag"


def baseline_name(
    examples: TextExamples | ChoiceExamples | SpanExamples | TokenExamples,
):
    """What a baseline for such examples is called."""
    if isinstance(examples, TokenExamples):
        return f"{TAG} baseline"
    rated = isinstance(examples, TextExamples) and examples.label_names is None
    return f"{MEAN if rated else MAJORITY} baseline"


def baseline_predictions(
    train: TextExamples | ChoiceExamples | SpanExamples | TokenExamples,
    examples: TextExamples | ChoiceExamples | SpanExamples | TokenExamples,
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
    >>> new = tfeff.data.TokenExamples((("Bob", "saw", "Eve"),), None, names, ("0",))
    >>> [row.tolist() for row in tfeff.datasets.baseline_predictions(train, new)]
    [[1, 0, 1]]

    Reference:
        Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 shared task:
        Chunking", 2000, section 4, whose baseline has the commonest chunk tag of each
        part of speech.
    """
    if type(train) is not type(examples):
        raise TypeError(
            "`train` and `examples` must be of one kind. Received: "
            f"{type(train).__name__} and {type(examples).__name__}"
        )
    spans = isinstance(train, SpanExamples)
    if not len(train) or (not spans and train.labels is None):
        what = "examples" if not len(train) else "labels"
        raise ValueError(f"`train` must have labelled examples. Received: no {what}")
    if spans:
        answers = collections.Counter(
            next(iter(question.answers), "") for question in train.questions
        )
        ((answer, _),) = answers.most_common(1)
        return {question.id: answer for question in examples.questions}
    if isinstance(train, TokenExamples):
        return _tags(train, examples)
    if train.label_names is None:
        return np.full(len(examples), np.mean(train.labels, dtype="float64"), "float32")
    return np.full(len(examples), np.bincount(train.labels).argmax(), "int32")


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
