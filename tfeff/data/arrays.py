"""Arrays that users give, such as ids, labels, ratings and logits."""

from typing import Any

import numpy as np

from tfeff.utils.checks import is_number

_INT32 = np.iinfo(np.int32)


def as_array(name: str, values: Any, what: str, dtype: Any = None) -> np.ndarray:
    """Returns the values as an array; raises a TypeError where they are not `what`.

    Where a `dtype` is given, all numbers become it, and nothing else does. NumPy has no
    bfloat16, which Keras' models predict in that precision: it becomes float32.
    """
    try:
        array = np.asarray(values)
        if array.dtype.name == "bfloat16":
            array = array.astype(np.float32)
        if dtype is None:
            return array
        if array.dtype.kind not in "biuf":
            raise TypeError(f"no numbers: {array.dtype}")
        return array.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be {what}. Received: {name}={values!r:.80}"
        ) from error


def check_one_axis(name: str, array: np.ndarray, of: str = "") -> np.ndarray:
    """Returns an array `[N]`, or raises; `of` tells whose values they are."""
    if array.ndim != 1:
        raise ValueError(
            f"`{name}` must have one axis. Received: {name}{of} of shape {array.shape}"
        )
    return array


def check_all(
    name: str, array: np.ndarray, right: np.ndarray, expected: str, of: str = ""
) -> None:
    """Raises, with the first other value, unless all values `[N]` are right."""
    if not right.all():
        index = int(right.argmin())
        raise ValueError(
            f"`{name}` must be {expected}. Received: {array[index]} at {index}{of}"
        )


def _first_other(array):
    """The words for the first value `[N]` that is no whole number, if there is one."""
    for index, value in enumerate(array if array.ndim == 1 else ()):
        if not is_number(value) or not float(value).is_integer():
            return f", with {value!s:.80} at {index}"
    return ""


def check_int32(name: str, values: Any) -> np.ndarray:
    """Returns integers as a new array of int32; raises where that would change one."""
    array = as_array(name, values, "an array of integers")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"`{name}` must be integers. Received: {name} of dtype {array.dtype}"
            + _first_other(array)
        )
    wrong = array[(array < _INT32.min) | (array > _INT32.max)]
    if wrong.size:
        raise ValueError(f"`{name}` must fit into int32. Received: {wrong[0]}")
    return array.astype(np.int32)
