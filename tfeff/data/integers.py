"""Integers that users give, such as ids and labels."""

from typing import Any

import numpy as np

from tfeff.data.arrays import as_array

_INT32 = np.iinfo(np.int32)


def check_int32(name: str, values: Any) -> np.ndarray:
    """Returns integers as a new array of int32; raises where that would change one."""
    array = as_array(name, values, "an array of integers")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"`{name}` must be integers. Received: {name} of dtype {array.dtype}"
        )
    wrong = array[(array < _INT32.min) | (array > _INT32.max)]
    if wrong.size:
        raise ValueError(f"`{name}` must fit into int32. Received: {wrong[0]}")
    return array.astype(np.int32)
