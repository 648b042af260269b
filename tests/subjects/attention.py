"""Outputs and gradients of attention on hidden states of 8 dimensions."""

import numpy as np
import tensorflow as tf

from tests.checks import assert_close
from tfeff import layers

D = 8


def run(layer, hidden, visible, way="eager", training=True):
    """The output and the gradients of the input and of all weights."""
    shape = (None, None, D) if way == "unknown length" else hidden.shape
    segments = np.arange(hidden.shape[1])[None] % 3 + 0 * visible

    def compute(hidden, visible, segments):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = layer(
                hidden, padding_mask=visible, training=training, **extra(segments)
            )
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
        compute = tf.function(
            compute,
            input_signature=signature,
            jit_compile=way == "XLA",
            autograph=False,
        )
    layer.dropout_layer.seed_generator.state.assign([3, 5])
    return compute(
        tf.constant(hidden), tf.constant(visible), tf.constant(segments, tf.int32)
    )


def check(actual, expected, tolerance):
    assert_close(actual[0], expected[0], tolerance)
    for one, other in zip(actual[1], expected[1], strict=True):
        assert_close(one, other, tolerance)
