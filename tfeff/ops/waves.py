"""Rows moved by different amounts as matrix products, for hardware that has them.

What a query has by relative position is a sum of waves over the positions. To move it
by the query's own position is to turn each wave by an angle, and to read it at the keys
is a product with constants. Of the `L = S + b` relative positions at which a block of
`b` queries meets S keys, L even, `F = L / 2` waves with cosine and sine give each:

    w[x] = Σ_f c_f cos(θ_f x) + s_f sin(θ_f x),    θ_f = π (2f + 1) / L

The frequencies lie half a step off Fourier's, so that each has its sine.

Shapes: B batch, N heads, A blocks, b queries in a block, S keys, H head size.
"""

import math

import keras
from keras import ops

from tfeff.ops.masking import at_least_float32, one_after

# Keys that are read together: the products grow with the square of their number.
_KEYS = 512


def moved_products(x, windows):
    """Products of queries with what they meet: `y[i, j] = x_i · w[j - i + b - 1]`.

    Args:
        x: float tensor `[B, N, A, b, H]`.
        windows: float tensor `w` `[N, A, H, S + b]` or `[A, H, S + b]`, at the
            relative positions `1 - b … S` to a block's first query.

    Returns:
        Tensor `[B, N, A, b, S]`.
    """
    block, parts = x.shape[-2], []
    for start, stop in _parts(windows.shape[-1] - block, block):
        of_window, of_keys = _waves(block, stop - start, x.dtype)
        window = windows[..., start : stop + block]
        waves = [ops.matmul(x, ops.matmul(window, wave)) for wave in of_window]
        parts.append(sum(map(_times_transposed, _turned(*waves, 1), of_keys)))
    return ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]


def moved_values(weights, windows):
    """What is met, summed by weights: `y_i = Σ_j A[i, j] w[j - i + b - 1]`.

    Args:
        weights: float tensor `A` `[B, N, A, b, S]`.
        windows: float tensor `w`, as in `moved_products`.

    Returns:
        Tensor `[B, N, A, b, H]`.
    """
    block, parts = weights.shape[-2], []
    for start, stop in _parts(weights.shape[-1], block):
        of_window, _ = _waves(block, stop - start, weights.dtype)
        window = windows[..., start : stop + block]
        waves = _read(weights[..., start:stop])
        window = [ops.matmul(window, wave) for wave in of_window]
        parts.append(sum(map(_times_transposed, waves, window)))
    return sum(parts)


def moved_sums(weights, x):
    """Queries summed where they are met: `y[j - i + b - 1] = Σ_i A[i, j] x_i`.

    Summed over the batch, too; with `x` the gradient of `moved_values`, `y` is that of
    the windows.

    Args:
        weights: float tensor `A` `[B, N, A, b, S]`.
        x: float tensor `[B, N, A, b, H]`.

    Returns:
        Tensor `[N, A, H, S + b]`.
    """
    block, keys = weights.shape[-2:]
    one = one_after(x)  # What is read is larger than the weights.
    sums = []
    for start, stop in _parts(keys, block):
        of_window, _ = _waves(block, stop - start, weights.dtype)
        waves = _read(weights[..., start:stop], one)
        waves = [ops.einsum("bnaih,bnaif->nahf", x, wave) for wave in waves]
        window = sum(map(_times_transposed, waves, of_window))
        sums.append(ops.pad(window, ((0, 0), (0, 0), (0, 0), (start, keys - stop))))
    return sum(sums)


def _read(weights, factor=1.0):
    """The waves at the keys of a part, summed by weights and seen from each query."""
    block, keys = weights.shape[-2:]
    _, of_keys = _waves(block, keys, weights.dtype)
    return _turned(*(ops.matmul(weights, factor * wave) for wave in of_keys), -1)


def _parts(keys: int, block: int) -> list[tuple[int, int]]:
    """Where parts of the keys start and stop: equal, and as large as `_KEYS` allows.

    Their size is even where that of a block is, and odd with it.
    """
    sizes = range(2 - block % 2, min(keys, _KEYS) + 1, 2)
    size = max(size for size in sizes if keys % size == 0)
    return [(start, start + size) for start in range(0, keys, size)]


def _waves(block: int, keys: int, dtype):
    """Cosines and sines at the positions of a window, `[L, F]`, and at keys, `[S, F]`.

    Scaled so that a window's form an orthonormal matrix.
    """
    scale = math.sqrt(2.0 / (block + keys))
    waves = [
        ops.cast(scale * wave, dtype)
        for first, last in ((1 - block, keys), (0, keys - 1))
        for wave in _cosines_and_sines(first, last, block + keys, dtype)
    ]
    return waves[:2], waves[2:]


def _turned(cosines, sines, direction: int):
    """Waves `[..., b, F]` moved by a row's position in its block, 1 on or -1 back."""
    (block, count), dtype = cosines.shape[-2:], cosines.dtype
    cosine, sine = _cosines_and_sines(0, block - 1, 2 * count, dtype)
    sine = direction * sine
    cosines, sines = at_least_float32(cosines), at_least_float32(sines)
    return (
        ops.cast(cosines * cosine - sines * sine, dtype),
        ops.cast(cosines * sine + sines * cosine, dtype),
    )


def _cosines_and_sines(first: int, last: int, length: int, dtype):
    """Of the angles `θ_f x` of positions `first … last`, each `[R, F]`."""
    steps = ops.arange(first, last + 1)[:, None] * (2 * ops.arange(length // 2) + 1)
    # Whole turns are taken off as integers: large angles would lose digits.
    dtype = keras.backend.result_type(keras.backend.standardize_dtype(dtype), "float32")
    angles = ops.cast(ops.mod(steps, 2 * length), dtype) * (math.pi / length)
    return ops.cos(angles), ops.sin(angles)


def _times_transposed(x, y):
    return ops.matmul(x, ops.swapaxes(y, -1, -2))
