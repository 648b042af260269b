"""Rows of a sequence at given positions."""

import keras
from keras import ops

from tfeff.ops.ids import as_int32, check_range, exact_tensor
from tfeff.ops.masking import zeros_outside
from tfeff.utils.types import Tensor


def gather_positions(x: Tensor, positions: Tensor) -> Tensor:
    """Rows of each sequence at its own positions: `y[b, m] = x[b, positions[b, m]]`.

    Whole rows are gathered from the concatenated sequences. `ops.take_along_axis`
    transposes first and gathers element by element; on a TPU a transposed copy of the
    hidden states then stays alive until the head runs.

    Args:
        x: tensor `[B, T, ...]`.
        positions: integer tensor `[B, M]`, from 0 to `T - 1`. Eager calls raise for a
            position out of range. A compiled program raises with TensorFlow on CPUs,
            and gives zeros on GPUs and with XLA.

    Returns:
        Tensor `[B, M, ...]`, in the dtype of `x`.

    Raises:
        TypeError: if `positions` is not an integer tensor.
        ValueError: if a position is known to be out of range.

    Example:

    >>> x = ops.reshape(ops.arange(6), (2, 3, 1))
    >>> y = gather_positions(x, ops.convert_to_tensor([[2, 0], [1, 1]]))
    >>> ops.convert_to_numpy(y)[..., 0].tolist()
    [[2, 0], [4, 4]]
    """
    batch, length, *rest = ops.shape(x)
    positions = as_int32("positions", exact_tensor("positions", positions))
    known = isinstance(length, int) and check_range(
        "positions", positions, 0, length - 1
    )
    inside = ops.logical_and(positions >= 0, positions < length)
    if keras.backend.backend() == "jax":
        # Sequence by sequence, so that devices which share a batch gather from their
        # own sequences, and move none.
        rows = ops.where(inside, positions, length)
        y = ops.vectorized_map(lambda one: ops.take(*one, axis=0), (x, rows))
        return y if known else zeros_outside(y, inside)
    starts = ops.arange(batch, dtype="int32")[:, None] * length
    # Out of range: a row that does not exist, not one of the next sequence.
    rows = ops.where(inside, starts + positions, batch * length)
    y = ops.take(ops.reshape(x, (batch * length, *rest)), rows, axis=0)
    return y if known else zeros_outside(y, inside)
