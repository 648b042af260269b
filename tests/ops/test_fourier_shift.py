"""The Fourier shift against sums over pairs, gradients included."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tfeff.ops.kernels.fourier_shift import (
    _parts,
    shifted_products,
    shifted_sums,
    shifted_values,
)

B, N, A, H = 2, 3, 2, 4
# Queries in a block, and keys: one part, odd numbers, a single one, several parts,
# parts of 146, not of 511, which is odd, and zeros after the keys, whose number has no
# even divisor, or none but 2.
SIZES = [
    *((8, 8), (5, 9), (1, 1), (1, 3), (16, 96), (4, 1024), (2, 1022)),
    *((4, 1025), (2, 1042)),
]


def at_pairs(windows, block, keys):
    """`[..., H, b, S]`: the entry of a window for each query and key."""
    rows = [windows[..., block - 1 - i : block - 1 - i + keys] for i in range(block)]
    return np.stack(rows, axis=-2)


def arrays(block, keys, shared=False):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(B, N, A, block, H))
    weights = generator.normal(size=(B, N, A, block, keys))
    shape = (A, H, keys + block) if shared else (N, A, H, keys + block)
    return x, weights, generator.normal(size=shape)


def check(function, xla, weight, inputs, expected):
    """The value, and the gradients of the inputs for `weight`, that of the value."""
    inputs = list(map(tf.constant, inputs))

    @tf.function(jit_compile=xla)
    def run():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = function(*inputs)
            loss = tf.reduce_sum(y * weight)
        return y, *tape.gradient(loss, inputs)

    for one, other in zip(run(), expected, strict=True):
        assert_close(one, other, 1e-11)


def spread(of_pairs, block, keys):
    """The gradient of windows from that of `at_pairs`."""
    windows = np.zeros((*of_pairs.shape[:-2], keys + block))
    for i in range(block):
        windows[..., block - 1 - i : block - 1 - i + keys] += of_pairs[..., i, :]
    return windows


@pytest.mark.quick(
    "8-8-False-False",
    "5-9-True-True",
    "1-1-False-True",
    "1-3-True-False",
    "16-96-True-True",
    "4-1024-True-False",
    "2-1022-False-False",
    "4-1025-True-False",
)
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("block, keys", SIZES)
def test_products(block, keys, shared, xla):
    x, weight, windows = arrays(block, keys, shared)
    pairs = np.broadcast_to(windows, (N, *windows.shape[-3:]))
    pairs = at_pairs(pairs, block, keys)
    of_pairs = np.einsum("bnais,bnaih->nahis", weight, x)
    of_windows = spread(of_pairs, block, keys)
    expected = (
        np.einsum("bnaih,nahis->bnais", x, pairs),
        np.einsum("bnais,nahis->bnaih", weight, pairs),
        of_windows.sum(axis=0) if shared else of_windows,
    )
    check(shifted_products, xla, weight, [x, windows], expected)


@pytest.mark.quick("8-8-False", "16-96-True", "4-1025-False")
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("block, keys", SIZES)
def test_values_and_sums(block, keys, xla):
    weight, weights, windows = arrays(block, keys)
    pairs = at_pairs(windows, block, keys)
    of_pairs = np.einsum("bnais,bnaih->nahis", weights, weight)
    of_windows = spread(of_pairs, block, keys)
    expected = (
        np.einsum("bnais,nahis->bnaih", weights, pairs),
        np.einsum("bnaih,nahis->bnais", weight, pairs),
        of_windows,
    )
    check(shifted_values, xla, weight, [weights, windows], expected)
    sums = tf.function(shifted_sums, jit_compile=xla)
    assert_close(sums(tf.constant(weights), tf.constant(weight)), of_windows, 1e-11)


def test_parts_are_few_and_cover_the_keys():
    for keys in range(64, 4200):
        size, starts = _parts(keys, 128)
        assert size % 2 == 0
        assert list(starts) == list(range(0, keys, size))
        assert len(starts) * size - keys < 2 * len(starts)
        assert 64 <= size <= 512


def test_positions_are_exact_where_floats_are_float16():
    x, _, windows = map(tf.constant, arrays(4, 512))
    expected = shifted_products(x, windows)
    floatx = keras.config.floatx()
    keras.config.set_floatx("float16")
    try:
        found = shifted_products(x, windows)
    finally:
        keras.config.set_floatx(floatx)
    assert_close(found, expected, 1e-11)
