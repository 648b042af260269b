"""How long the passages of questions are."""

from collections.abc import Sequence

import keras_hub
import numpy as np

from tfeff.data.finetuning.examples import (
    Question,
    SpanExamples,
    check_questions,
)
from tfeff.data.text.offset_tokenizer import encode_with_offsets


def passage_lengths(
    questions: SpanExamples | Sequence[Question],
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> np.ndarray:
    """The number of tokens of each passage, without special tokens.

    A passage counts once, however many questions ask about it.

    Args:
        questions: the questions, as from `tfeff.datasets` or a list.
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub.

    Returns:
        Integer array `[P]`, in the order in which the passages come first.

    Raises:
        ValueError: if there are no questions.
        TypeError: if they are none, or the tokenizer is of another kind.

    Example:
    ```python
    import tfeff

    passages = ["Ada wrote it.", "Ada wrote it.", "Ada."]
    questions = [
        tfeff.data.Question(str(index), "Who?", passage)
        for index, passage in enumerate(passages)
    ]
    tokenizer = tfeff.data.train_tokenizer(["Who wrote it? Ada."], 18)
    first, second = tfeff.data.passage_lengths(questions, tokenizer)
    assert first > second
    ```

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding", section
        4.2 and figure 6: paragraph length after tokenization.
    """
    questions = check_questions(questions)
    passages = list(dict.fromkeys(question.passage for question in questions))
    return np.array([len(ids) for ids, _ in encode_with_offsets(tokenizer, passages)])
