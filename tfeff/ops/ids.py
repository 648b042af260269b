"""Integer ids that index rows: tokens, segments, positions.

In eager calls the values are known, and an id out of range raises. In a traced program
they are not known; an id out of range then never indexes another row.
"""

from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from tfeff.compat.layers import rebuilds_model

_WIDE = ("int64", "uint32", "uint64")
_LAST = 2**31 - 1
_OF_INPUTS = (
    ", and a model of it must begin with `keras.Input(..., dtype='int32')`; a "
    "subclassed model is exported with an int32 `input_signature`"
)


def known_values(x) -> np.ndarray | None:
    """The values of a tensor, or `None` if it is traced."""
    if isinstance(x, keras.KerasTensor):
        return None
    try:
        return np.asarray(x)
    # A traced tensor has no values: so say TensorFlow, JAX and PyTorch.
    except (NotImplementedError, TypeError, RuntimeError):
        return None


def check_integers(name: str, x, hint: str | None = None) -> None:
    """Raises unless the tensor `x` has an integer dtype, or Keras builds a model.

    Args:
        name: the argument that it was given as.
        x: the tensor.
        hint: what the message says of other dtypes; `None` for what it says of inputs.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if "int" not in dtype and not rebuilds_model():
        if hint is None:
            # The default of `keras.Input` and of `Sequential` is float32.
            hint = _OF_INPUTS if dtype == "float32" else ""
        raise TypeError(
            f"`{name}` must be an integer tensor{hint}. Received: {name}.dtype={dtype}"
        )


def check_known(name: str, x, expected: str, holds) -> bool:
    """Raises if `holds` is false for a known value of `x`.

    Returns:
        Whether the values are known.
    """
    values = known_values(x)
    if values is None:
        return False
    wrong = ~holds(values)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"`{name}` must be {expected}. "
            f"Received: {values[index]} at {list(index)} of {name}"
        )
    return True


def check_range(name: str, x, minimum: int, maximum: int) -> bool:
    """As `check_known`, of integers from `minimum` to `maximum`."""
    expected = f"from {minimum} to {maximum}"
    return check_known(name, x, expected, lambda v: (v >= minimum) & (v <= maximum))


def as_int32(name: str, x):
    """Casts the integer tensor `x` to int32 without overflow.

    A known value beyond int32 raises. In a traced program it becomes the largest or the
    smallest int32, neither of which is the id of a row.
    """
    check_integers(name, x)
    if keras.backend.standardize_dtype(x.dtype) in _WIDE:
        check_range(name, x, -_LAST - 1, _LAST)
        if keras.backend.standardize_dtype(x.dtype) == "uint64":
            x = ops.minimum(x, ops.cast(_LAST, "uint64"))
        x = ops.clip(ops.cast(x, "int64"), -_LAST - 1, _LAST)
    return ops.cast(x, "int32")


def exact_tensor(name: str, x):
    """The tensor of `x`, whose integers stay what they are.

    Keras on JAX makes int32 of NumPy's int64, and so 1 of 2³² + 1.

    Raises:
        ValueError: if a value of an array does not fit into the tensor's dtype.
    """
    tensor = ops.convert_to_tensor(x)
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.dtype.name != dtype:
        limits = np.iinfo(dtype)
        check_range(name, x, limits.min, limits.max)
    return tensor


def exact_input(name: str, x):
    """A model's input as int32; Keras' own cast turns 3.9 and 2³² + 3 into 3.

    Raises:
        TypeError: if `x` is not an integer tensor; a padding mask may be bool.
        ValueError: if a known value of `x` does not fit into int32.
    """
    x = exact_tensor(name, x)
    if name == "padding_mask" and keras.backend.standardize_dtype(x.dtype) == "bool":
        return ops.cast(x, "int32")
    return as_int32(name, x)


def exact_inputs(inputs: Mapping, of_model: Mapping) -> dict:
    """A model's inputs in its order, without others; those of integers exact.

    Keras matches a dict of inputs to those of a functional model by order alone: one
    more entry, such as `mask_positions`, would shift those after it.

    Args:
        inputs: what the model is called with, by name.
        of_model: the model's inputs by name, `keras.KerasTensor`s.
    """
    return {
        name: exact_input(name, inputs[name]) if "int" in spec.dtype else inputs[name]
        for name, spec in of_model.items()
    }


def rows_of(name: str, x, count: int):
    """Row indices of ids from 0 to `count - 1`, for a look-up.

    Returns:
        `(rows, inside)`: `x` as int32 without negative values, which Keras would count
        from the end; and a bool tensor of its shape, true at ids in range, or `None` if
        all are known to be.

    Raises:
        TypeError: if `x` is not an integer tensor.
        ValueError: if a value of `x` is known to be out of range.
    """
    rows = as_int32(name, x)
    if check_range(name, rows, 0, count - 1):
        return rows, None
    inside = ops.logical_and(rows >= 0, rows < count)
    return ops.where(rows < 0, _LAST, rows), inside
