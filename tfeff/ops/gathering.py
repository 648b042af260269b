"""Rows of a sequence at given positions."""

from keras import ops

from tfeff.ops.ids import as_int32, check_range, zeros_outside


def gather_positions(x, positions):
    """Rows of each sequence at its own positions: `y[b, m] = x[b, positions[b, m]]`.

    Whole rows move, from the sequences laid end to end. `ops.take_along_axis` turns
    the sequences over first and gathers number by number; on a TPU a copy of them, and
    all that it is computed from, then waits for the head.

    Args:
        x: tensor `[B, T, ...]`.
        positions: integer tensor `[B, M]`, from 0 to `T - 1`. A position outside is
            refused where it is known, in eager calls. In a compiled program it is an
            error of TensorFlow on CPUs; on GPUs and with XLA it gives zeros.

    Returns:
        Tensor `[B, M, ...]`, in the dtype of `x`.

    Raises:
        TypeError: if `positions` is not an integer tensor.
        ValueError: if a position is known to be outside.

    Example:

    >>> x = ops.reshape(ops.arange(6), (2, 3, 1))
    >>> y = gather_positions(x, ops.convert_to_tensor([[2, 0], [1, 1]]))
    >>> ops.convert_to_numpy(y)[..., 0].tolist()
    [[2, 0], [4, 4]]
    """
    batch, length, *rest = ops.shape(x)
    positions = as_int32("positions", ops.convert_to_tensor(positions))
    known = isinstance(length, int) and check_range(
        "positions", positions, 0, length - 1
    )
    starts = ops.arange(batch, dtype="int32")[:, None] * length
    inside = ops.logical_and(positions >= 0, positions < length)
    # A row that does not exist, rather than one of the next sequence.
    rows = ops.where(inside, starts + positions, batch * length)
    y = ops.take(ops.reshape(x, (batch * length, *rest)), rows, axis=0)
    return y if known else zeros_outside(y, inside)
