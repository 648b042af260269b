"""Relative shift as matrix products in a Fourier basis.

It is for accelerators on which products are cheaper than data movement. A function of
the relative position is a sum of waves. Shifting it by a query's position rotates each
wave by an angle; evaluating it at the keys is a product with constants. A block of `b`
queries meets S keys at `L = S + b` relative positions, L even, where `F = L / 2` waves
with cosine and sine represent any function:

    w[x] = Σ_f c_f cos(θ_f x) + s_f sin(θ_f x),    θ_f = π (2f + 1) / L

The frequencies are half a step off Fourier's, so that each has a sine.

Shapes: B batch, N heads, A blocks, b queries in a block, S keys, H head size.
"""

import math

import keras
from keras import ops

from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.masking import at_least_float32
from tfeff.ops.slicing import slice_axis

# Keys of one product, whose cost grows with the square of their number; and below how
# many the products of a part are too small, so that zeros are added to the keys.
_KEYS = 512
_LEAST_KEYS = 64


def shifted_products(x, windows):
    """Products of queries with shifted windows: `y[i, j] = x_i · w[j - i + b - 1]`.

    Args:
        x: float tensor `[B, N, A, b, H]`.
        windows: float tensor `w` `[N, A, H, S + b]` or `[A, H, S + b]`, at the
            relative positions `1 - b … S` to a block's first query.

    Returns:
        Tensor `[B, N, A, b, S]`.
    """
    block = x.shape[-2]
    keys = windows.shape[-1] - block
    size, starts = _parts(keys, block)
    windows = _padded(windows, size * len(starts) + block)
    window_waves, query_waves, key_waves = _waves(block, size, x.dtype)
    parts = []
    for start in starts:
        window = slice_axis(windows, -1, start, start + size + block)
        waves = [ops.matmul(x, ops.matmul(window, wave)) for wave in window_waves]
        waves = _rotated(*waves, *query_waves)
        parts.append(sum(map(_times_transposed, waves, key_waves)))
    products = ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
    return _first(products, keys)


def shifted_values(weights, windows):
    """Sums of shifted windows by weights: `y_i = Σ_j A[i, j] w[j - i + b - 1]`.

    Args:
        weights: float tensor `A` `[B, N, A, b, S]`.
        windows: float tensor `w`, as in `shifted_products`.

    Returns:
        Tensor `[B, N, A, b, H]`.
    """
    block, keys = weights.shape[-2:]
    size, starts = _parts(keys, block)
    weights = _padded(weights, size * len(starts))
    windows = _padded(windows, size * len(starts) + block)
    window_waves, query_waves, key_waves = _waves(block, size, weights.dtype)
    parts = []
    for start in starts:
        waves = _projected_weights(
            slice_axis(weights, -1, start, start + size), key_waves, query_waves
        )
        window = slice_axis(windows, -1, start, start + size + block)
        window = [ops.matmul(window, wave) for wave in window_waves]
        parts.append(sum(map(_times_transposed, waves, window)))
    return sum(parts)


def shifted_sums(weights, x):
    """Sums of queries by relative position: `y[j - i + b - 1] = Σ_i A[i, j] x_i`.

    The sum runs over the batch, too. With `x` the gradient of `shifted_values`, `y` is
    that of the windows.

    Args:
        weights: float tensor `A` `[B, N, A, b, S]`.
        x: float tensor `[B, N, A, b, H]`.

    Returns:
        Tensor `[N, A, H, S + b]`.
    """
    block, keys = weights.shape[-2:]
    size, starts = _parts(keys, block)
    weights = _padded(weights, size * len(starts))
    window_waves, query_waves, key_waves = _waves(block, size, weights.dtype)
    one = barrier_one(x)  # The projected weights are larger than the weights.
    key_waves = [one * wave for wave in key_waves]
    sums = []
    for start in starts:
        waves = _projected_weights(
            slice_axis(weights, -1, start, start + size), key_waves, query_waves
        )
        waves = [ops.einsum("bnaih,bnaif->nahf", x, wave) for wave in waves]
        window = sum(map(_times_transposed, waves, window_waves))
        sides = (start, size * len(starts) - start - size)
        sums.append(ops.pad(window, ((0, 0), (0, 0), (0, 0), sides)))
    return _first(sum(sums), keys + block)


def _parts(keys: int, block: int) -> tuple[int, range]:
    """The size of equal parts of the keys, and their starts.

    The size is even if and only if that of a block is. It is the largest divisor of the
    number of keys up to `_KEYS` or, if that is small, such that the last part has a few
    positions more than there are keys.
    """
    sizes = range(2 - block % 2, min(keys, _KEYS) + 1, 2)
    size = max((size for size in sizes if keys % size == 0), default=0)
    if size < min(keys, _LEAST_KEYS):
        size = math.ceil(keys / math.ceil(keys / _KEYS))
        size += (size - block) % 2
    return size, range(0, keys, size)


def _padded(x, width):
    """`x` with zeros after its last axis, which gets this width."""
    missing = width - x.shape[-1]
    return ops.pad(x, (*[(0, 0)] * (len(x.shape) - 1), (0, missing))) if missing else x


def _first(x, width):
    """The first entries of the last axis."""
    return x if x.shape[-1] == width else slice_axis(x, -1, 0, width)


def _waves(block: int, keys: int, dtype):
    """Cosines and sines of a window `[L, F]`, of queries `[b, F]`, of keys `[S, F]`.

    Those of windows and keys are scaled so that a window's form an orthonormal matrix.
    """
    length = block + keys
    compute_dtype = keras.backend.result_type(
        keras.backend.standardize_dtype(dtype), "float32"
    )

    def waves(first, last):
        positions = ops.arange(first, last + 1, dtype="int32")[:, None]
        # Full rotations are removed from integers: large angles would lose digits.
        frequencies = ops.arange(length // 2, dtype="int32")
        steps = ops.mod(positions * (2 * frequencies + 1), 2 * length)
        angles = ops.cast(steps, compute_dtype) * (math.pi / length)
        return ops.cos(angles), ops.sin(angles)

    def scaled(waves):
        scale = math.sqrt(2.0 / length)
        return [ops.cast(scale * wave, dtype) for wave in waves]

    return (
        scaled(waves(1 - block, keys)),
        waves(0, block - 1),
        scaled(waves(0, keys - 1)),
    )


def _projected_weights(weights, key_waves, query_waves):
    """The waves at the keys, summed by weights and rotated to each query."""
    cosine, sine = query_waves
    return _rotated(*(ops.matmul(weights, wave) for wave in key_waves), cosine, -sine)


def _rotated(cosines, sines, cosine, sine):
    """Waves `[..., b, F]` rotated by angles `[b, F]`, given by cosine and sine."""
    dtype = cosines.dtype
    cosines, sines = at_least_float32(cosines), at_least_float32(sines)
    return (
        ops.cast(cosines * cosine - sines * sine, dtype),
        ops.cast(cosines * sine + sines * cosine, dtype),
    )


def _times_transposed(x, y):
    return ops.matmul(x, ops.swapaxes(y, -1, -2))
