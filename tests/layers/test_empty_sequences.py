"""Sequences without a position, and batches without a sequence, through every layer."""

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import randomize, variables_of
from tfeff import layers
from tfeff.layers.separable_conv import SeparableConv1D

METHODS = ("shaw", "rpe", "bias", "huang1", "huang2", "huang3", "huang4", "xlnet")
LAYERS = {
    "self": lambda: layers.SelfAttention(2),
    "one head": lambda: layers.OneHeadAttention(2),
    "one head, softmax": lambda: layers.OneHeadAttention(2, normalizer="softmax"),
    "partitioned": lambda: layers.PartitionedAttention(2),
    "blockwise": lambda: layers.BlockwiseAttention(2, "1:1"),
    "sparse": lambda: layers.SparseAttention(2, stride=2, expressivity=1),
    "mixed": lambda: layers.MixedAttention(2, kernel_size=3),
    "separable": lambda: layers.MixedAttention(2, 1, 3, convolution="separable"),
    "span dynamic": lambda: layers.SpanDynamicConv1D(2, 3),
    "dynamic": lambda: layers.DynamicConv1D(2, 3),
    "lightweight": lambda: layers.LightweightConv1D(2, 3),
    **{m: (lambda m=m: layers.RelativeAttention(2, m)) for m in METHODS},
}


@pytest.mark.quick("self", "partitioned", "mixed", "dynamic", "rpe", "huang2", "xlnet")
@pytest.mark.parametrize("name", LAYERS)
def test_nothing_in_nothing_out(name):
    layer = LAYERS[name]()
    layer(np.ones((2, 4, 8), "float32"))
    for batch, length in ((2, 0), (0, 4)):
        hidden = tf.zeros((batch, length, 8))
        for mask in (None, tf.ones((batch, length), "int32")):
            with tf.GradientTape() as tape:
                output = layer(hidden, padding_mask=mask)
            assert output.shape == hidden.shape
            gradients = tape.gradient(output, layer.trainable_variables)
            for gradient in gradients:
                assert gradient is None or not np.any(tf.convert_to_tensor(gradient))


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "separable"])
def test_of_nothing_visible_the_output_is_its_bias(name):
    layer = LAYERS[name]()
    layer.build((None, None, 8))
    randomize(variables_of(layer))
    hidden = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
    output = layer(hidden, padding_mask=np.array([[0, 0, 0, 0], [1, 1, 0, 0]]))
    bias = np.broadcast_to(layer.output_dense.bias, (4, 8))
    np.testing.assert_array_equal(output[0], bias)
    assert np.abs(output[1] - bias).max() > 1e-3


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shape", [(2, 0, 8), (0, 4, 8), (0, 0, 8)])
def test_a_convolution_of_nothing_has_no_gradient(shape, jit_compile):
    layer = SeparableConv1D(6, 3, padding="same")
    layer.build((None, None, 8))

    @tf.function(jit_compile=jit_compile)
    def output_and_gradients(hidden):
        with tf.GradientTape() as tape:
            output = layer(hidden)
        return output, tape.gradient(output, layer.trainable_variables)

    output, gradients = output_and_gradients(tf.zeros(shape))
    assert output.shape == (*shape[:2], 6)
    assert not any(np.any(gradient) for gradient in gradients)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("position", ["absolute", "sinusoid", "none"])
def test_no_position_is_embedded(position, graph):
    layer = layers.EncoderEmbedding(9, 8, position=position)
    call = layer
    if graph:
        call = tf.function(
            layer, input_signature=[tf.TensorSpec((None, None), "int32")]
        )
    assert call(tf.zeros((2, 0), "int32")).shape == (2, 0, 8)


def test_the_mean_of_no_position_is_zeros():
    for mask in (None, np.zeros((2, 0), bool)):
        pooled = layers.MeanPooling()(np.zeros((2, 0, 8)), padding_mask=mask)
        np.testing.assert_array_equal(pooled, np.zeros((2, 8)))


@pytest.mark.quick("self", "span dynamic")
@pytest.mark.parametrize("name", LAYERS)
def test_a_replica_without_rows_has_no_gradient(name):
    """In a graph that knows no sizes, as the last batch of an epoch leaves it."""
    layer = LAYERS[name]()
    layer(np.ones((2, 4, 8), "float32"))

    @tf.function(input_signature=[tf.TensorSpec((None, None, 8))], autograph=False)
    def gradients(hidden):
        with tf.GradientTape() as tape:
            output = layer(hidden)
        found = tape.gradient(output, layer.trainable_variables)
        return [tf.convert_to_tensor(x) for x in found]

    for gradient in gradients(tf.zeros((0, 4, 8))):
        assert not np.any(gradient)
    assert any(np.any(x) for x in gradients(tf.ones((1, 4, 8))))
