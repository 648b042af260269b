"""Checks of arguments that several layers share. Each names what was wrong."""

import numbers

import keras
from keras import ops


def positive_int(name: str, value) -> int:
    """Returns `value` if it is an integer of at least 1, else raises."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be an integer. Received: {name}={value!r}")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    return int(value)


def rate(name: str, value) -> float:
    """Returns `value` if it is a probability below 1, else raises."""
    if not isinstance(value, numbers.Real) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a number in [0, 1). Received: {name}={value!r}"
        )
    return float(value)


def one_of(name: str, value, choices) -> str:
    """Returns `value` if it is among `choices`, else raises."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {sorted(choices)}. Received: {name}={value!r}"
        )
    return value


def divides(name: str, parts: int, dim: int) -> None:
    """Raises unless `parts` equal pieces make up the hidden size `dim`."""
    if dim is None:
        raise ValueError(
            "The last axis of the hidden state must have a known size. "
            "Received: hidden_dim=None"
        )
    if dim % parts:
        raise ValueError(
            f"`{name}` must divide `hidden_dim`. "
            f"Received: {name}={parts}, hidden_dim={dim}"
        )


def hidden_state(name: str, shape) -> None:
    """Raises unless `shape` is that of a batch of sequences of vectors."""
    if len(shape) != 3:
        raise ValueError(
            f"`{name}` must have shape (batch, length, hidden_dim). "
            f"Received: {name}.shape={tuple(shape)}"
        )


def visible_keys(padding_mask, hidden):
    """The padding mask as a bool tensor `[B, T]`, checked, or `None`.

    Args:
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens, or
            `None`.
        hidden: the tensor `[B, T, D]` whose positions it describes.
    """
    if padding_mask is None:
        return None
    padding_mask = ops.convert_to_tensor(padding_mask)
    dtype = keras.backend.standardize_dtype(padding_mask.dtype)
    if dtype != "bool" and "int" not in dtype:
        raise TypeError(
            "`padding_mask` must be a bool or integer tensor with 1 at real tokens. "
            f"Received: padding_mask.dtype={dtype}"
        )
    shape = tuple(padding_mask.shape)
    expected = tuple(hidden.shape[:2])
    fits = len(shape) == 2 and all(
        known is None or wanted is None or known == wanted
        for known, wanted in zip(shape, expected)
    )
    if not fits:
        raise ValueError(
            "`padding_mask` must have shape (batch, length), that of the tokens: "
            f"{expected}. Received: padding_mask.shape={shape}"
        )
    return ops.cast(padding_mask, "bool")
