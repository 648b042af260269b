"""ConvBERT's three convolutions against its equations 2 to 5 and Figure 3."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import (
    arrays_of,
    assert_close,
    check_equations,
    check_layer,
    randomize,
    variables_of,
)
from tests.checks.programs import largest_tensor
from tests.reference import batched, convolution_layer
from tfeff.layers import DynamicConv1D, LightweightConv1D, SpanDynamicConv1D

LAYERS = {
    "lightweight": LightweightConv1D,
    "dynamic": DynamicConv1D,
    "span_dynamic": SpanDynamicConv1D,
}
VISIBLE = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 0, 1]], bool)


def reference(kind, num_heads):
    return batched(partial(convolution_layer, kind=kind, num_heads=num_heads))


def check(check, kind, num_heads=2, **options):
    check(
        partial(LAYERS[kind], num_heads, **options),
        reference(kind, num_heads),
        hidden_dim=4 if check is check_equations else 8,
    )


def randomized(kind, num_heads=2, hidden_dim=8, **options):
    layer = LAYERS[kind](num_heads, **options)
    layer.build((None, None, hidden_dim))
    randomize(variables_of(layer))
    return layer


def inputs_of(batch, length, size=8):
    return np.random.default_rng(0).normal(size=(batch, length, size)).astype("float32")


@pytest.mark.quick("span_dynamic")
@pytest.mark.parametrize("kind", LAYERS)
def test_layer(kind):
    check(check_layer, kind, kernel_size=3)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("num_heads, kernel_size", [(1, 5), (4, 1)])
def test_equations(kind, num_heads, kernel_size):
    check(check_equations, kind, num_heads, kernel_size=kernel_size)


@pytest.mark.parametrize("kind", LAYERS)
def test_default_kernel_is_longer_than_the_sequence(kind):
    """Nine taps over 1, 5, 8 and 13 positions."""
    layer = randomized(kind)
    weights = arrays_of(variables_of(layer))
    for length in (1, 5, 8, 13):
        hidden = inputs_of(2, length)
        visible = np.arange(length) < np.array([[length], [length - 2]])
        expected = reference(kind, 2)(hidden.astype("float64"), visible, weights)
        output = layer(hidden, padding_mask=visible, return_attention_scores=True)
        for actual, literal in zip(output, expected):
            assert_close(actual, literal, 1e-5)


@pytest.mark.parametrize("kind", LAYERS)
def test_without_mask_conv_padding_leaks_in(kind):
    """The mask then changes nothing: padding is text like any other."""
    leaky = randomized(kind, kernel_size=3, mask_conv=False)
    masked = randomized(kind, kernel_size=3)
    hidden = inputs_of(3, 5)
    weights = arrays_of(variables_of(leaky))
    everything = np.ones((3, 5), bool)
    expected = reference(kind, 2)(hidden.astype("float64"), everything, weights)[0]
    output = leaky(hidden, padding_mask=VISIBLE)
    assert_close(output, expected, 1e-5)
    assert_close(output, masked(hidden), 1e-6)
    difference = np.abs(output - masked(hidden, padding_mask=VISIBLE))
    assert difference[VISIBLE].max() > 1e-2


@pytest.mark.parametrize("kind", LAYERS)
def test_is_local_and_shift_invariant(kind):
    layer = randomized(kind, kernel_size=5)
    hidden = inputs_of(1, 14)
    output = np.asarray(layer(hidden))
    changed = hidden.copy()
    changed[0, 6] += 1.0
    moved = np.abs(layer(changed) - output).max(axis=(0, 2)) > 1e-5
    # Taps that depend on a span that is read with taps reach two positions on.
    assert set(np.flatnonzero(moved)) == {4, 5, 6, 7, 8}
    visible = np.ones((1, 14), bool)
    shifted = layer(
        np.pad(hidden, ((0, 0), (3, 0), (0, 0)), constant_values=9.0),
        padding_mask=np.pad(visible, ((0, 0), (3, 0))),
    )
    assert_close(shifted[:, 3:], output, 1e-5)


@pytest.mark.parametrize("kind", LAYERS)
def test_taps_add_up_to_one(kind):
    """In the middle of a sequence, where no tap reads beyond its ends."""
    layer = randomized(kind, kernel_size=3)
    _, scores = layer(inputs_of(2, 7), return_attention_scores=True)
    sums = np.asarray(scores).sum(axis=-1)
    assert_close(sums[:, :, 1:-1], np.ones((2, 2, 5)), 1e-5)
    assert (sums[:, :, [0, -1]] < 0.999).all()


def test_dynamic_taps_without_kernel_weights_are_lightweight():
    """Then the bias alone makes the taps, the same at every position."""
    light = randomized("lightweight", kernel_size=3)
    layer = randomized("dynamic", kernel_size=3)
    named, source = variables_of(layer), variables_of(light)
    named["kernel/kernel"].assign(np.zeros((8, 6)))
    named["kernel/bias"].assign(np.ravel(source["taps"].numpy()))
    for name in ("input", "output"):
        for part in ("kernel", "bias"):
            named[f"{name}/{part}"].assign(source[f"{name}/{part}"])
    hidden = inputs_of(3, 5)
    assert_close(
        layer(hidden, padding_mask=VISIBLE), light(hidden, padding_mask=VISIBLE), 1e-5
    )


def test_lightweight_with_an_open_gate_is_span_dynamic_without_kernel_weights():
    """The gate is what sets the values of the two apart: they are linear behind 1."""
    span = randomized("span_dynamic", kernel_size=3)
    light = randomized("lightweight", kernel_size=3)
    named, source = variables_of(light), variables_of(span)
    source["kernel/kernel"].assign(np.zeros((8, 6)))
    named["taps"].assign(source["kernel/bias"].numpy().reshape(2, 3))
    kernel, bias = source["value/kernel"].numpy(), source["value/bias"].numpy()
    named["input/kernel"].assign(np.hstack([kernel, np.zeros((8, 8))]))
    for part in ("kernel", "bias"):
        named[f"output/{part}"].assign(source[f"output/{part}"])
    hidden = inputs_of(3, 5)
    expected = span(hidden, padding_mask=VISIBLE)
    named["input/bias"].assign(np.hstack([bias, np.full(8, 40.0)]))
    assert_close(light(hidden, padding_mask=VISIBLE), expected, 1e-5)
    named["input/bias"].assign(np.hstack([bias, np.full(8, -40.0)]))
    closed = np.broadcast_to(source["output/bias"].numpy(), expected.shape)
    assert_close(light(hidden, padding_mask=VISIBLE), closed, 1e-6)


@pytest.mark.parametrize("kind", LAYERS)
def test_scores_are_those_without_dropout(kind):
    layer = randomized(kind, kernel_size=3, dropout=0.5)
    hidden = inputs_of(2, 7)
    scores = [
        layer(hidden, training=training, return_attention_scores=True)[1]
        for training in (True, False)
    ]
    assert_close(*scores, 1e-6)


def test_weights():
    def shapes(kind):
        named = variables_of(randomized(kind, kernel_size=3))
        return {name: tuple(v.shape) for name, v in named.items()}

    def dense(*names):
        kernels = {f"{name}/kernel": (8, 8) for name in names}
        return kernels | {f"{name}/bias": (8,) for name in names}

    gated = {"input/kernel": (8, 16), "input/bias": (16,)} | dense("output")
    assert shapes("lightweight") == gated | {"taps": (2, 3)}
    taps = {"kernel/kernel": (8, 6), "kernel/bias": (6,)}
    assert shapes("dynamic") == gated | taps
    assert shapes("span_dynamic") == dense("query", "value", "output") | taps | {
        "span_key/depthwise_kernel": (3, 8, 1),
        "span_key/pointwise_kernel": (1, 8, 8),
        "span_key/bias": (8,),
    }


def test_lora_and_quantization_reach_the_gate():
    """The gated linear layer is a Keras layer like any other."""
    hidden = inputs_of(3, 5)
    for kind in ("lightweight", "dynamic"):
        layer = randomized(kind, kernel_size=3)
        before = np.asarray(layer(hidden, padding_mask=VISIBLE))
        layer.input_dense.enable_lora(2)
        assert_close(layer(hidden, padding_mask=VISIBLE), before, 1e-6)
        layer.input_dense.lora_kernel_b.assign(np.ones((2, 16)))
        assert np.abs(layer(hidden, padding_mask=VISIBLE) - before).max() > 1e-2
        layer = randomized(kind, kernel_size=3)
        for dense in (layer.input_dense, layer.output_dense):
            dense.quantize("int8")
        after = np.asarray(layer(hidden, padding_mask=VISIBLE))
        assert 0 < np.abs(after - before).max() < 0.05 * np.abs(before).max()


@pytest.mark.parametrize("kind", LAYERS)
def test_never_unfolds_the_sequence(kind):
    """No copy of the sequence for every tap: K T D elements."""
    length, size, taps = 128, 128, 9
    layer = LAYERS[kind](2, kernel_size=taps)
    hidden = inputs_of(2, length, size)
    layer(hidden)
    visible = np.arange(length) < np.array([[length], [length - 3]])
    largest = largest_tensor(layer, layer.trainable_variables, hidden, visible)
    # A row of the band, of 2 × 32 + K columns, is about as wide as a head.
    assert largest < 3 * 2 * length * size < taps * 2 * length * size


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"num_heads": 2.0}, "num_heads"),
        ({"kernel_size": 4}, "kernel_size"),
        ({"kernel_size": 0}, "kernel_size"),
        ({"kernel_size": -3}, "kernel_size"),
        ({"kernel_size": 3.0}, "kernel_size"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_names_a_bad_argument(kind, arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        LAYERS[kind](**{"num_heads": 2, **arguments})


@pytest.mark.parametrize("kind", LAYERS)
def test_heads_must_divide_the_hidden_size(kind):
    with pytest.raises(ValueError, match="`num_heads` must divide.*num_heads=3.*dim=8"):
        LAYERS[kind](3)(inputs_of(1, 2))


def test_the_gradient_of_taps_of_many_rows_in_bfloat16():
    """It is a difference of sums over all positions, which rounded sums would lose.

    Compiled, as TensorFlow's own products truncate bfloat16 on processors without it.
    """
    draws = np.random.default_rng(5)
    inputs, factors = draws.normal(size=(2, 16, 512, 32)).astype("float32")
    factors += 0.5
    weights, gradients = [], []
    for dtype in ("float32", "mixed_bfloat16"):
        layer = LightweightConv1D(4, kernel_size=9, dtype=dtype)
        layer.build((None, None, 32))
        weights = weights or [0.3 * draws.normal(size=w.shape) for w in layer.weights]
        layer.set_weights(weights)

        @tf.function(jit_compile=True)
        def gradient(layer=layer):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.cast(layer(inputs), "float32") * factors)
            return tape.gradient(loss, layer.taps.value)

        gradients.append(gradient().numpy())
    error = np.linalg.norm(gradients[1] - gradients[0]) / np.linalg.norm(gradients[0])
    assert error < 0.01
