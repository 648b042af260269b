"""Integers that users give, such as ids and labels."""

from typing import Any

import numpy as np

_INT32 = np.iinfo(np.int32)


def check_int32(name: str, values: Any) -> np.ndarray:
    """Returns integers as a new array of int32; raises where that would change one."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be an array of integers. Received: {name}={values!r:.80}"
        ) from error
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"`{name}` must be integers. Received: {name} of dtype {array.dtype}"
        )
    wrong = array[(array < _INT32.min) | (array > _INT32.max)]
    if wrong.size:
        raise ValueError(f"`{name}` must fit into int32. Received: {wrong[0]}")
    return array.astype(np.int32)
