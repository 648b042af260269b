"""Exchanging absolute for relative positions loses the table and nothing else."""

import functools

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import assert_close, randomize
from tests.checks.encoder import batch_of
from tests.convert.conversions import GOLDENS
from tfeff.convert import load
from tfeff.encoders import Encoder, extend_length, swap_positions

METHODS = ("shaw", "rpe", "bias", "huang1", "huang2", "huang3", "huang4", "xlnet")
TINY = dict(
    vocabulary_size=19,
    num_layers=2,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=12,
    max_sequence_length=9,
    dropout=0.25,
)


def random_encoder(**changes):
    encoder = Encoder(**TINY | changes)
    randomize({weight.path: weight for weight in encoder.weights})
    return encoder


def states(encoder, batch):
    real = batch["padding_mask"].astype(bool)
    return [np.asarray(x)[real] for x in encoder(batch)["hidden_states"]]


@functools.cache
def encoder_and_states():
    """An encoder, a batch, and the states without the table of positions."""
    encoder = random_encoder(layer_norm_epsilon=1e-3)
    batch = batch_of(encoder, lengths=(9, 4, 1), padded_to=9)
    table = encoder.embedding.position_embedding.embeddings
    value = table.numpy()
    table.assign(np.zeros(table.shape))
    expected = states(encoder, batch)
    table.assign(value)
    return encoder, batch, expected


@pytest.mark.parametrize("method", METHODS)
def test_only_the_table_is_lost_and_distances_can_be_learnt(method):
    encoder, batch, expected = encoder_and_states()
    before = {weight.path: weight.numpy() for weight in encoder.weights}
    swapped = swap_positions(encoder, method)
    for weight in encoder.weights:
        np.testing.assert_array_equal(weight, before[weight.path])
    new, kept = [], 0
    for weight in swapped.weights:
        if weight.path in before:
            np.testing.assert_array_equal(weight, before[weight.path])
            kept += 1
        else:
            new.append(weight)
    assert kept == len(before) - 1
    for index, (actual, state) in enumerate(zip(states(swapped, batch), expected)):
        assert_close(actual, state, 1e-5, f"X^{index} of {method}")

    # Beyond the old table, and no longer neutral.
    longer = batch_of(swapped, lengths=(31, 17), padded_to=31)
    neutral = states(swapped, longer)[-1]
    randomize({weight.path: weight for weight in new}, scale=1.0)
    assert np.isfinite(neutral).all()
    assert np.abs(states(swapped, longer)[-1] - neutral).max() > 1e-3


def test_new_positions_of_frozen_layers_are_warned_of():
    encoder = random_encoder()
    encoder.blocks[1].attention.trainable = False
    path = "block_1/attention/relative/embeddings"
    with pytest.warns(UserWarning, match=f"frozen layers: {path}$"):
        swap_positions(encoder, "huang4")
    encoder = random_encoder()
    encoder.embedding.trainable = False
    with pytest.warns(UserWarning, match="initialised, and stay so.*is frozen"):
        extend_length(encoder, 11)


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_quantized_encoders_are_refused(mode):
    encoder = random_encoder()
    encoder.quantize(mode)
    with pytest.raises(ValueError, match="`encoder` must not be quantized"):
        swap_positions(encoder, "shaw")


def test_distances():
    encoder, *_ = encoder_and_states()

    def rows(method, **arguments):
        swapped = swap_positions(encoder, method, **arguments)
        return swapped.blocks[1].attention.relative_embedding.embeddings.shape

    assert rows("huang4") == (17, 2, 4)
    assert rows("huang1") == (9, 2)
    assert rows("huang4", max_distance=3) == (7, 2, 4)
    assert swap_positions(encoder, "bias").blocks[0].attention.max_distance == 128


def test_the_result_is_saved_and_loaded(tmp_path):
    swapped = swap_positions(load(GOLDENS / "bert"), "huang4")
    randomize({weight.path: weight for weight in swapped.weights})
    swapped.save_to_preset(str(tmp_path / "preset"))
    again = Encoder.from_preset(str(tmp_path / "preset"))
    batch = batch_of(swapped, lengths=(20, 5), padded_to=20)
    assert_close(states(again, batch)[-1], states(swapped, batch)[-1], 1e-6)


def test_sinusoids_are_swapped_and_no_weight_is_lost():
    encoder = random_encoder(position="sinusoid")
    swapped = swap_positions(encoder, "huang4")
    assert swapped.position == "none"
    plain = Encoder.from_config(encoder.get_config() | {"position": "none"})
    plain.set_weights(encoder.get_weights())
    batch = batch_of(encoder, lengths=(9, 4, 1), padded_to=9)
    for actual, state in zip(states(swapped, batch), states(plain, batch)):
        assert_close(actual, state, 1e-5)


def test_settings_are_kept():
    encoder = random_encoder(
        attention=[{"name": "self", "dropout": 0.5}, "self"],
        feedforward={"activation": "relu"},
        embedding_dim=4,
        dtype="mixed_bfloat16",
    )
    swapped = swap_positions(encoder, "huang4")
    assert [block.attention.dropout for block in swapped.blocks] == [0.5, 0.25]
    expected = encoder.get_config() | dict(position="none", attention=swapped.attention)
    assert swapped.get_config() == expected


def test_sharing_is_kept():
    encoder = random_encoder(sharing="all")
    swapped = swap_positions(encoder, "huang4")
    assert swapped.blocks[0] is swapped.blocks[1]
    added = 17 * 2 * 4 - 9 * 8
    assert swapped.count_params() == encoder.count_params() + added


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(position="none"), "must have absolute positions"),
        (dict(attention="partitioned"), "attention 'self' in every layer.*partitioned"),
        (dict(attention=["self", "one_head"]), "Received:.*'one_head'"),
    ],
)
def test_other_encoders(changes, message):
    with pytest.raises(ValueError, match=message):
        swap_positions(random_encoder(**changes), "huang4")


def test_bad_arguments():
    encoder = random_encoder()
    with pytest.raises(TypeError, match="`encoder` must be a `tfeff"):
        swap_positions(keras.layers.Dense(3), "huang4")
    with pytest.raises(ValueError, match="`method` must be one of.*'huang5'"):
        swap_positions(encoder, "huang5")
    with pytest.raises(ValueError, match="`max_distance` must be.*=0"):
        swap_positions(encoder, "huang4", max_distance=0)
    encoder.blocks[0].attention.query_dense.enable_lora(2)
    with pytest.raises(ValueError, match="adapters"):
        swap_positions(encoder, "huang4")
    assert tfeff.convert.swap_positions is swap_positions
