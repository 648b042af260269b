"""Outputs and gradients of attention on hidden states of 8 dimensions."""

import functools

import numpy as np
import tensorflow as tf

from tests.checks import assert_close
from tfeff import layers

D = 8


def run(layer, hidden, visible, way="eager", training=True, apart=False):
    """The output and the gradients of the input and of all weights.

    Args:
        layer: an attention.
        hidden, visible: arrays `[B, T, D]` and `[B, T]`.
        way: `"eager"`, `"graph"` or `"XLA"`; of the last two, `"graph of any length"`
            and `"XLA of any length"` have an unknown batch size and length.
        training: whether dropout is active.
        apart: whether the layer is a function of its own that eager code
            differentiates, and not one function with its gradients.
    """
    shape = (None, None, D) if "any length" in way else hidden.shape
    segments = np.arange(hidden.shape[1])[None] % 3 + 0 * visible

    def forward(hidden, visible, segments):
        return layer(hidden, padding_mask=visible, training=training, **extra(segments))

    def compute(hidden, visible, segments):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = forward(hidden, visible, segments)
            loss = tf.reduce_sum(tf.sin(output))
        gradients = tape.gradient(loss, [hidden, *layer.trainable_variables])
        return output, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def extra(segments):
        scored = not isinstance(layer, layers.BlockwiseAttention)
        return {"segment_ids": segments} if scored else {}

    if way != "eager":
        signature = [
            tf.TensorSpec(shape, hidden.dtype),
            tf.TensorSpec(shape[:2], tf.bool),
            tf.TensorSpec(shape[:2], tf.int32),
        ]
        function = functools.partial(
            tf.function,
            input_signature=signature,
            jit_compile="XLA" in way,
            autograph=False,
        )
        if apart:
            forward = function(forward)
        else:
            compute = function(compute)
    layer.dropout_layer.seed_generator.state.assign([3, 5])
    return compute(
        tf.constant(hidden), tf.constant(visible), tf.constant(segments, tf.int32)
    )


def check(actual, expected, tolerance):
    assert_close(actual[0], expected[0], tolerance)
    for one, other in zip(actual[1], expected[1], strict=True):
        assert_close(one, other, tolerance)
