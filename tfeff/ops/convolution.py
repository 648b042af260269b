"""Convolutions along the sequence, with kernels by position and head.

Shapes: B batch, T positions, N heads, H head size, K taps of a kernel.
"""

from keras import ops

from tfeff.ops.shifting import relative_shift
from tfeff.ops.slicing import slice_axis
from tfeff.utils.types import Tensor

_BLOCK = 32
# Swaps positions and heads of blocks `[B, n, L, N, x]`.
_HEADS_FIRST = (0, 1, 3, 2, 4)


def dynamic_convolution(values: Tensor, kernels: Tensor) -> Tensor:
    """Convolves heads with kernels that depend on the position.

    `y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]`, where `u` is 0 beyond the
    ends of the sequence. Positions are computed in blocks: the kernels of a block form
    a band matrix, which is multiplied with the values under them. So time and memory
    are linear in the length.

    Args:
        values: float tensor `u` `[B, T, N, H]`.
        kernels: float tensor `w` `[B, T, N, K]`, or `[N, K]` for the same kernels at
            all positions; `K` odd. The latter may be of float32 beside values in half
            precision, so that their gradient is summed up in float32.

    Returns:
        Tensor `[B, T, N, H]`.

    Raises:
        ValueError: if `K` is even: there would be no middle.

    Example:

    >>> from keras import ops
    >>> u = ops.reshape(ops.arange(4.0), (1, 4, 1, 1))
    >>> y = dynamic_convolution(u, ops.convert_to_tensor([[0.0, 0.0, 1.0]]))
    >>> ops.convert_to_numpy(y).ravel().tolist()
    [1.0, 2.0, 3.0, 0.0]

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        sections 3 and 4; Jiang et al., "ConvBERT", equations 2, 3 and 5.
    """
    num_taps = kernels.shape[-1]
    if num_taps % 2 == 0:
        raise ValueError(
            "`kernels` must have an odd last axis. Received: kernels.shape="
            f"{tuple(kernels.shape)}"
        )
    batch, length, heads, size = ops.shape(values)
    block = max(_BLOCK, num_taps)
    count = (length + block - 1) // block
    missing = count * block - length
    # A block of padded values reads itself and the first K - 1 values of the next.
    reach = (num_taps - 1) // 2
    values = ops.pad(values, ((0, 0), (reach, missing + block - reach), (0, 0), (0, 0)))
    values = ops.reshape(values, (batch, count + 1, block, heads, size))
    next_values = slice_axis(slice_axis(values, 1, 1), 2, 0, num_taps - 1)
    values = ops.concatenate([slice_axis(values, 1, 0, -1), next_values], axis=2)
    if len(kernels.shape) == 2:
        kernels = ops.broadcast_to(kernels[:, None], (heads, block, num_taps))
        band = _band(kernels)
        # Copied for each block: XLA takes longer for products with a shared factor.
        band = ops.broadcast_to(band, (batch, count, *ops.shape(band)))
        band = ops.cast(band, values.dtype)
    else:
        kernels = ops.pad(kernels, ((0, 0), (0, missing), (0, 0), (0, 0)))
        kernels = ops.reshape(kernels, (batch, count, block, heads, num_taps))
        band = _band(ops.transpose(kernels, _HEADS_FIRST))
    # Transposed explicitly: one einsum took half as long again.
    context = ops.matmul(band, ops.transpose(values, _HEADS_FIRST))
    context = ops.transpose(context, _HEADS_FIRST)
    return slice_axis(
        ops.reshape(context, (batch, count * block, heads, size)), 1, 0, length
    )


def _band(kernels):
    """A block's kernels `[..., L, K]` as a band matrix `[..., L, L + K - 1]`."""
    block = kernels.shape[-2]
    # `relative_shift` shifts the first row most, to the columns from 0.
    sides = [(0, 0)] * (len(kernels.shape) - 1) + [(block - 1, block)]
    return relative_shift(ops.pad(kernels, sides))


def banded_scores(
    kernels: Tensor, length: Tensor | int, visible: Tensor | None = None
) -> Tensor:
    """The attention matrix that is equivalent to a convolution.

    `A[h, i, j] = w[i, h, j - i + (K - 1) / 2]`, and 0 where there is no such tap or
    the key is not visible.

    Args:
        kernels: float tensor `w` `[B, T, N, K]`.
        length: integer or integer tensor `T`.
        visible: bool tensor `[B, T]`, true at visible keys, or `None`.

    Returns:
        Tensor `[B, N, T, T]`.

    Example:

    >>> from keras import ops
    >>> kernels = ops.convert_to_tensor([[[[0.25, 0.5, 0.25]]] * 3])
    >>> ops.convert_to_numpy(banded_scores(kernels, 3)[0, 0]).tolist()
    [[0.5, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.5]]
    """
    kernels = ops.transpose(kernels, (0, 2, 1, 3))
    reach = (kernels.shape[-1] - 1) // 2
    # Padded by T on both sides, the centre tap is in column T + reach;
    # `relative_shift` expects it in column T - 1.
    kernels = ops.pad(kernels, ((0, 0), (0, 0), (0, 0), (length, length)))
    kernels = slice_axis(kernels, -1, reach + 1, reach + 1 + 2 * length)
    scores = relative_shift(kernels)
    if visible is None:
        return scores
    return ops.where(visible[:, None, None, :], scores, 0.0)
