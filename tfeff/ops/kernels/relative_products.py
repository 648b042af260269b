"""Products with relative embeddings, without a tensor over T × T × H.

They are computed by relative position and moved to the keys, or back, by a shift of
rows or, in half precision, by products (`tfeff.ops.kernels.fourier_shift`). `embed` is a function from
relative positions `[R]` to embeddings `[R, …]`, such as
`tfeff.layers.RelativeEmbedding`.

Shapes: B batch, T queries and keys, N heads, H head size, R relative positions.
"""

from collections.abc import Callable

import keras
from keras import ops

from tfeff.ops.kernels.fourier_shift import moved_products, moved_sums, moved_values
from tfeff.ops.masking import barrier_one
from tfeff.ops.shifting import (
    BLOCK,
    relative_positions,
    relative_shift,
    relative_unshift,
    row_blocks,
)
from tfeff.ops.slicing import cut


def relative_products(x, embed: Callable):
    """Products of each position with the embedding of every relative one.

    `y[i, j] = x_i · a_{j - i}`.

    Where 128 divides the length, positions go in blocks of so many, each with the
    `T + 128` relative positions that it meets; else all `2T` are taken.

    Args:
        x: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions, `[R]` to `[R, N, H]`, or to `[R, H]`
            for all heads.

    Returns:
        Tensor `[B, N, T, T]`.
    """
    batch, length, heads, size = ops.shape(x)
    block, starts = row_blocks(length)
    windows = _windows(embed(relative_positions(length)), length + block, starts)
    blocks = (batch, heads, len(starts), block, size)
    x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), blocks)
    if _by_waves(x):
        products = moved_products(x, windows)
    else:
        products = relative_shift(ops.matmul(x, windows))
    return ops.reshape(products, (batch, heads, length, length))


def relative_values(weights, embed: Callable):
    """What relative embeddings of the values add: `y_i = Σ_j A[i, j] a_{j - i}`.

    Args:
        weights: float tensor `A` `[B, N, T, T]`.
        embed: gives `a` at relative positions, `[R]` to `[R, N, H]`.

    Returns:
        Tensor `[B, T, N, H]`.

    Reference:
        Shaw et al., "Self-attention with relative position representations",
        equation 3.
    """
    batch, heads, length, _ = ops.shape(weights)
    block, starts = row_blocks(length)
    windows = _windows(embed(relative_positions(length)), length + block, starts)
    weights = ops.reshape(weights, (batch, heads, len(starts), block, length))
    if _by_waves(weights):
        mixed = moved_values(weights, windows)
    else:
        weights = relative_unshift(weights)
        mixed = ops.matmul(weights, ops.swapaxes(windows, -1, -2))
    mixed = ops.reshape(mixed, (batch, heads, length, windows.shape[-2]))
    return ops.transpose(mixed, (0, 2, 1, 3))


def relative_sums(weights, x):
    """What `relative_values` gives back to its embeddings: `y_r = Σ_i A[i, i + r] x_i`.

    Summed over the batch, too. With `x` the gradient of the values, `y` is that of `a`.

    Args:
        weights: float tensor `A` `[B, N, T, T]`.
        x: float tensor `[B, T, N, H]`.

    Returns:
        Tensor `[2T, N, H]` at the relative positions `1 - T … T`.
    """
    batch, heads, length, _ = ops.shape(weights)
    block, starts = row_blocks(length)
    blocks = (batch, heads, len(starts), block)
    weights = ops.reshape(weights, (*blocks, length))
    x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (*blocks, x.shape[-1]))
    if _by_waves(weights):
        windows = moved_sums(weights, x)
    else:
        weights = relative_unshift(weights * barrier_one(x))
        windows = ops.einsum("bnaiw,bnaih->nahw", weights, x)
    if len(starts) == 1:
        return ops.transpose(windows[:, 0], (2, 0, 1))
    sides = [(start, length - block - start) for start in starts]
    parts = [
        ops.pad(windows[:, index], ((0, 0), (0, 0), side))
        for index, side in enumerate(sides)
    ]
    return ops.transpose(sum(parts), (2, 0, 1))


def _by_waves(x):
    """Whether rows move by products: in half precision, if blocks of 128 have them.

    Half precision is for hardware to which products are cheap and moving is not.
    """
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return half and x.shape[-2] == BLOCK


def _windows(rows, width, starts):
    """Columns of relative positions, `[2T, N, H]` or `[2T, H]`, for each block.

    Tensor `[N, A, H, width]`, or `[A, H, width]`.
    """
    rows = ops.transpose(rows, (1, 2, 0) if len(rows.shape) == 3 else (1, 0))
    return ops.stack([cut(rows, -1, x, x + width) for x in starts], axis=-3)
