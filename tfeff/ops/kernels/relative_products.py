"""Products with relative embeddings in blocks of 128 positions.

Each function equals that of its name in `tfeff.ops`. A block meets `S + 128` relative
positions, all queries together `T + S`. Columns by relative position become columns by
key by a shift or, in half precision, by products (`tfeff.ops.kernels.fourier_shift`).

Shapes: B batch, t queries, S keys, N heads, A blocks, b positions in a block, H head
size.
"""

import keras
from keras import ops

from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.fourier_shift import (
    shifted_products,
    shifted_sums,
    shifted_values,
)
from tfeff.ops.shifting import BLOCK, relative_shift, relative_unshift, row_blocks
from tfeff.ops.slicing import slice_axis
from tfeff.utils.types import Tensor


def relative_products(x: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.relative_products`: `y[i, j] = x_i · a_{j - i}`."""
    batch, heads, count, size = ops.shape(x)
    keys = ops.shape(rows)[0] - count
    block, starts = row_blocks(count)
    windows = _windows(rows, keys + block, starts)
    x = ops.reshape(x, (batch, heads, len(starts), block, size))
    return ops.reshape(_block_products(x, windows), (batch, heads, count, keys))


def key_products(key: Tensor, rows: Tensor, count: Tensor | int) -> Tensor:
    """Equals `tfeff.ops.key_products`: `y[i, j] = k_j · a_{j - i}`.

    The keys are split into tiles of 128 or, if that does not divide `t`, of `t`, so
    that the cost is proportional to `t`. A tile meets `t + 128` relative positions.
    """
    batch, heads, keys, size = ops.shape(key)
    # Relative to the key, the query is at -x.
    rows = ops.concatenate(
        [ops.flip(slice_axis(rows, 0, 0, -1), 0), slice_axis(rows, 0, -1)], axis=0
    )
    # All queries: as many as keys, or unknown numbers of both.
    if not isinstance(count, int) or isinstance(keys, int) and keys <= count:
        return ops.swapaxes(relative_products(key, rows), -1, -2)
    tile, starts = row_blocks(count)
    tiles = (keys + tile - 1) // tile
    missing = tiles * tile - keys
    key = ops.pad(key, ((0, 0), (0, 0), (0, missing), (0, 0)))
    key = ops.reshape(key, (batch, heads, tiles, tile, size))
    others = [(0, 0) for _ in rows.shape[1:]]
    # The first tile of keys has the last rows.
    rows = ops.pad(rows, ((missing, 0), *others))
    rows = ops.reshape(rows, (tiles + len(starts), tile, *ops.shape(rows)[1:]))
    windows = [slice_axis(rows, 0, x, x + tiles) for x in range(len(starts) + 1)]
    windows = ops.concatenate(windows, axis=1)
    windows = ops.flip(windows, axis=0)  # [A, t + b, (N,) H]
    axes = (2, 0, 3, 1) if len(windows.shape) == 4 else (0, 2, 1)
    products = _block_products(key, ops.transpose(windows, axes))
    products = ops.transpose(products, (0, 1, 4, 2, 3))
    products = ops.reshape(products, (batch, heads, count, tiles * tile))
    return slice_axis(products, -1, 0, keys)


def relative_values(weights: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.relative_values`: `y_i = Σ_j A[i, j] a_{j - i}`."""
    batch, heads, count, keys = ops.shape(weights)
    block, starts = row_blocks(count)
    windows = _windows(rows, keys + block, starts)
    weights = ops.reshape(weights, (batch, heads, len(starts), block, keys))
    if _uses_fourier_shift(weights, keys):
        context = shifted_values(weights, windows)
    else:
        weights = relative_unshift(weights)
        context = ops.matmul(weights, ops.swapaxes(windows, -1, -2))
    return ops.reshape(context, (batch, heads, count, windows.shape[-2]))


def relative_sums(weights, x):
    """The gradient of `relative_values` with respect to its rows.

    `y_r = Σ_i A[i, i + r] x_i`, summed over the batch, too, with `x` the gradient of
    the values.

    Args:
        weights: float tensor `A` `[B, N, t, S]`.
        x: float tensor `[B, N, t, H]`.

    Returns:
        Tensor `[t + S, N, H]` at the relative positions `1 - t … S`.
    """
    batch, heads, count, keys = ops.shape(weights)
    block, starts = row_blocks(count)
    blocks = (batch, heads, len(starts), block)
    weights = ops.reshape(weights, (*blocks, keys))
    x = ops.reshape(x, (*blocks, x.shape[-1]))
    if _uses_fourier_shift(weights, keys):
        windows = shifted_sums(weights, x)
    else:
        weights = relative_unshift(weights * barrier_one(x))
        windows = ops.einsum("bnaiw,bnaih->nahw", weights, x)
    if len(starts) == 1:
        return ops.transpose(windows[:, 0], (2, 0, 1))
    sides = [(start, count - block - start) for start in starts]
    parts = [
        ops.pad(windows[:, index], ((0, 0), (0, 0), side))
        for index, side in enumerate(sides)
    ]
    return ops.transpose(sum(parts), (2, 0, 1))


def _block_products(x, windows):
    """`[B, N, A, b, H]` times windows `[(N,) A, H, S + b]`, by key: `[…, b, S]`."""
    if _uses_fourier_shift(x, windows.shape[-1]):
        return shifted_products(x, windows)
    return relative_shift(ops.matmul(x, windows))


def _uses_fourier_shift(x, width):
    """Whether shifts are products: in half precision, for blocks of 128.

    Half precision is for hardware on which products are cheaper than data movement.
    """
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return half and x.shape[-2] == BLOCK and isinstance(width, int)


def _windows(rows, width, starts):
    """Rows by relative position, `[R, N, H]` or `[R, H]`, as columns of each block.

    Returns:
        Tensor `[N, A, H, width]`, or `[A, H, width]`.
    """
    rows = ops.transpose(rows, (1, 2, 0) if len(rows.shape) == 3 else (1, 0))
    return ops.stack([slice_axis(rows, -1, x, x + width) for x in starts], axis=-3)
