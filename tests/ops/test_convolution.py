"""Convolutions in blocks against the sum over the taps, position by position."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference.convolution import convolve
from tfeff.ops import dynamic_convolution


@pytest.mark.parametrize("num_taps", [1, 9, 41])
@pytest.mark.parametrize("length", [1, 31, 32, 33, 100])
def test_kernels_of_positions_and_of_all_positions(length, num_taps):
    """Lengths about a block's 32 positions, and kernels longer than a block."""
    rng = np.random.default_rng(length)
    values = rng.normal(size=(2, length, 3, 4))
    own = rng.normal(size=(2, length, 3, num_taps))
    shared = rng.normal(size=(3, num_taps))
    for kernels in (own, shared):
        taps = np.broadcast_to(kernels, own.shape)
        expected = [
            convolve(w, u.reshape(length, 12)).reshape(length, 3, 4)
            for w, u in zip(taps, values)
        ]
        assert_close(dynamic_convolution(values, kernels), expected, 1e-10)


def test_gradient_of_a_shared_kernel_is_the_sum_over_positions():
    rng = np.random.default_rng(0)
    values = tf.constant(rng.normal(size=(2, 70, 3, 4)))
    shared = tf.constant(rng.normal(size=(3, 9)))
    own = tf.broadcast_to(shared, (2, 70, 3, 9))
    gradients = []
    for kernels in (shared, own):
        with tf.GradientTape() as tape:
            tape.watch([values, kernels])
            loss = tf.reduce_sum(tf.sin(dynamic_convolution(values, kernels)))
        gradients.append(tape.gradient(loss, [values, kernels]))
    assert_close(gradients[0][0], gradients[1][0], 1e-10)
    assert_close(gradients[0][1], tf.reduce_sum(gradients[1][1], axis=(0, 1)), 1e-10)


def test_kernels_without_a_middle_are_named():
    with pytest.raises(ValueError, match="`kernels` must have an odd last axis"):
        dynamic_convolution(np.ones((2, 5, 3, 4)), np.ones((3, 4)))
