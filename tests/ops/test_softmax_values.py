"""Softmax and values as one operation, against loops; gradients by differences."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference.gradients import finite_differences
from tfeff.ops.kernels import softmax_values

B, N, T, S, H = 2, 3, 4, 5, 2
GENERATOR = np.random.default_rng(0)
SCORES = GENERATOR.normal(size=(B, N, T, S)) * 3
VALUE = GENERATOR.normal(size=(B, N, S, H))
ROWS = GENERATOR.normal(size=(T + S, N, H))
ARRAYS = dict(scores=SCORES, value=VALUE, rows=ROWS)
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
    context = np.zeros((B, N, T, H))
    for b, h, i in np.ndindex(B, N, T):
        seen = [j for j in range(S) if mask is None or mask[b, 0, i, j]]
        total = sum(np.exp(scores[b, h, i, j]) for j in seen)
        for j in seen:
            weight = np.exp(scores[b, h, i, j]) / total
            weight *= 1 if partition is None else partition[h, i, j]
            weight *= 1 if keep is None else keep[b, h, i, j]
            context[b, h, i] += weight * value[b, h, j]
            if rows is not None:
                context[b, h, i] += weight * rows[j - i + T - 1, h]
    return context


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("given", [("scores", "value"), tuple(ARRAYS)])
def test_values_and_gradients(name, given):
    arrays, factors = {key: ARRAYS[key] for key in given}, FACTORS[name]
    tensors = {key: tf.constant(x) for key, x in arrays.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        context = softmax_values(
            **tensors, **{key: tf.constant(x) for key, x in factors.items()}
        )
        loss = tf.reduce_sum(tf.sin(context) * WEIGHT)
    assert_close(context, literal(**arrays, **factors), 1e-12)
    gradients = tape.gradient(loss, tensors)
    expected = finite_differences(
        lambda arrays: (np.sin(literal(**arrays, **factors)) * WEIGHT).sum(), arrays
    )
    for key in arrays:
        assert_close(gradients[key], expected[key], 1e-7)


@pytest.mark.parametrize("level", [-3e4, -300.0, 300.0, 3e4])
def test_no_level_of_scores_overflows(level):
    """Nor does a masked score that is far above the visible ones."""
    scores = tf.constant(SCORES + level)
    scores = tf.where(MASK, scores, 1e5)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        context = softmax_values(scores, tf.constant(VALUE), tf.constant(MASK))
        loss = tf.reduce_sum(context**2)
    assert_close(context, literal(SCORES, VALUE, MASK), 1e-8)
    assert np.isfinite(tape.gradient(loss, scores)).all()
    assert not np.asarray(context)[1, :, 2].any()
