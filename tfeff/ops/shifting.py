"""Between columns by relative position and columns by key, without a gather.

Whatever depends on positions through `x = j - i` alone has only `2T - 1` different
values in a sequence of T; a shift of rows lays them out over all pairs.
"""

from keras import ops

from tfeff.ops.slicing import slice_axis

# Positions of a block, within which rows move one by one: a TPU's row of lanes.
BLOCK = 128


def relative_positions(length):
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
    return ops.arange(1 - length, length + 1)


def relative_shift(x):
    """From columns by relative position to columns by key.

    `y[..., i, j] = x[..., i, j - i + T - 1]`.

    Args:
        x: tensor `[..., T, T + S]`, whose columns stand for the relative positions
            `1 - T … S` (the last is never read).

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
    *leading, length, width = ops.shape(x)
    # Rows of T + S, read back in rows of one less, move right by one a row: no gather.
    x = ops.reshape(x, (*leading, length * width))
    x = slice_axis(x, -1, 0, -length)
    x = ops.reshape(x, (*leading, length, width - 1))
    return slice_axis(x, -1, length - 1)


def relative_unshift(x):
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
    *leading, length, keys = ops.shape(x)
    before = [(0, 0) for _ in leading]
    # Rows of T + S + 1, read back in rows of one less, move right by one a row. They
    # are to move left, so they are turned about before and after.
    x = ops.pad(ops.flip(x, axis=-1), (*before, (0, 0), (1, length)))
    x = ops.reshape(x, (*leading, length * (length + keys + 1)))
    x = ops.reshape(slice_axis(x, -1, 0, -length), (*leading, length, length + keys))
    return ops.flip(x, axis=-1)


def toeplitz(values, count=None):
    """Lays values by relative position out over pairs of positions.

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
    # Later rows repeat the first block of them, further to the right.
    return ops.concatenate([slice_axis(rows, -1, x, x + keys) for x in starts], axis=-2)


def row_blocks(length):
    """Positions in a block, and the first relative position of each as a column.

    All are one block where the length is not known, 0, or 128 does not divide it.
    """
    if not isinstance(length, int) or not length or length % BLOCK:
        return length, [0]
    return BLOCK, range(length - BLOCK, -1, -BLOCK)
