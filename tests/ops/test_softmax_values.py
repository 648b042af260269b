"""Softmax and values as one operation, against loops; gradients by differences."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tfeff.ops.kernels import softmax_values

B, N, T, S, H = 2, 3, 4, 5, 2
GENERATOR = np.random.default_rng(0)
SCORES = GENERATOR.normal(size=(B, N, T, S)) * 3
VALUE = GENERATOR.normal(size=(B, N, S, H))
WEIGHT = GENERATOR.normal(size=(B, N, T, H))
MASK = GENERATOR.random((B, 1, T, S)) < 0.6
MASK[1, :, 2] = False
PARTITION = GENERATOR.random((N, T, S))
KEEP = GENERATOR.random((B, N, T, S)) < 0.7
FACTORS = {
    "plain": {},
    "mask": dict(mask=MASK),
    "partition": dict(partition=PARTITION),
    "keep": dict(keep=KEEP),
    "all": dict(mask=MASK, partition=PARTITION, keep=KEEP),
}


def literal(scores, value, mask=None, partition=None, keep=None, rows=None):
    T, S = scores.shape[2:]
    mixed = np.zeros((B, N, T, H))
    for b, h, i in np.ndindex(B, N, T):
        seen = [j for j in range(S) if mask is None or mask[b, 0, i, j]]
        total = sum(np.exp(scores[b, h, i, j]) for j in seen)
        for j in seen:
            weight = np.exp(scores[b, h, i, j]) / total
            weight *= 1 if partition is None else partition[h, i, j]
            weight *= 1 if keep is None else keep[b, h, i, j]
            mixed[b, h, i] += weight * value[b, h, j]
            if rows is not None:
                mixed[b, h, i] += weight * rows[j - i + T - 1, h]
    return mixed


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("xla", [False, True])
def test_values_and_gradients(name, xla):
    factors = FACTORS[name]

    @tf.function(jit_compile=xla)
    def run(scores, value):
        with tf.GradientTape() as tape:
            tape.watch([scores, value])
            mixed = softmax_values(
                scores, value, **{k: tf.constant(v) for k, v in factors.items()}
            )
            loss = tf.reduce_sum(tf.sin(mixed) * WEIGHT)
        return mixed, *tape.gradient(loss, [scores, value])

    mixed, of_scores, of_value = run(tf.constant(SCORES), tf.constant(VALUE))
    assert_close(mixed, literal(SCORES, VALUE, **factors), 1e-12)

    def loss(scores, value):
        return (np.sin(literal(scores, value, **factors)) * WEIGHT).sum()

    for array, gradient in ((SCORES, of_scores), (VALUE, of_value)):
        expected = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[index] = 1e-5
            up, down = (
                loss(
                    SCORES + sign * step if array is SCORES else SCORES,
                    VALUE + sign * step if array is VALUE else VALUE,
                )
                for sign in (1, -1)
            )
            expected[index] = (up - down) / 2e-5
        assert_close(gradient, expected, 1e-7)


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("xla", [False, True])
def test_relative_values_and_gradients(name, xla):
    """Against the values of each pair, laid out; their gradients by TensorFlow."""
    factors = {key: tf.constant(array[..., :T]) for key, array in FACTORS[name].items()}
    scores, value = tf.constant(SCORES[..., :T]), tf.constant(VALUE[:, :, :T])
    relative = tf.constant(GENERATOR.normal(size=(2 * T, N, H)))

    def by_pairs(scores, value, relative):
        weights = tf.math.exp(scores)
        if "mask" in factors:
            weights = tf.where(factors["mask"], weights, 0.0)
        weights = tf.math.divide_no_nan(
            weights, tf.reduce_sum(weights, axis=-1, keepdims=True)
        )
        for key in {"partition", "keep"} & set(factors):
            weights *= tf.cast(factors[key], weights.dtype)
        pairs = tf.stack(
            [tf.stack([relative[j - i + T - 1] for j in range(T)]) for i in range(T)]
        )
        pairs = tf.transpose(pairs, (2, 0, 1, 3))[None] + value[:, :, None]
        return tf.einsum("bnij,bnijh->bnih", weights, pairs)

    def run(function):
        with tf.GradientTape() as tape:
            tape.watch([scores, value, relative])
            mixed = function(scores, value, relative)
            loss = tf.reduce_sum(tf.sin(mixed) * WEIGHT)
        return mixed, *tape.gradient(loss, [scores, value, relative])

    @tf.function(jit_compile=xla)
    def ours(scores, value, relative):
        return softmax_values(scores, value, **factors, rows=relative)

    for actual, expected in zip(run(ours), run(by_pairs)):
        assert_close(actual, expected, 1e-11)
    arrays = {key: array.numpy() for key, array in factors.items()}
    assert_close(
        ours(scores, value, relative),
        literal(scores.numpy(), value.numpy(), rows=relative.numpy(), **arrays),
        1e-12,
    )


@pytest.mark.parametrize("level", [-3e4, -300.0, 300.0, 3e4])
def test_no_level_of_scores_overflows(level):
    """Nor does a masked score that is far above the visible ones."""
    scores = tf.constant(SCORES + level)
    scores = tf.where(MASK, scores, 1e5)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        mixed = softmax_values(scores, tf.constant(VALUE), tf.constant(MASK))
        loss = tf.reduce_sum(mixed**2)
    assert_close(mixed, literal(SCORES, VALUE, MASK), 1e-8)
    assert np.isfinite(tape.gradient(loss, scores)).all()
    assert not np.asarray(mixed)[1, :, 2].any()


@pytest.mark.parametrize("dtype, tolerance", [("float16", 3e-3), ("bfloat16", 0.02)])
def test_half_precision(dtype, tolerance):
    scores, value = tf.cast(SCORES, dtype), tf.cast(VALUE, dtype)
    mixed = softmax_values(scores, value, mask=tf.constant(MASK))
    expected = literal(
        np.asarray(scores, "float64"), np.asarray(value, "float64"), MASK
    )
    assert mixed.dtype == dtype
    assert np.abs(np.asarray(mixed, "float64") - expected).max() <= tolerance * 2
