"""Checks of an encoder's inputs: compiled lookups beyond a table return wrong rows."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import keras_hub
import numpy as np

from tfeff.data.text.tokenizers import restore_vocabulary
from tfeff.encoders import Encoder
from tfeff.utils.checks import check_integer


@contextlib.contextmanager
def fitting(name: str, path: str | os.PathLike, **setting: Any) -> Iterator[None]:
    """Names the setting that does not fit an encoder, and where that came from."""
    ((own, value),) = setting.items()
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"`{own}` must fit the encoder of {name}={str(path)!r}. "
            f"Received: {own}={value!r}: {error}"
        ) from error


def check_length(encoder: Encoder, sequence_length: int) -> int:
    """Returns a length that the encoder has positions for, or raises."""
    limit = encoder.max_sequence_length if encoder.position == "absolute" else None
    return check_integer("sequence_length", sequence_length, 3, limit)


def check_fits(
    name: str, path: str | os.PathLike, encoder: Encoder, sequence_length: int
) -> None:
    """`check_length` of the encoder that the setting `name` has given as `path`."""
    with fitting(name, path, sequence_length=sequence_length):
        check_length(encoder, sequence_length)


def check_vocabulary(
    name: str, tokenizer: keras_hub.tokenizers.Tokenizer, encoder: Encoder
) -> None:
    """Raises where a tokenizer has more ids than the encoder has rows for."""
    restore_vocabulary(tokenizer)
    if tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            f"`{name}` must have no more ids than the encoder has rows. Received: "
            f"{tokenizer.vocabulary_size()} ids, {encoder.vocabulary_size} rows"
        )


def check_known_ids(token_ids: np.ndarray, encoder: Encoder) -> None:
    """Raises where features have ids that the encoder has no rows for."""
    highest = token_ids.max()
    if highest >= encoder.vocabulary_size:
        raise ValueError(
            "`features` must be made with the tokenizer of the encoder, which has "
            f"{encoder.vocabulary_size} rows. Received: features with the id {highest}"
        )
