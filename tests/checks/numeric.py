"""Comparing numbers, weights and gradients."""

import functools

import numpy as np
import tensorflow as tf

from tests.reference.gradients import finite_differences


def assert_close(actual, expected, tolerance, what=""):
    """Every element within `tolerance` of its own size plus that of the array.

    The second term is a tenth of `tolerance` times the largest expected magnitude:
    sums of rounded terms cancel, so elements near zero have no relative accuracy.
    """
    expected = np.asarray(expected)
    scale = np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(
        np.asarray(actual),
        expected,
        rtol=tolerance,
        atol=0.1 * tolerance * max(scale, 1.0),
        err_msg=what,
    )


def flat(arrays):
    """All arrays in one vector, to be judged by the size of the largest element.

    Some gradients are exactly zero in theory, such as that of a key bias under
    softmax, and consist of rounding errors alone.
    """
    # The gradient of a table of embeddings comes as slices of it.
    return np.concatenate([np.ravel(tf.convert_to_tensor(array)) for array in arrays])


def rounding_to_nearest(function):
    """`function`, compiled by XLA where TensorFlow truncates products in bfloat16.

    It does so on processors without instructions for bfloat16. A truncated product is
    off by twice as much, and always towards 0, so that sums of them are off, too.
    """
    return tf.function(function, jit_compile=True) if _truncates() else function


@functools.cache
def _truncates():
    x = tf.cast(np.random.default_rng(0).normal(size=(64, 1)), "bfloat16")
    exact = tf.cast(x, "float32") * tf.cast(tf.transpose(x), "float32")
    product = tf.matmul(x, tf.transpose(x))
    return bool(tf.reduce_any(product != tf.cast(exact, "bfloat16")))


def variables_of(layer, prefix=""):
    """The layer's weights by path below it: {"query/kernel": variable, ...}."""
    named = {}
    for variable in layer.weights:
        parts = variable.path.split("/")
        below = len(parts) - parts[::-1].index(layer.name)
        named[prefix + "/".join(parts[below:])] = variable
    return named


def arrays_of(variables):
    """Float64 copies of a mapping of variables."""
    return {name: v.numpy().astype("float64") for name, v in variables.items()}


def randomize(variables, seed=0, scale=0.5):
    """Gives every variable, biases and norms included, random normal values."""
    rng = np.random.default_rng(seed)
    for name in sorted(variables):
        variables[name].assign(scale * rng.normal(size=variables[name].shape))


def check_gradients(call, function, variables, inputs):
    """Automatic gradients of a float64 layer against finite differences.

    Args:
        call: takes the input tensors by name, gives the layer's output.
        function: the reference: takes arrays by name (weights and inputs), gives
            the output array.
        variables: the layer's weights by name, float64.
        inputs: arrays to differentiate in, by name.
    """
    tensors = {name: tf.constant(array) for name, array in inputs.items()}
    sources = {**{k: v.value for k, v in variables.items()}, **tensors}
    with tf.GradientTape() as tape:
        tape.watch(list(tensors.values()))
        output = call(**tensors)
        cotangent = np.random.default_rng(1).normal(size=output.shape)
        loss = tf.reduce_sum(output * cotangent)
    names = sorted(sources)
    gradients = tape.gradient(
        loss, [sources[name] for name in names], unconnected_gradients="zero"
    )
    expected = finite_differences(
        lambda arrays: float(np.sum(function(arrays) * cotangent)),
        {**arrays_of(variables), **inputs},
    )
    for name, gradient in zip(names, gradients):
        gradient = tf.convert_to_tensor(gradient)
        assert_close(gradient, expected[name], 1e-6, f"gradient of {name}")
