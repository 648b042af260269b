"""Checks of an encoder's inputs: compiled lookups beyond a table return wrong rows."""

import keras_hub
import numpy as np

from tfeff.encoders import Encoder
from tfeff.utils.checks import check_integer


def check_length(
    encoder: Encoder, sequence_length: int, of: str = "the encoder"
) -> int:
    """Returns a length that the encoder has positions for, or raises; `of` names it."""
    length = check_integer("sequence_length", sequence_length, 3)
    if encoder.position == "absolute" and length > encoder.max_sequence_length:
        raise ValueError(
            f"`sequence_length` must be at most {encoder.max_sequence_length}, the "
            f"number of absolute positions of {of}. Received: sequence_length={length}"
        )
    return length


def check_vocabulary(
    name: str, tokenizer: keras_hub.tokenizers.Tokenizer, encoder: Encoder
) -> None:
    """Raises where a tokenizer has more ids than the encoder has rows for."""
    if tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            f"`{name}` must have no more ids than the encoder has rows. Received: "
            f"{tokenizer.vocabulary_size()} ids, {encoder.vocabulary_size} rows"
        )


def check_token_ids(token_ids: np.ndarray, encoder: Encoder) -> None:
    """Raises where features have ids that the encoder has no rows for."""
    highest = token_ids.max()
    if highest >= encoder.vocabulary_size:
        raise ValueError(
            "`features` must be made with the tokenizer of the encoder, which has "
            f"{encoder.vocabulary_size} rows. Received: features with the id {highest}"
        )
