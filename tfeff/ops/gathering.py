"""Rows of a sequence at given positions."""

from keras import ops


def take_positions(x, positions):
    """Rows of each sequence at its own positions: `y[b, m] = x[b, positions[b, m]]`.

    Whole rows move, from the sequences laid end to end. `ops.take_along_axis` turns
    the sequences over first and gathers number by number; on a TPU a copy of them, and
    all that it is computed from, then waits for the head.

    Args:
        x: tensor `[B, T, ...]`.
        positions: integer tensor `[B, M]`, from 0 to `T - 1`. What a position outside
            gives is up to the backend: TensorFlow raises an error, but for programs of
            XLA, which take some row; JAX gives NaN where `x` is float.

    Returns:
        Tensor `[B, M, ...]`, in the dtype of `x`.

    Example:

    >>> x = ops.reshape(ops.arange(6), (2, 3, 1))
    >>> y = take_positions(x, ops.convert_to_tensor([[2, 0], [1, 1]]))
    >>> ops.convert_to_numpy(y)[..., 0].tolist()
    [[2, 0], [4, 4]]
    """
    batch, length, *rest = ops.shape(x)
    positions = ops.cast(positions, "int32")
    starts = ops.arange(batch, dtype="int32")[:, None] * length
    inside = ops.logical_and(positions >= 0, positions < length)
    # A row that does not exist, rather than one of the next sequence.
    rows = ops.where(inside, starts + positions, batch * length)
    return ops.take(ops.reshape(x, (batch * length, *rest)), rows, axis=0)
