"""Convolutions along the sequence whose kernels belong to heads and positions.

Shapes: B batch, T positions, N heads, H head size, K taps of a kernel.
"""

from keras import ops

from tfeff.ops.shifting import relative_shift
from tfeff.ops.slicing import slice_axis

_BLOCK = 32
# Of a block's axes, between its positions before its heads and the other way round.
_HEADS_FIRST = (0, 1, 3, 2, 4)


def dynamic_convolution(values, kernels):
    """Mixes each position's neighbours with a kernel of the position and head.

    `y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]`, where `u` is 0 beyond the
    ends of the sequence. Positions go in blocks, whose kernels, laid out as a band
    matrix, are multiplied with what the block reads: time and memory stay linear in
    the length.

    Args:
        values: float tensor `u` `[B, T, N, H]`.
        kernels: float tensor `w` `[B, T, N, K]`, or `[N, K]` for the same kernels at
            all positions; `K` odd.

    Returns:
        Tensor `[B, T, N, H]`.

    Example:

    >>> from keras import ops
    >>> u = ops.reshape(ops.arange(4.0), (1, 4, 1, 1))
    >>> y = dynamic_convolution(u, ops.convert_to_tensor([[0.0, 0.0, 1.0]]))
    >>> ops.convert_to_numpy(y).ravel().tolist()
    [1.0, 2.0, 3.0, 0.0]

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 3; Jiang et al., "ConvBERT", section 3.1.
    """
    num_taps = kernels.shape[-1]
    batch, length, heads, size = ops.shape(values)
    block = max(_BLOCK, num_taps)
    count = (length + block - 1) // block
    missing = count * block - length
    # A block reads itself and the first taps of the next, which moves it by half.
    reach = (num_taps - 1) // 2
    values = ops.pad(values, ((0, 0), (reach, missing + block - reach), (0, 0), (0, 0)))
    values = ops.reshape(values, (batch, count + 1, block, heads, size))
    next_taps = slice_axis(slice_axis(values, 1, 1), 2, 0, num_taps - 1)
    values = ops.concatenate([slice_axis(values, 1, 0, -1), next_taps], axis=2)
    if len(kernels.shape) == 2:
        kernels = ops.broadcast_to(kernels[:, None], (heads, block, num_taps))
        band = _band(kernels)
        # Repeated: XLA takes longer for blocks that share a factor than for all apart.
        band = ops.broadcast_to(band, (batch, count, *ops.shape(band)))
    else:
        kernels = ops.pad(kernels, ((0, 0), (0, missing), (0, 0), (0, 0)))
        kernels = ops.reshape(kernels, (batch, count, block, heads, num_taps))
        band = _band(ops.transpose(kernels, _HEADS_FIRST))
    # The heads go first by hand: an einsum of all this took half as long again.
    context = ops.matmul(band, ops.transpose(values, _HEADS_FIRST))
    context = ops.transpose(context, _HEADS_FIRST)
    return slice_axis(
        ops.reshape(context, (batch, count * block, heads, size)), 1, 0, length
    )


def _band(kernels):
    """A block's kernels `[..., L, K]` as a matrix `[..., L, L + K - 1]`."""
    block = kernels.shape[-2]
    # `relative_shift` moves the taps of the first row, which end up in its columns
    # from 0, furthest to the left.
    sides = [(0, 0)] * (len(kernels.shape) - 1) + [(block - 1, block)]
    return relative_shift(ops.pad(kernels, sides))


def banded_scores(kernels, length, visible=None):
    """The attention matrix that a convolution amounts to.

    `A[h, i, j] = w[i, h, j - i + (K - 1) / 2]`, and 0 where there is no such tap or
    the key is not visible.

    Args:
        kernels: float tensor `w` `[B, T, N, K]`.
        length: integer or integer tensor `T`.
        visible: bool tensor `[B, T]`, true at visible keys, or `None`.

    Returns:
        Tensor `[B, N, T, T]`.
    """
    kernels = ops.transpose(kernels, (0, 2, 1, 3))
    reach = (kernels.shape[-1] - 1) // 2
    # Padded by T on both sides, the tap of the position itself stands in column
    # T + reach; `relative_shift` wants it in column T - 1.
    kernels = ops.pad(kernels, ((0, 0), (0, 0), (0, 0), (length, length)))
    kernels = slice_axis(kernels, -1, reach + 1, reach + 1 + 2 * length)
    scores = relative_shift(kernels)
    if visible is None:
        return scores
    return ops.where(visible[:, None, None, :], scores, 0.0)
