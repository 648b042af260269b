"""Consecutive entries of one axis."""

import keras
from keras import ops

from tfeff.utils.types import Tensor


def slice_axis(
    x: Tensor, axis: int, start: Tensor | int, stop: Tensor | int | None = None
) -> Tensor:
    """Slices one axis from `start` to `stop`.

    This equals indexing, but if the axis is of known length, TensorFlow's gradient is a
    padding. The gradient of an index took longer on a CPU than the products with the
    slice.

    Args:
        x: tensor of any shape.
        axis: integer, the axis that is sliced.
        start, stop: integers or integer tensors as in `x[start:stop]`; `None` for
            `stop` is the end.

    Returns:
        Tensor like `x`, but for the length of `axis`.

    Example:

    >>> ops.convert_to_numpy(slice_axis(ops.arange(5), 0, 1, -1)).tolist()
    [1, 2, 3]
    """
    index = slice(start, stop)
    known = isinstance(x.shape[axis], int) and isinstance(start, int)
    known = known and isinstance(stop, int | None)
    if not known or keras.backend.backend() != "tensorflow":
        where = [slice(None)] * len(x.shape)
        where[axis] = index
        return x[tuple(where)]
    start, stop, _ = index.indices(x.shape[axis])
    starts, shape = [0] * len(x.shape), list(ops.shape(x))
    starts[axis], shape[axis] = start, max(stop - start, 0)
    return ops.slice(x, starts, shape)
