"""Convolutions along the sequence whose kernels belong to heads and positions.

Shapes: B batch, T positions, N heads, H head size, K taps of a kernel.
"""

from keras import ops

from tfeff.ops.relative import relative_shift


def dynamic_convolution(values, kernels):
    """Mixes each position's neighbours with a kernel of the position and head.

    `y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]`, where `u` is 0 beyond the
    ends of the sequence. The sum runs tap by tap: no copy of the sequence for each
    tap is held.

    Args:
        values: float tensor `u` `[B, T, N, H]`.
        kernels: float tensor `w` `[B, T, N, K]`, or `[N, K]` for the same kernels at
            all positions; `K` odd.

    Returns:
        Tensor `[B, T, N, H]`.

    Example:

    >>> u = ops.reshape(ops.arange(4.0), (1, 4, 1, 1))
    >>> y = dynamic_convolution(u, ops.convert_to_tensor([[0.0, 0.0, 1.0]]))
    >>> ops.convert_to_numpy(y).ravel().tolist()
    [1.0, 2.0, 3.0, 0.0]

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 3; Jiang et al., "ConvBERT", section 3.1.
    """
    num_taps = kernels.shape[-1]
    reach = (num_taps - 1) // 2
    length = ops.shape(values)[1]
    padded = ops.pad(values, ((0, 0), (reach, reach), (0, 0), (0, 0)))
    mixed = 0.0
    for tap in range(num_taps):
        mixed = mixed + kernels[..., tap, None] * padded[:, tap : tap + length]
    return mixed


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
    kernels = kernels[..., reach + 1 : reach + 1 + 2 * length]
    scores = relative_shift(kernels)
    if visible is None:
        return scores
    return ops.where(visible[:, None, None, :], scores, 0.0)
