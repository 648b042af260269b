"""Recomputed blocks have the same values and gradients, dropout included."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close
from tfeff.layers import Dropout

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
    encoders[1].set_weights(encoders[0].get_weights())
    for states in zip(*map(generators_of, encoders)):
        states[1].assign(states[0])
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


@pytest.mark.quick("mixed_bfloat16")
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
