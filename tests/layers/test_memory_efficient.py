"""Recomputed blocks have the same values and gradients, dropout included."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close
from tfeff.layers import (
    Dropout,
    EncoderBlock,
    FeedForward,
    SelfAttention,
    TwoStreamBlocks,
    masked_heads,
)
from tfeff.layers.dropout import draw_seeds, drawn_seeds

INPUTS = {
    "token_ids": np.random.default_rng(0).integers(0, 50, (2, 9)).astype("int32"),
    "segment_ids": np.zeros((2, 9), "int32"),
    "padding_mask": (np.arange(9) < [[9], [6]]).astype("int32"),
}
WRAPPERS = {
    "eager": lambda function: function,
    "graph": tf.function,
    "XLA": tf.function(jit_compile=True),
}
ATTENTIONS = [
    "one_head",
    "mixed",
    {"name": "relative", "method": "bias"},
    {"name": "relative", "method": "xlnet", "relative_segments": True},
]


def make_encoder(memory_efficient, attention="self", dtype="float32"):
    keras.utils.set_random_seed(0)
    return tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=50,
        attention=attention,
        dropout=0.2,
        memory_efficient=memory_efficient,
        dtype=dtype,
    )


def generators_of(encoder):
    layers = [x for x in encoder._flatten_layers() if type(x) is Dropout and x.rate]
    return [layer.seed_generator.state for layer in layers]


def begin_alike(model, other):
    """Gives another model the weights, and the states of dropout."""
    other.set_weights(model.get_weights())
    for state, same in zip(*map(generators_of, (model, other))):
        same.assign(state)


def run(encoder):
    with tf.GradientTape() as tape:
        hidden = encoder(INPUTS, training=True)["sequence_output"]
        loss = tf.reduce_sum(tf.sin(tf.cast(hidden, "float32")))
    gradients = tape.gradient(loss, encoder.trainable_variables)
    return hidden, [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.quick("eager-one_head-block")
@pytest.mark.parametrize(
    "way, attention, efficient",
    [
        ("eager", "one_head", "block"),
        *(("graph", attention, "block") for attention in ATTENTIONS),
        ("XLA", "mixed", True),
        ("graph", "one_head", "attention"),
        ("XLA", "mixed", "attention"),
    ],
    ids=str,
)
def test_values_gradients_and_seeds(way, attention, efficient):
    encoders = [make_encoder(memory, attention) for memory in (False, efficient)]
    begin_alike(*encoders)
    steps = [
        WRAPPERS[way](lambda encoder=encoder: run(encoder)) for encoder in encoders
    ]
    first = None
    for _ in range(2):
        (hidden, gradients), (same_hidden, same_gradients) = (step() for step in steps)
        assert_close(same_hidden, hidden, 1e-6)
        for same, gradient in zip(same_gradients, gradients, strict=True):
            assert_close(same, gradient, 1e-5)
        assert first is None or np.abs(hidden - first).max() > 0.1, "same dropout"
        first = hidden
    assert len(generators_of(encoders[0])) == 7
    for state, same in zip(*map(generators_of, encoders)):
        np.testing.assert_array_equal(state, same)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["eager", "graph"])
@pytest.mark.parametrize("attention", ["self", "one_head", "mixed"])
def test_gradients_of_head_masks(attention, way):
    """Every tensor that a block closes over and that has a gradient keeps it."""
    encoders = [make_encoder(memory, attention) for memory in (False, "block")]
    begin_alike(*encoders)
    heads = encoders[0].blocks[0].attention.output_heads
    mask = tf.Variable(np.linspace(0.5, 1.5, heads), dtype="float32")

    def gradient(encoder):
        with tf.GradientTape() as tape, masked_heads(encoder, [mask * 1.0, None]):
            hidden = encoder(INPUTS, training=True)["sequence_output"]
            loss = tf.reduce_sum(tf.sin(hidden))
        return tape.gradient(loss, mask)

    found = [
        WRAPPERS[way](lambda encoder=encoder: gradient(encoder))().numpy()
        for encoder in encoders
    ]
    assert np.abs(found[0]).max() > 0.01
    assert_close(found[1], found[0], 1e-5)


def two_streams(memory_efficient, attention):
    """A step of a permutation language model."""
    encoder = make_encoder(memory_efficient, attention)
    model = tfeff.objectives.PermutationLM(encoder)
    inputs = {
        **INPUTS,
        "ranks": np.array([[-1, 1, 0, -1, -1, 2, -1, -1, -1]] * 2, "int32"),
        "mask_positions": np.array([[1, 2, 5]] * 2, "int32"),
    }

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(model(inputs, training=True)))
        return loss, tape.gradient(loss, [w.value for w in model.trainable_weights])

    return model, step


@pytest.mark.slow
@pytest.mark.parametrize("memory_efficient", ["attention", "block"])
@pytest.mark.parametrize("attention", ["self", ATTENTIONS[-1]], ids=str)
def test_two_streams(attention, memory_efficient):
    """Values and gradients are the same, and exponentials are computed once more."""
    models, steps = zip(*(two_streams(m, attention) for m in (False, memory_efficient)))
    begin_alike(*models)
    graphs = [tf.function(step) for step in steps]
    counts = [
        sum(kind in ("Exp", "Softmax") for kind in operations(graph))
        for graph in graphs
    ]
    assert counts[1] > counts[0]
    (loss, gradients), (same_loss, same_gradients) = (graph() for graph in graphs)
    assert_close(same_loss, loss, 1e-6)
    for same, gradient in zip(same_gradients, gradients, strict=True):
        assert_close(tf.convert_to_tensor(same), tf.convert_to_tensor(gradient), 1e-5)


def operations(function):
    """The kinds of the operations of a graph, and of the functions that it calls."""
    definition = function.get_concrete_function().graph.as_graph_def()
    nodes = [
        definition.node,
        *(inner.node_def for inner in definition.library.function),
    ]
    return [node.op for of_one in nodes for node in of_one]


def block(feedforward=(), attention=None, network=None):
    attention = attention or SelfAttention(2)
    network = network or FeedForward(12, **dict(feedforward))
    return EncoderBlock(attention, network, memory_efficient="block")


def in_sequence(*parts):
    """A feed-forward network of the user."""
    return keras.Sequential([keras.Input((None, 8)), *parts, keras.layers.Dense(8)])


@pytest.mark.quick("eager")
@pytest.mark.parametrize("way", ["eager", "graph"])
def test_dropout_of_any_feedforward_network(way):
    gradients = []
    for efficient in (False, "block"):
        keras.utils.set_random_seed(0)
        network = in_sequence(Dropout(0.5, seed=1))
        layer = EncoderBlock(SelfAttention(2), network, memory_efficient=efficient)
        hidden = tf.random.normal((2, 5, 8))
        layer(hidden)

        def step(layer=layer, hidden=hidden):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.sin(layer(hidden, training=True)))
            return tape.gradient(loss, layer.trainable_variables)

        gradients.append(WRAPPERS[way](step)())
    for same, gradient in zip(*reversed(gradients), strict=True):
        assert_close(same, gradient, 1e-5)


def test_a_layer_that_is_called_twice_drops_others_and_again_the_same():
    layer, ones = Dropout(0.5, seed=1), tf.ones((4, 50))
    state = layer.seed_generator.state.numpy()
    seeds = draw_seeds(layer)
    with drawn_seeds(seeds):
        first, second = (layer(ones, training=True) for _ in range(2))
    assert 0.2 < np.mean(first == second) < 0.8
    with drawn_seeds(seeds):
        for found in (first, second):
            np.testing.assert_array_equal(layer(ones, training=True), found)
    # The first is what is dropped without recomputation; the second no later one.
    layer.seed_generator.state.assign(state)
    later = [layer(ones, training=True) for _ in range(3)]
    np.testing.assert_array_equal(later[0], first)
    assert all(0.2 < np.mean(x == second) < 0.8 for x in later)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_single_queries_in_half_precision(dtype):
    """Their recomputation casts weights as the forward pass does."""
    gradients = []
    for efficient in (False, "block"):
        keras.utils.set_random_seed(0)
        layer = EncoderBlock(
            SelfAttention(2, dtype=dtype),
            FeedForward(12, dtype=dtype),
            memory_efficient=efficient,
            dtype=dtype,
        )
        streams = TwoStreamBlocks([layer])
        hidden, ranks = tf.random.normal((2, 5, 8)), np.tile(np.arange(5), (2, 1))
        streams(hidden, ranks)
        with tf.GradientTape() as tape:
            _, query = streams(hidden, ranks, training=True)
            loss = tf.reduce_sum(tf.sin(tf.cast(query, "float32")))
        weights = [w.value for w in layer.trainable_weights]
        gradients.append(tape.gradient(loss, weights))
    for same, gradient in zip(*gradients, strict=True):
        np.testing.assert_array_equal(same, gradient)


class Noisy(keras.layers.Layer):
    """An attention that draws random numbers in Keras' way."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.noise = keras.layers.Dropout(0.5)

    def call(self, hidden, padding_mask=None, training=None):
        return self.noise(hidden, training=training)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: block(attention=Noisy()), "another layer than .* draws random numb"),
        (
            lambda: block({"activity_regularizer": keras.regularizers.L2(0.1)}),
            "layers of the block add losses.*, and 1 losses",
        ),
        (
            lambda: block(network=in_sequence(keras.layers.BatchNormalization())),
            "a layer updates moving means",
        ),
    ],
)
@pytest.mark.parametrize("way", ["eager", "graph"])
def test_what_cannot_be_recomputed(make, message, way):
    layer, hidden = make(), tf.random.normal((2, 5, 8))
    layer(hidden)
    step = WRAPPERS[way](lambda: layer(hidden, training=True))
    with pytest.raises(ValueError, match=f"`memory_efficient` must be .*{message}"):
        step()


def test_given_weights():
    """A recomputation would read the block's own, and give wrong gradients."""
    hidden = np.ones((2, 3, 8), "float32")
    block = EncoderBlock(SelfAttention(2), FeedForward(8), memory_efficient="block")
    block.build(hidden.shape)
    given = [x + 1 for x in block.get_weights()], block.non_trainable_variables
    block.stateless_call(*given, hidden)
    block(keras.Input((3, 8)), training=True)  # Keras traces within a scope of its own.
    with pytest.raises(ValueError, match="`memory_efficient` must .*`stateless_call`"):
        block.stateless_call(*given, hidden, training=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision(dtype):
    encoder = make_encoder(True, dtype=dtype)
    for gradient in tf.function(lambda: run(encoder))()[1]:
        assert np.isfinite(np.asarray(gradient, "float32")).all()


@pytest.mark.parametrize("given", [False, True, "attention", "block"])
def test_configuration(given):
    encoder = make_encoder(given)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(encoder)
    )
    expected = "block" if given is True else given
    assert copy.memory_efficient == encoder.memory_efficient == expected
    assert all(block.memory_efficient == expected for block in copy.blocks)
