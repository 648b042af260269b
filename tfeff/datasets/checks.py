"""Checks of labels, predictions and the ids of examples."""

from collections.abc import Iterable

import numpy as np


def check_list(name: str, values: Iterable, kind: type | None = None) -> list:
    """Returns `values` as a list, all of the type `kind` if one is given, or raises."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be a list. Received: {name}={values!r}")
    values = list(values)
    for value in values:
        if kind is not None and not isinstance(value, kind):
            raise TypeError(
                f"`{name}` must be a list of `{kind.__name__}`. It holds {value!r}"
            )
    return values


def check_triples(name: str, values: Iterable) -> list:
    """Returns `values` as a list if they are MultiRC's ids, or raises."""
    values = check_list(name, values)
    for value in values:
        if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 3:
            raise TypeError(
                f"`{name}` must be (passage, question, answer). It holds {value!r}"
            )
    return values


def check_values(
    name: str, values: np.ndarray, names: tuple[str, ...] | None
) -> np.ndarray:
    """Returns `values` as an array `[N]` of classes or of ratings, or raises."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"`{name}` must have one axis. Received: {name} of shape {array.shape}"
        )
    if names is None:
        if not (np.isrealobj(array) and np.issubdtype(array.dtype, np.number)):
            raise TypeError(f"`{name}` must be numbers. Received: {array.dtype}")
        wrong = ~np.isfinite(array)
        expected = "finite"
    else:
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"`{name}` must be integers. Received: {array.dtype}")
        wrong = (array < 0) | (array >= len(names))
        expected = f"classes from 0 to {len(names) - 1}, of {list(names)}"
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"`{name}` must be {expected}. Received: {array[place]} at {place}"
        )
    return array
