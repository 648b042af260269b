"""GELU in both forms, and their derivatives, against their definitions."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tfeff.ops.kernels import gelu, gelu_tanh

X = np.concatenate([np.linspace(-9.0, 9.0, 181), [-300.0, -40.0, 40.0, 300.0]])


def exact(x):
    return np.array([v * 0.5 * math.erfc(-v / math.sqrt(2.0)) for v in x])


def by_tanh(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(inner))


@pytest.mark.parametrize(("ours", "literal"), [(gelu, exact), (gelu_tanh, by_tanh)])
def test_values_and_derivatives(ours, literal):
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ours(x)
        slope = tape.gradient(y, x)
    assert_close(y, literal(X), 1e-12)
    step = 1e-5
    expected = (literal(X + step) - literal(X - step)) / (2 * step)
    assert_close(slope, expected, 1e-6)
    curvature = (literal(X + 1e-3) - 2 * literal(X) + literal(X - 1e-3)) / 1e-6
    assert_close(tape.gradient(slope, x), curvature, 1e-3)
    for dtype, tolerance in (("float32", 1e-5), ("bfloat16", 0.02), ("float16", 3e-3)):
        z = tf.cast(x, dtype)
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = ours(z)
        assert_close(np.asarray(y, "float64"), literal(X), tolerance, dtype)
        slope = np.asarray(tape.gradient(y, z), "float64")
        assert np.abs(slope - expected).max() <= 2 * tolerance, dtype
