"""Slices of an axis against indexing."""

import numpy as np
import pytest
import tensorflow as tf

from tfeff.ops import slice_axis


@pytest.mark.parametrize(
    "axis, start, stop", [(0, 1, 3), (1, 0, None), (-1, 2, -1), (1, -3, 9), (1, 3, 1)]
)
def test_equals_an_index(axis, start, stop):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    index = [slice(None)] * 3
    index[axis] = slice(start, stop)
    np.testing.assert_array_equal(
        slice_axis(tf.constant(x), axis, start, stop), x[tuple(index)]
    )


@pytest.mark.parametrize("shape", [(2, 6, 4), (None, 6, None), (None, None, 4)])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradient(shape, jit_compile):
    @tf.function(
        jit_compile=jit_compile,
        input_signature=[tf.TensorSpec(shape, "float64")] * 2,
    )
    def run(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = slice_axis(x, 1, 2, -1)
        return y, tape.gradient(y, x, upstream[:, 2:-1])

    x, upstream = np.random.default_rng(1).normal(size=(2, 2, 6, 4))
    expected = np.zeros_like(x)
    expected[:, 2:-1] = upstream[:, 2:-1]
    for actual, wanted in zip(run(x, upstream), (x[:, 2:-1], expected)):
        np.testing.assert_array_equal(actual, wanted)


def test_bounds_that_are_tensors():
    @tf.function(input_signature=[tf.TensorSpec((3, None)), tf.TensorSpec((), "int32")])
    def last(x, count):
        return slice_axis(x, 1, -count)

    x = np.random.default_rng(2).normal(size=(3, 7)).astype("float32")
    np.testing.assert_array_equal(last(x, 4), x[:, 3:])
