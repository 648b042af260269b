"""The fixed pattern of the Sparse Transformer, in two published readings."""

from keras import ops

PATTERNS = ("fairseq", "sparse_transformer")


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
    return sees(positions[:, None], positions[None], stride, expressivity, pattern)


def sees(i, j, stride: int, expressivity: int, pattern: str = "fairseq"):
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
