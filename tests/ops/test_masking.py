"""Softmax and the L2-normalised sigmoid over visible keys, at extreme scores."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference.attention import NORMALIZERS
from tests.reference.gradients import finite_differences
from tfeff import ops
from tfeff.ops import kernels
from tfeff.ops.kernels.barrier import barrier_one

FUNCTIONS = [
    (normalizer, getattr(place, name))
    for normalizer, name in (
        ("softmax", "masked_softmax"),
        ("sigmoid_l2", "l2_normalized_sigmoid"),
    )
    for place in (ops, kernels)
]
# Around -14 the squares of sigmoids add up to 1e-12, where the norm has its floor.
LEVELS = [0.0, 300.0, -10.0, -13.0, -14.0, -16.0, -30.0, -300.0, -5000.0]
MASKS = {
    "all": np.ones(7, bool),
    "some": np.array([0, 1, 1, 0, 1, 0, 0], bool),
    "one": np.arange(7) == 3,
    "none": np.zeros(7, bool),
}


def scores_at(level):
    return level + np.random.default_rng(0).normal(size=(3, 7))


@pytest.mark.parametrize("name, function", FUNCTIONS)
@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("level", LEVELS)
def test_equals_literal_version_and_has_finite_gradients(name, function, which, level):
    visible = MASKS[which]
    scores = tf.constant(scores_at(level))
    expected = NORMALIZERS[name](scores.numpy(), visible)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        weights = function(scores, tf.constant(visible))
        loss = tf.reduce_sum(tf.sin(weights))
    np.testing.assert_allclose(weights, expected, rtol=1e-11, atol=1e-300)
    assert not np.asarray(weights)[:, ~visible].any()
    assert np.isfinite(tape.gradient(loss, scores)).all()
    if which == "all":
        np.testing.assert_array_equal(function(scores), weights)


@pytest.mark.parametrize("name, function", FUNCTIONS)
@pytest.mark.parametrize("dtype, digits", [("float16", 11), ("bfloat16", 8)])
def test_half_precision_only_rounds_the_result(name, function, dtype, digits):
    """At -12 a float16 sum of squares would be zero."""
    for level in (0.0, -12.0):
        scores = tf.cast(scores_at(level), dtype)
        expected = NORMALIZERS[name](np.asarray(scores, "float64"), MASKS["some"])
        weights = function(scores, tf.constant(MASKS["some"]))
        assert weights.dtype == scores.dtype
        error = np.abs(np.asarray(weights, "float64") - expected)
        assert (error <= 2.0**-digits * expected + 1e-6).all()


@pytest.mark.parametrize("name, function", FUNCTIONS)
def test_masks_broadcast(name, function):
    scores = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")
    visible = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    weights = function(scores, visible[:, None, None])
    for b in range(2):
        for h in range(3):
            expected = NORMALIZERS[name](scores[b, h].astype("float64"), visible[b])
            assert_close(weights[b, h], expected, 1e-5)


@pytest.mark.parametrize("name, function", FUNCTIONS)
@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("level", [0.0, 4.0, -10.0, -16.0])
def test_gradients_are_those_of_the_equations(name, function, which, level):
    visible = MASKS[which]
    cotangent = np.random.default_rng(1).normal(size=(3, 7))
    cotangent = np.asarray(tf.cast(cotangent, "bfloat16"), "float64")
    for dtype, tolerance in (("float64", 1e-6), ("bfloat16", 0.02)):
        scores = tf.cast(scores_at(level), dtype)
        expected = finite_differences(
            lambda arrays: np.sum(NORMALIZERS[name](arrays["s"], visible) * cotangent),
            {"s": np.asarray(scores, "float64")},
        )["s"]
        with tf.GradientTape() as tape:
            tape.watch(scores)
            weights = function(scores, tf.constant(visible))
        actual = tape.gradient(
            weights, scores, output_gradients=tf.cast(cotangent, dtype)
        )
        error = np.abs(np.asarray(actual, "float64") - expected).max()
        assert error <= tolerance * max(np.abs(expected).max(), 1e-3), dtype


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 3)])
def test_barrier_one_is_one(shape):
    for value in (0.0, -3.0, np.inf):
        assert barrier_one(tf.fill(shape, value)) == 1.0
    assert np.isnan(barrier_one(tf.fill((2, 3), np.nan)))
