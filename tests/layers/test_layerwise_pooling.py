"""Layerwise pooling against section 3.4."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import arrays_of, assert_close, check_gradients, randomize
from tests.reference import (
    layerwise_pooling,
    one_head_pooling,
    part_of,
    softmax_pooling,
)
from tests.subjects.blocks import block_variables
from tfeff.layers import (
    BlockwiseAttention,
    DynamicConv1D,
    EncoderBlock,
    FeedForward,
    LayerwisePooling,
    MixedAttention,
    OneHeadAttention,
    PartitionedAttention,
    RelativeAttention,
    SelfAttention,
    SparseAttention,
)

VISIBLE = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], bool)
SOFTMAX = partial(softmax_pooling, num_heads=2)
KINDS = {
    "self": (partial(SelfAttention, 2), SOFTMAX),
    "partitioned": (partial(PartitionedAttention, 2), SOFTMAX),
    "shatter": (
        partial(OneHeadAttention, 4),
        partial(one_head_pooling, normalizer="sigmoid_l2"),
    ),
    "key matrix, one value matrix": (
        partial(OneHeadAttention, 4, key_projection=True, values_by_part=False),
        partial(one_head_pooling, normalizer="sigmoid_l2", keep_key=True),
    ),
    "one head softmax": (
        partial(OneHeadAttention, 4, "softmax"),
        partial(one_head_pooling, normalizer="softmax"),
    ),
}


def mixed_pooling(vector, hidden, visible, weights, num_heads):
    """The attention heads of ConvBERT; convolution heads are 0."""
    kernel = weights["output/kernel"]
    heads = weights | {"output/kernel": kernel[: len(kernel) // 2]}
    return softmax_pooling(vector, hidden, visible, heads, num_heads)


# Positions have no effect: the equation is that of softmax attention.
WITHOUT_POSITIONS = {
    **{
        method: (partial(RelativeAttention, 2, method), SOFTMAX)
        for method in ("xlnet", "rpe", "bias", "huang2", "huang4")
    },
    "blockwise": (partial(BlockwiseAttention, 2, "1:1"), SOFTMAX),
    "sparse": (partial(SparseAttention, 2, 3, 1), SOFTMAX),
    "mixed": (
        partial(MixedAttention, 4, kernel_size=3),
        partial(mixed_pooling, num_heads=2),
    ),
}


def make(kind, dtype="float32", num_layers=2):
    """Blocks and their pooling, all weights random."""
    make_attention, _ = (KINDS | WITHOUT_POSITIONS)[kind]
    blocks = [
        EncoderBlock(
            make_attention(layer_index=k, num_layers=num_layers, dtype=dtype)
            if kind in KINDS and kind != "self"
            else make_attention(dtype=dtype),
            FeedForward(12, dtype=dtype),
            dtype=dtype,
        )
        for k in range(num_layers)
    ]
    pooling = LayerwisePooling(blocks, dtype=dtype)
    pooling(states(VISIBLE, num_layers))
    randomize(pooling_variables(pooling, blocks))
    return pooling, blocks


def pooling_variables(pooling, blocks):
    named = {"initial_vector": pooling.initial_vector}
    for k, block in enumerate(blocks):
        named |= {f"{k}/{n}": v for n, v in block_variables(block).items()}
    return named


def states(visible=VISIBLE, num_layers=2, dtype="float32"):
    shape = (num_layers + 1, *visible.shape, 8)
    return list(np.random.default_rng(5).normal(size=shape).astype(dtype))


def literal(arrays, hidden_states, visible, kind):
    num_layers = len(hidden_states) - 1
    return np.stack(
        [
            layerwise_pooling(
                [x[b] for x in hidden_states[:-1]],
                visible[b],
                arrays["initial_vector"],
                [part_of(arrays, str(k)) for k in range(num_layers)],
                (KINDS | WITHOUT_POSITIONS)[kind][1],
            )
            for b in range(len(visible))
        ]
    )


@pytest.mark.quick("mixed", "shatter")
@pytest.mark.parametrize("kind", KINDS | WITHOUT_POSITIONS)
def test_equals_literal_version(kind):
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-10)):
        pooling, blocks = make(kind, dtype)
        weights = arrays_of(pooling_variables(pooling, blocks))
        everything = np.ones_like(VISIBLE)
        hidden = states(dtype=dtype)
        expected = literal(weights, hidden, everything, kind)
        assert_close(pooling(hidden), expected, tolerance, "no mask")
        for length in (5, 1):
            visible = VISIBLE[:, :length]
            hidden = states(visible, dtype=dtype)
            expected = literal(weights, hidden, visible, kind)
            for mask in (visible, visible.astype("int32")):
                actual = pooling(hidden, padding_mask=mask)
                assert_close(actual, expected, tolerance)


@pytest.mark.quick("shatter")
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    """Zero for partition embeddings, which are not used without positions."""
    pooling, blocks = make(kind, "float64")
    visible = VISIBLE[:, :4]
    hidden = states(visible, dtype="float64")
    inputs = {"x0": hidden[0], "x1": hidden[1], "x2": hidden[2]}
    check_gradients(
        lambda x0, x1, x2: pooling([x0, x1, x2], padding_mask=visible),
        lambda a: literal(a, [a["x0"], a["x1"], a["x2"]], visible, kind),
        pooling_variables(pooling, blocks),
        inputs,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_laws(kind):
    """The last state is not used; neither order nor padding matters."""
    pooling, _ = make(kind)
    hidden = states()
    expected = np.asarray(pooling(hidden, padding_mask=VISIBLE))
    unread = [*hidden[:-1], np.full_like(hidden[-1], np.nan)]
    np.testing.assert_array_equal(pooling(unread, padding_mask=VISIBLE), expected)
    order = [4, 1, 3, 0, 2]
    actual = pooling([x[:, order] for x in hidden], padding_mask=VISIBLE[:, order])
    assert_close(actual, expected, 1e-5, "order")
    garbage = [np.where(VISIBLE[..., None], x, np.float32(1e4)) for x in hidden]
    longer = [np.pad(x, ((0, 0), (0, 2), (0, 0)), constant_values=1e4) for x in garbage]
    mask = np.pad(VISIBLE, ((0, 0), (0, 2)))
    actual = pooling(longer, padding_mask=mask)
    assert_close(actual, expected, 1e-5, "padding")


def test_adds_one_vector_of_weights():
    pooling, blocks = make("shatter")
    own = {id(v) for v in pooling.weights} - {id(v) for b in blocks for v in b.weights}
    assert own == {id(pooling.initial_vector)}
    assert pooling.initial_vector.shape == (8,)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["self", "shatter"])
def test_xla_dynamic_shapes_and_half_precision(kind):
    pooling, blocks = make(kind)
    weights = arrays_of(pooling_variables(pooling, blocks))
    x = tf.TensorSpec((None, None, 8))
    traced = tf.function(
        lambda hidden, mask: pooling(hidden, padding_mask=mask),
        input_signature=[[x, x, x], tf.TensorSpec((None, None), tf.bool)],
    )
    compiled = tf.function(
        lambda hidden, mask: pooling(hidden, padding_mask=mask), jit_compile=True
    )
    for length in (5, 1):
        visible = VISIBLE[:, :length]
        hidden = [tf.constant(x) for x in states(visible)]
        expected = literal(weights, states(visible), visible, kind)
        assert_close(traced(hidden, visible), expected, 1e-5, "tf.function")
        assert_close(compiled(hidden, visible), expected, 1e-5, "XLA")
    for dtype, tolerance in (("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)):
        pooling, _ = make(kind, dtype)
        output = np.asarray(pooling(states(), padding_mask=VISIBLE), "float64")
        expected = literal(weights, states(), VISIBLE, kind)
        error = np.abs(output - expected).max()
        assert error <= tolerance * np.abs(expected).max(), (dtype, error)


@pytest.mark.slow
def test_shares_the_blocks_weights_in_a_saved_model(tmp_path):
    pooling, blocks = make("shatter")
    hidden = keras.Input((None, 8))
    visible = keras.Input((None,), dtype="bool")
    hidden_states = [hidden]
    for block in blocks:
        hidden_states.append(block(hidden_states[-1], padding_mask=visible))
    vector = pooling(hidden_states, padding_mask=visible)
    model = keras.Model([hidden, visible], [vector, hidden_states[-1]])
    assert vector.shape == (None, 8)
    count = sum(len(block.weights) for block in blocks) + 1
    assert len(model.weights) == count
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == count
    inputs = [states()[0], VISIBLE]
    for actual, expected in zip(loaded(inputs), model(inputs), strict=True):
        assert_close(actual, expected, 1e-6)
    # Still shared after loading: a change of the blocks must reach the vector.
    before = np.asarray(loaded(inputs)[0])
    for either in (model, loaded):
        for layer in either.layers:
            if isinstance(layer, EncoderBlock):
                layer.attention_norm.gamma.assign(np.full(8, 2.0, "float32"))
    assert not np.allclose(loaded(inputs)[0], before)
    for actual, expected in zip(loaded(inputs), model(inputs), strict=True):
        assert_close(actual, expected, 1e-6)


def test_names_a_bad_argument():
    pooling, _ = make("self")
    match = "(?s)`hidden_states` must .*Received: "
    with pytest.raises((ValueError, TypeError), match=match):
        pooling(states()[:2])
    unbuilt = make("self")[0].blocks
    for one in (states()[0], keras.Input((5, 12))):
        with pytest.raises(TypeError, match=match):
            LayerwisePooling(unbuilt)(one)
    with pytest.raises((ValueError, TypeError), match="`padding_mask` must .*Received"):
        pooling(states(), padding_mask=VISIBLE[:, :3])
    with pytest.raises((ValueError, TypeError), match="`padding_mask` must .*Received"):
        pooling(states(), padding_mask=VISIBLE.astype("float32"))
    for bad in ([], [keras.layers.Dense(3)], None):
        with pytest.raises((ValueError, TypeError), match="`blocks` must .*Received: "):
            LayerwisePooling(bad)


def test_a_convolution_has_no_queries_without_a_position():
    pooling = LayerwisePooling([EncoderBlock(DynamicConv1D(2, 3), FeedForward(12))])
    with pytest.raises(ValueError, match="DynamicConv1D .* cannot compute"):
        pooling(states(num_layers=1))


@pytest.mark.slow
def test_a_model_of_an_encoder_and_its_pooling_is_saved_whole(tmp_path):
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=9, hidden_dim=8, intermediate_dim=8
    )
    outputs = encoder(encoder.input)
    pooled = LayerwisePooling(encoder)(
        outputs["hidden_states"], padding_mask=encoder.input["padding_mask"]
    )
    model = keras.Model(encoder.input, keras.layers.Dense(2)(pooled))
    inputs = {name: np.ones((2, 5), "int32") for name in encoder.input}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    np.testing.assert_array_equal(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0)
    )
