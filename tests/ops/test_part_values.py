"""Values by parts as one operation, against the equations; gradients by differences."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference.attention import NORMALIZERS
from tests.reference.gradients import finite_differences
from tfeff.ops.kernels import part_values

B, N, T, S, H = 2, 3, 4, 5, 2
GENERATOR = np.random.default_rng(0)
ARRAYS = {
    "scores": GENERATOR.normal(size=(B, 1, T, S)) * 3,
    "value": GENERATOR.normal(size=(B, S, N, H)).swapaxes(1, 2),
}
WEIGHT = GENERATOR.normal(size=(B, T, N, H)).swapaxes(1, 2)
PARTITION = GENERATOR.random((N, T, S))
VISIBLE = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], bool)
KEEP = GENERATOR.random((B, 1, T, S)) < 0.7
FACTORS = {
    "plain": {},
    "mask": dict(mask=VISIBLE[:, None, None]),
    "keep": dict(keep=KEEP),
    "all": dict(mask=VISIBLE[:, None, None], keep=KEEP),
}


def literal(scores, value, normalizer="softmax", mask=None, keep=None):
    context = np.zeros((B, N, T, H))
    for b in range(B):
        visible = np.ones(S, bool) if mask is None else mask[b, 0, 0]
        weights = NORMALIZERS[normalizer](scores[b, 0], visible)
        for i, h, j in np.ndindex(T, N, S):
            weight = weights[i, j] * PARTITION[h, i, j]
            weight *= 1 if keep is None else keep[b, 0, i, j]
            context[b, h, i] += weight * value[b, h, j]
    return context


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_values_and_gradients(name, normalizer):
    factors = dict(FACTORS[name], normalizer=normalizer)
    tensors = {key: tf.constant(x) for key, x in ARRAYS.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        context = part_values(partition=tf.constant(PARTITION), **tensors, **factors)
        loss = tf.reduce_sum(tf.sin(context) * WEIGHT)
    gradients = tape.gradient(loss, tensors)
    assert_close(context, literal(**ARRAYS, **factors), 1e-12)
    expected = finite_differences(
        lambda arrays: (np.sin(literal(**arrays, **factors)) * WEIGHT).sum(), ARRAYS
    )
    for key in ARRAYS:
        assert_close(gradients[key], expected[key], 1e-7)
