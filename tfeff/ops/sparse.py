"""The fixed pattern of the Sparse Transformer, in two published readings."""

from keras import ops

from tfeff.ops.slicing import slice_axis

# How many positions a window has in common with the next one.
PATTERNS = {"fairseq": 1, "sparse_transformer": 0}


def fixed_pattern(length, stride: int, expressivity: int, pattern: str = "fairseq"):
    """Which keys each query sees in bidirectional fixed sparse attention.

    The sequence is cut into windows of `stride` positions. A query sees its own
    window, and of every window the summary, its last `expressivity` positions. In
    the pattern `"sparse_transformer"` that is exactly so. In `"fairseq"`, windows
    and summaries are closed at both ends: both take in the first position of the
    next window, too, and that position counts to the window before.

    Args:
        length: integer or integer tensor `T`.
        stride: integer, positions in a window.
        expressivity: integer, positions in a summary, at most `stride`.
        pattern: `"fairseq"` or `"sparse_transformer"`.

    Returns:
        Bool tensor `[T, T]`, true where query `i` sees key `j`.

    Example:

    >>> from keras import ops
    >>> seen = fixed_pattern(4, stride=2, expressivity=1, pattern="sparse_transformer")
    >>> ops.convert_to_numpy(seen).astype(int).tolist()
    [[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]]

    Reference:
        Child et al., "Generating long sequences with sparse Transformers", section
        4.3; as used by Qiu et al., "Blockwise self-attention", section 4.
    """
    positions = ops.arange(length)
    return fixed_pattern_at(
        positions[:, None], positions[None], stride, expressivity, pattern
    )


def fixed_pattern_at(i, j, stride: int, expressivity: int, pattern: str = "fairseq"):
    """`fixed_pattern` of the queries at positions `i` and the keys at `j`.

    Args:
        i, j: integer tensors that broadcast against each other.
        stride, expressivity, pattern: as in `fixed_pattern`.

    Returns:
        Bool tensor of their common shape.
    """
    if pattern == "sparse_transformer":
        window = i // stride == j // stride
        summary = j % stride >= stride - expressivity
        return ops.logical_or(window, summary)
    # Position w·stride belongs to the window w - 1, but for w = 0.
    start = ops.maximum(i - 1, 0) // stride * stride
    window = ops.logical_and(j >= start, j <= start + stride)
    summary = ops.logical_or(
        j % stride >= stride - expressivity,
        ops.logical_and(j % stride == 0, j > 0),
    )
    return ops.logical_or(window, summary)


def windows(x, stride: int, overlap: int):
    """Lays out the windows of sequences, one below the other.

    Window `w` has the positions `w stride, … (w + 1) stride + overlap - 1`. Zeros fill
    up the last one.

    Args:
        x: tensor `[..., T, x]`.
        stride: integer, how far windows are apart.
        overlap: integer, 0 or 1: positions that a window shares with the next one.

    Returns:
        Tensor `[..., W (stride + overlap), x]` of `W ≥ 1` windows.

    Example:

    >>> from keras import ops
    >>> x = ops.arange(1, 6)[:, None]
    >>> ops.convert_to_numpy(windows(x, 2, 1))[:, 0].tolist()
    [1, 2, 3, 3, 4, 5]
    """
    *leading, length, width = ops.shape(x)
    count = ops.maximum if not isinstance(length, int) else max
    count = count((length - overlap + stride - 1) // stride, 1)
    missing = count * stride + overlap - length
    x = ops.pad(x, [*((0, 0) for _ in leading), (0, missing), (0, 0)])
    if not overlap:
        return x

    def parted(x):
        return ops.reshape(x, (*leading, count, stride, width))

    first, shifted = parted(slice_axis(x, -2, 0, -1)), parted(slice_axis(x, -2, 1))
    frames = ops.concatenate([first, slice_axis(shifted, -2, stride - 1)], axis=-2)
    return ops.reshape(frames, (*leading, count * (stride + 1), width))


def from_windows(x, length, stride: int, overlap: int):
    """The positions of windows in order, the inverse of `windows`.

    A position that is in two windows is taken from the one before.

    Args:
        x: tensor `[..., W (stride + overlap), x]`.
        length: integer or integer tensor `T`.
        stride, overlap: as in `windows`.

    Returns:
        Tensor `[..., T, x]`.

    Example:

    >>> from keras import ops
    >>> x = ops.arange(6)[:, None]
    >>> ops.convert_to_numpy(from_windows(x, 4, 2, 1))[:, 0].tolist()
    [0, 1, 2, 4]
    """
    if overlap:
        *leading, rows, width = ops.shape(x)
        frames = ops.reshape(x, (*leading, rows // (stride + 1), stride + 1, width))
        frames = slice_axis(frames, -2, 1)
        rest = ops.reshape(frames, (*leading, rows // (stride + 1) * stride, width))
        x = ops.concatenate([slice_axis(x, -2, 0, 1), rest], axis=-2)
    return slice_axis(x, -2, 0, length)
