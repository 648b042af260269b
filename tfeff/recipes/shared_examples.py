"""A recipe's message about texts that are in several parts of a data set."""

import itertools
from collections.abc import Mapping
from typing import Any

import tfeff


def print_shared(parts: Mapping[str, Any]) -> None:
    """Prints how many texts two parts share: one does not judge the other then.

    Args:
        parts: examples by the names of their parts.
    """
    texts = {name: set(_texts(examples)) for name, examples in parts.items()}
    for (one, known), (other, found) in itertools.combinations(texts.items(), 2):
        if shared := len(known & found):
            print(
                f"{shared:,} of {len(found):,} different texts of {other} are in "
                f"{one}, too"
            )


def _texts(examples):
    """The text of each example, without its label."""
    if isinstance(examples, tfeff.data.SpanExamples):
        return [(q.question, q.passage) for q in examples.questions]
    if isinstance(examples, tfeff.data.ChoiceExamples):
        return zip(examples.passages, examples.questions, examples.options)
    if isinstance(examples, tfeff.data.TokenExamples):
        return map(tuple, examples.words)
    return zip(examples.first, examples.second or examples.first)
