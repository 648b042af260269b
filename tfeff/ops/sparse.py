"""The fixed pattern of the Sparse Transformer, in two published versions."""

from keras import ops

from tfeff.ops.slicing import slice_axis
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.types import Tensor

# The number of positions that a window shares with the next one, by pattern.
PATTERNS = {"fairseq": 1, "sparse_transformer": 0}


def fixed_pattern(
    length: Tensor | int, stride: int, expressivity: int, pattern: str = "fairseq"
) -> Tensor:
    """The keys that each query attends to in bidirectional fixed sparse attention.

    The sequence is split into windows of `stride` positions. A query attends to its
    own window and to the summary of every window, its last `expressivity` positions.
    The pattern `"sparse_transformer"` is exactly this. In `"fairseq"`, windows and
    summaries are closed at both ends: both include the first position of the next
    window, and that position as a query belongs to the window before.

    Args:
        length: integer or integer tensor `T`.
        stride: integer, positions in a window.
        expressivity: integer, positions in a summary, at most `stride`.
        pattern: `"fairseq"` or `"sparse_transformer"`.

    Returns:
        Bool tensor `[T, T]`, true where query `i` attends to key `j`.

    Raises:
        ValueError: if `pattern` is another one, `stride` is below 1, or `expressivity`
            not from 0 to `stride`.

    Example:

    >>> from keras import ops
    >>> pairs = fixed_pattern(4, stride=2, expressivity=1, pattern="sparse_transformer")
    >>> ops.convert_to_numpy(pairs).astype(int).tolist()
    [[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]]

    Reference:
        Child et al., "Generating long sequences with sparse Transformers", section
        4.3; as used by Qiu et al., "Blockwise self-attention", sections 4 and A.3.
    """
    stride = check_integer("stride", stride)
    expressivity = check_integer("expressivity", expressivity, 0, stride)
    positions = ops.arange(length, dtype="int32")
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
    check_choice("pattern", pattern, PATTERNS)
    if pattern == "sparse_transformer":
        window = i // stride == j // stride
        summary = j % stride >= stride - expressivity
        return ops.logical_or(window, summary)
    # Position w·stride belongs to the window w - 1, except for w = 0.
    start = ops.maximum(i - 1, 0) // stride * stride
    window = ops.logical_and(j >= start, j <= start + stride)
    summary = ops.logical_or(
        j % stride >= stride - expressivity,
        ops.logical_and(j % stride == 0, j > 0),
    )
    return ops.logical_or(window, summary)


def windows(x, stride: int, overlap: int):
    """Splits sequences into windows, concatenated along the same axis.

    Window `w` has the positions `w stride, … (w + 1) stride + overlap - 1`. The last
    one is padded with zeros.

    Args:
        x: tensor `[..., T, x]`.
        stride: integer, the distance of windows.
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
    missing = _missing(count, length, stride, overlap)
    x = ops.pad(x, [*((0, 0) for _ in leading), (0, missing), (0, 0)])
    if not overlap:
        return x
    first = split_windows(slice_axis(x, -2, 0, -1), stride)
    shifted = split_windows(slice_axis(x, -2, 1), stride)
    frames = ops.concatenate([first, slice_axis(shifted, -2, stride - 1)], axis=-2)
    return ops.reshape(frames, (*leading, count * (stride + 1), width))


def from_windows(x, length, stride: int, overlap: int):
    """The sequences of windows, the inverse of `windows`.

    A position in two windows is taken from the first.

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
        frames = slice_axis(split_windows(x, stride + 1), -2, 1)
        rest = ops.reshape(frames, (*leading, rows // (stride + 1) * stride, width))
        x = ops.concatenate([slice_axis(x, -2, 0, 1), rest], axis=-2)
    return slice_axis(x, -2, 0, length)


def split_windows(x, size: int):
    """Splits `[..., W t, x]` into windows of `t = size` positions, `[..., W, t, x]`."""
    *leading, rows, width = ops.shape(x)
    return ops.reshape(x, (*leading, rows // size, size, width))


def own_positions(x, stride: int, expressivity: int, overlap: int):
    """The positions of each window before its summary.

    Args:
        x: tensor of windows, `[..., W (stride + overlap), x]`.
        stride, overlap: as in `windows`.
        expressivity: integer, as in `fixed_pattern`.

    Returns:
        Tensor `[..., W, stride - expressivity, x]`.
    """
    return slice_axis(split_windows(x, stride + overlap), -2, 0, stride - expressivity)


def summary_positions(x, length, stride: int, expressivity: int, overlap: int):
    """The last positions of all windows, one after the other, without padding.

    Args:
        x: tensor of windows, `[..., W (stride + overlap), x]`.
        length: integer or integer tensor `T`.
        stride, overlap: as in `windows`.
        expressivity: integer, as in `fixed_pattern`.

    Returns:
        Tensor `[..., S, x]`, `S` of at most `W (expressivity + overlap)` positions.

    Example:

    >>> from keras import ops
    >>> x = windows(ops.arange(1, 6)[:, None], 3, 0)
    >>> ops.convert_to_numpy(summary_positions(x, 5, 3, 2, 0))[:, 0].tolist()
    [2, 3, 5]
    """
    x = slice_axis(split_windows(x, stride + overlap), -2, stride - expressivity)
    *leading, count, size, width = ops.shape(x)
    missing = _missing(count, length, stride, overlap)
    missing = (min if isinstance(missing, int) else ops.minimum)(missing, size)
    x = ops.reshape(x, (*leading, count * size, width))
    return slice_axis(x, -2, 0, count * size - missing)


def visible_once(visible, stride: int, overlap: int):
    """Masks the first position of later windows, which a summary has, too.

    Args:
        visible: bool tensor of windows, `[..., W (stride + overlap), 1]`.
        stride, overlap: as in `windows`.

    Returns:
        Bool tensor like `visible`.
    """
    if not overlap:
        return visible
    row = ops.arange(ops.shape(visible)[-2], dtype="int32")
    once = ops.logical_or(row == 0, row % (stride + 1) > 0)
    return ops.logical_and(visible, ops.expand_dims(once, -1))


def _missing(count, length, stride, overlap):
    """The positions that the last of `count` windows lacks."""
    return count * stride + overlap - length
