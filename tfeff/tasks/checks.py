"""Checks of labels and predictions."""

import numpy as np


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
