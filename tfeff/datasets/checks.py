"""Checks of labels, predictions and the ids of examples."""

import collections
from collections.abc import Iterable, Sequence

import numpy as np

from tfeff.data.arrays import as_array, check_all, check_one_axis
from tfeff.utils.checks import is_number


def check_list(name: str, values: Iterable, kind: type | None = None) -> list:
    """Returns `values` as a list, all of type `kind` unless it is None, or raises."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be a list. Received: {name}={values!r:.80}")
    values = list(values)
    for value in values:
        if kind is not None and not isinstance(value, kind):
            raise TypeError(
                f"`{name}` must be a list of `{kind.__name__}`. It holds {value!r}"
            )
    return values


def check_names(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Returns `values` as a tuple of different strings, or raises."""
    if not isinstance(values, (tuple, list)):
        raise TypeError(
            f"`{name}` must be a list of names. Received: {name}={values!r:.80}"
        )
    values = tuple(check_list(name, values, str))
    if len(set(values)) < len(values) or not all(values):
        raise ValueError(f"`{name}` must be different names. Received: {values}")
    return values


def check_different(name: str, ids: Iterable, expected: str = "differ") -> None:
    """Raises unless all ids, or other values, differ as strings."""
    for id, count in collections.Counter(map(str, ids)).most_common(1):
        if count > 1:
            raise ValueError(
                f"`{name}` must {expected}. Received: {id!r} {count} times"
            )


def check_same_number(labels: np.ndarray, predictions: np.ndarray) -> None:
    """Raises unless there are as many predictions as labels, and at least one."""
    if len(labels) == 0 or len(labels) != len(predictions):
        raise ValueError(
            "`labels` and `predictions` must be equally many, at least 1. Received: "
            f"{len(labels)} and {len(predictions)}"
        )


def check_classes(
    name: str,
    values: np.ndarray,
    names: tuple[str, ...] | None = None,
    of: str = "",
) -> np.ndarray:
    """Returns `values` as an array `[N]` of classes, of `names` if given, or raises.

    `of` is the end of an error's message: whose values they are.
    """
    array = check_one_axis(name, as_array(name, values, "integers"), of)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"`{name}` must be integers. Received: {array.dtype}{of}")
    if names is not None:
        expected = f"classes from 0 to {len(names) - 1}, of {list(names)}"
        check_all(name, array, (array >= 0) & (array < len(names)), expected, of)
    return array


def check_range(name: str, values: Sequence[float]) -> tuple[float, float]:
    """Returns the least and the highest rating as floats, or raises."""
    is_pair = isinstance(values, (tuple, list)) and len(values) == 2
    try:
        numbers = tuple(float(x) for x in values if is_number(x)) if is_pair else ()
    except OverflowError:
        numbers = ()
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError(
            f"`{name}` must be the least and the highest one. "
            f"Received: {name}={values!r:.80}"
        )
    return numbers


def check_ratings(name: str, values: np.ndarray) -> np.ndarray:
    """Returns `values` as an array `[N]` of finite float64, or raises."""
    array = check_one_axis(name, as_array(name, values, "numbers"))
    if not (np.isrealobj(array) and np.issubdtype(array.dtype, np.number)):
        raise TypeError(f"`{name}` must be numbers. Received: {array.dtype}")
    check_all(name, array, np.isfinite(array), "finite")
    return array.astype(np.float64)
