"""Layers that share an encoder's blocks compute in their dtype."""

import copy

import keras
import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tests.subjects.layers import CASES, make_block
from tfeff import layers

LAYERS = (layers.LayerwisePooling, layers.TwoStreamBlocks)
POLICIES = ("mixed_bfloat16", "bfloat16", "float16", "float64")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", LAYERS)
def test_the_dtype_is_that_of_the_blocks(kind, policy):
    case = CASES[kind.__name__]
    attention = layers.SelfAttention(2, dtype=policy)
    feedforward = layers.FeedForward(12, dtype=policy)
    block = layers.EncoderBlock(attention, feedforward, dtype=policy)
    layer = kind([block])
    assert layer.dtype_policy.name == policy
    outputs = keras.tree.flatten(layer(case.inputs, **case.others))
    dtypes = {keras.backend.standardize_dtype(x.dtype) for x in outputs}
    assert dtypes == {block.compute_dtype}
    copy = kind.from_config(layer.get_config())
    assert copy.dtype_policy.name == policy


@pytest.mark.parametrize("kind", LAYERS)
def test_another_dtype_is_refused(kind):
    with pytest.raises(ValueError, match="`dtype` must .*float32.*Received: dtype"):
        kind([make_block()], dtype="float64")
    with pytest.raises(ValueError, match="`dtype` must .*bfloat16.*Received: dtype"):
        kind(tiny("shatter_base", dtype="mixed_bfloat16"), dtype="float32")


@pytest.mark.parametrize("kind", LAYERS)
def test_an_attention_in_another_dtype_is_refused(kind):
    case = CASES[kind.__name__]
    attention = layers.SelfAttention(2, dtype="mixed_bfloat16")
    block = layers.EncoderBlock(attention, layers.FeedForward(12))
    with pytest.raises(ValueError, match="SelfAttention .*bfloat16.*block in float32"):
        kind([block])(case.inputs, **case.others)


@pytest.mark.quick("False")
@pytest.mark.parametrize("pooled", [False, True])
def test_blocks_that_share_layers_share_them_in_a_saved_model(pooled, tmp_path):
    shared = layers.SelfAttention(2), layers.FeedForward(12)
    blocks = [layers.EncoderBlock(*shared) for _ in range(2)]
    states = [keras.Input((None, 8))]
    for block in blocks:
        states.append(block(states[-1]))
    output = layers.LayerwisePooling(blocks)(states) if pooled else states[-1]
    model = keras.Model(states[0], output)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(2, 5, 8))
    for copied in (loaded, copy.deepcopy(model)):
        assert len(copied.weights) == len(model.weights) == 20 + pooled
        np.testing.assert_array_equal(copied(x), model(x))


def test_a_model_of_an_encoder_in_mixed_precision(tmp_path):
    encoder = tiny("shatter_base", dtype="mixed_bfloat16")
    states = encoder(encoder.input)["hidden_states"]
    mask = encoder.input["padding_mask"]
    pooled = layers.LayerwisePooling(encoder)(states, padding_mask=mask)
    model = keras.Model(encoder.input, pooled)
    inputs = {name: np.ones((2, 3), "int32") for name in encoder.input}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].dtype_policy.name == "mixed_bfloat16"
    np.testing.assert_array_equal(
        *(np.asarray(x(inputs), "float32") for x in (loaded, model))
    )
