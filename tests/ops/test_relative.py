"""Relative positions in blocks: lengths that 128 divides, and others, against sums."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tfeff.ops import relative_shift, relative_unshift, toeplitz
from tfeff.ops.kernels.relative_products import (
    relative_products,
    relative_sums,
    relative_values,
)

LENGTHS = [1, 7, 128, 256, 384]


def table_of(length, *shape):
    return np.random.default_rng(0).normal(size=(2 * length, *shape))


def at_pairs(table, length):
    """`[T, T, ...]`: the row of each pair of positions."""
    return np.array(
        [[table[j - i + length - 1] for j in range(length)] for i in range(length)]
    )


@pytest.mark.parametrize("keys", [0, 3])
def test_no_row_is_shifted(keys):
    for function in (relative_shift, relative_unshift):
        assert function(np.zeros((2, 0, keys))).shape == (2, 0, keys)


@pytest.mark.parametrize("length", LENGTHS)
def test_toeplitz(length):
    values = table_of(length, 3)
    expected = np.moveaxis(at_pairs(values, length), -1, 0)
    weight = np.random.default_rng(1).normal(size=expected.shape)
    variable = tf.constant(values.T)
    with tf.GradientTape() as tape:
        tape.watch(variable)
        result = toeplitz(variable)
        loss = tf.reduce_sum(result * weight)
    np.testing.assert_array_equal(result, expected)
    diagonals = [
        weight.trace(offset, axis1=1, axis2=2) for offset in range(1 - length, length)
    ]
    slope = np.stack([*diagonals, np.zeros(3)], axis=1)
    assert_close(tape.gradient(loss, variable), slope, 1e-12)


@pytest.mark.quick("1-False", "7-True", "256-False", "384-True")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_products(length, shared):
    generator = np.random.default_rng(2)
    table = table_of(length, *((4,) if shared else (3, 4)))
    x = generator.normal(size=(2, 3, length, 4))
    weight = generator.normal(size=(2, 3, length, length))
    pairs = at_pairs(table, length)
    if shared:
        pairs = np.repeat(pairs[:, :, None], 3, axis=2)
    expected = np.einsum("bnih,ijnh->bnij", x, pairs)
    of_x = np.einsum("bnij,ijnh->bnih", weight, pairs)
    of_pairs = np.einsum("bnij,bnih->ijnh", weight, x)
    of_pairs = of_pairs.sum(axis=2) if shared else of_pairs
    check(relative_products, x, table, length, expected, weight, of_x, of_pairs)


@pytest.mark.parametrize("length", LENGTHS)
def test_values(length):
    generator = np.random.default_rng(3)
    table = table_of(length, 3, 4)
    weights = generator.normal(size=(2, 3, length, length))
    weight = generator.normal(size=(2, 3, length, 4))
    pairs = at_pairs(table, length)
    expected = np.einsum("bnij,ijnh->bnih", weights, pairs)
    of_weights = np.einsum("bnih,ijnh->bnij", weight, pairs)
    of_pairs = np.einsum("bnij,bnih->ijnh", weights, weight)
    check(
        relative_values, weights, table, length, expected, weight, of_weights, of_pairs
    )


@pytest.mark.parametrize("length", LENGTHS)
def test_sums(length):
    generator = np.random.default_rng(4)
    weights = generator.normal(size=(2, 3, length, length))
    x = generator.normal(size=(2, 3, length, 4))
    expected = np.zeros((2 * length, 3, 4))
    for r in range(1 - length, length):
        of_pairs = weights.diagonal(r, axis1=2, axis2=3)  # Queries from max(0, -r).
        queries = x[:, :, max(0, -r) : length - max(0, r)]
        expected[r + length - 1] = np.einsum("bni,bnih->nh", of_pairs, queries)
    for function in (relative_sums, tf.function(relative_sums, jit_compile=True)):
        assert_close(function(tf.constant(weights), tf.constant(x)), expected, 1e-11)


@pytest.mark.quick("128-2-3-bfloat16-0.0036")
@pytest.mark.parametrize("dtype, tolerance", [("float16", 6e-4), ("bfloat16", 3.6e-3)])
@pytest.mark.parametrize(
    "length, batch, heads", [(128, 2, 3), (384, 1, 2), (640, 1, 1), (1024, 1, 1)]
)
def test_half_precision(length, batch, heads, dtype, tolerance):
    """Where rows move by products: values and gradients near those of float64."""
    generator = np.random.default_rng(5)
    # Two products, one after the other, each as exact as this processor makes them:
    # with instructions for float16, XLA sums in float16, too.
    tolerance += 2 * error_of_a_product(length, dtype)
    x = tf.constant(generator.normal(size=(batch, heads, length, 4)))
    weights = tf.constant(generator.normal(size=(batch, heads, length, length)))
    table = tf.constant(table_of(length, heads, 4))
    x, weights, table = (tf.cast(y, dtype) for y in (x, weights, table))

    @tf.function(jit_compile=True)
    def run(x, weights, table):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, weights, table])
            products = relative_products(x, table)
            values = relative_values(weights, table)
        return (
            products,
            *tape.gradient(products, [x, table], weights),
            values,
            *tape.gradient(values, [weights, table], x),
            relative_sums(weights, x),
        )

    actual = run(x, weights, table)
    expected = run(*(tf.cast(y, "float64") for y in (x, weights, table)))
    for one, other in zip(actual, expected):
        assert one.dtype == dtype
        error = tf.cast(one, "float64") - other
        assert tf.norm(error) < tolerance * tf.norm(other)
        assert tf.reduce_max(abs(error)) < 10 * tolerance * tf.math.reduce_std(other)


def error_of_a_product(length, dtype):
    """What a product of two matrices is off by under XLA, relative to its norm."""
    generator = np.random.default_rng(5)
    shapes = (6, length, length), (6, length, 64)
    x, y = (tf.cast(generator.normal(size=shape), dtype) for shape in shapes)
    expected = tf.matmul(tf.cast(x, "float64"), tf.cast(y, "float64"))
    error = tf.cast(tf.function(tf.matmul, jit_compile=True)(x, y), "float64")
    return tf.norm(error - expected) / tf.norm(expected)


def check(function, x, table, length, expected, weight, of_x, of_pairs):
    """Values; gradients of `x` and of the table, the latter summed by diagonals."""
    of_table = np.zeros_like(table)
    for i, j in np.ndindex(length, length):
        of_table[j - i + length - 1] += of_pairs[i, j]
    x, table = tf.constant(x), tf.constant(table)

    @tf.function
    def run(x, table):
        with tf.GradientTape() as tape:
            tape.watch([x, table])
            y = function(x, table)
            loss = tf.reduce_sum(y * weight)
        return y, *tape.gradient(loss, [x, table])

    y, slope_of_x, slope_of_table = run(x, table)
    assert_close(y, expected, 1e-11)
    assert_close(slope_of_x, of_x, 1e-11)
    assert_close(tf.convert_to_tensor(slope_of_table), of_table, 1e-11)
