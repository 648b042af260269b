"""The kinds of examples that data sets have, and of predictions for them."""

from collections.abc import Mapping
from typing import TypeAlias, get_args

import numpy as np

from tfeff.data.finetuning.examples import (
    ChoiceExamples,
    SpanAnswer,
    SpanExamples,
    TextExamples,
    TokenExamples,
)

AnyExamples: TypeAlias = TextExamples | ChoiceExamples | SpanExamples | TokenExamples
KINDS = get_args(AnyExamples)
# Classes or ratings, texts by a question's id, answers, and classes of words.
Predictions: TypeAlias = (
    np.ndarray | Mapping[str, str] | tuple[SpanAnswer, ...] | list[np.ndarray]
)
