"""Conversions between columns by relative position and by key, without a gather.

A function of `x = j - i` has only `2T - 1` values in a sequence of T; shifting copies
of them by rows gives its values at all pairs.
"""

from keras import ops

from tfeff.ops.slicing import slice_axis
from tfeff.utils.types import Tensor

# Rows that are shifted together: the number of a TPU's lanes.
BLOCK = 128


def relative_positions(length: Tensor | int) -> Tensor:
    """The relative positions `1 - T … T` of the columns that `relative_shift` takes.

    Args:
        length: integer `T`, or a scalar tensor.

    Returns:
        Integer tensor `[2T]`.

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(relative_positions(3)).tolist()
    [-2, -1, 0, 1, 2, 3]
    """
    return ops.arange(1 - length, length + 1, dtype="int32")


def relative_shift(x: Tensor) -> Tensor:
    """From columns by relative position to columns by key.

    `y[..., i, j] = x[..., i, j - i + T - 1]`.

    Args:
        x: tensor `[..., T, T + S]`, whose columns stand for the relative positions
            `1 - T … S` (the last is not used).

    Returns:
        Tensor `[..., T, S]`.

    Example:

    >>> from keras import ops
    >>> x = ops.broadcast_to(relative_positions(3), (3, 6))
    >>> ops.convert_to_numpy(relative_shift(x)).tolist()
    [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]

    Reference:
        Dai et al., "Transformer-XL", appendix B; Huang et al., "Music transformer".
    """
    if x.shape[-2] == 0:
        return x
    *leading, length, width = ops.shape(x)
    # Reshaping rows of T + S to rows of one less shifts each by one more to the right.
    x = ops.reshape(x, (*leading, length * width))
    x = slice_axis(x, -1, 0, -length)
    x = ops.reshape(x, (*leading, length, width - 1))
    return slice_axis(x, -1, length - 1)


def relative_unshift(x: Tensor) -> Tensor:
    """The inverse of `relative_shift`: from columns by key to relative position.

    `y[..., i, j - i + T - 1] = x[..., i, j]`, and 0 elsewhere.

    Args:
        x: tensor `[..., T, S]`.

    Returns:
        Tensor `[..., T, T + S]`.

    Example:

    >>> from keras import ops
    >>> y = relative_unshift(ops.ones((2, 2)))
    >>> ops.convert_to_numpy(y).tolist()
    [[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    """
    if x.shape[-2] == 0:
        return x
    *leading, length, keys = ops.shape(x)
    before = [(0, 0) for _ in leading]
    # Reshaping rows of T + S + 1 to rows of one less shifts each by one more to the
    # right; flipped before and after, to the left.
    x = ops.pad(ops.flip(x, axis=-1), (*before, (0, 0), (1, length)))
    x = ops.reshape(x, (*leading, length * (length + keys + 1)))
    x = ops.reshape(slice_axis(x, -1, 0, -length), (*leading, length, length + keys))
    return ops.flip(x, axis=-1)


def toeplitz(values: Tensor, count: Tensor | int | None = None) -> Tensor:
    """Expands values by relative position to pairs of positions.

    `y[..., i, j] = values[..., j - i + t - 1]`.

    Args:
        values: tensor `[..., t + S]` at the relative positions `1 - t … S` to the first
            of `t` queries.
        count: integer `t`, or a scalar tensor; `None` for half of the values, `t = S`.

    Returns:
        Tensor `[..., t, S]`.

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(toeplitz(relative_positions(2))).tolist()
    [[0, 1], [-1, 0]]
    """
    leading, width = ops.shape(values)[:-1], ops.shape(values)[-1]
    count = width // 2 if count is None else count
    keys = width - count
    block, starts = row_blocks(count)
    rows = ops.broadcast_to(values[..., None, :], (*leading, block, width))
    rows = relative_shift(rows)
    if len(starts) == 1:
        return rows
    # Later rows repeat the first block, shifted further to the right.
    return ops.concatenate([slice_axis(rows, -1, x, x + keys) for x in starts], axis=-2)


def row_blocks(length):
    """The number of positions in a block, and each block's first column.

    There is one block if the length is not known, 0, or not a multiple of 128.
    """
    if not isinstance(length, int) or not length or length % BLOCK:
        return length, [0]
    return BLOCK, range(length - BLOCK, -1, -BLOCK)
