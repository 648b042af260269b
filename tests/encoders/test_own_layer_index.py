"""A `layer_index` of the user's counts in all layers that have it, in every way."""

import json

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import arrays_of, assert_close, randomize, variables_of
from tests.checks.encoder import batch_of
from tests.reference import (
    embedding,
    encoder_block,
    one_head_attention,
    partition_function,
    partition_mask,
)
from tests.subjects.blocks import block_variables
from tests.subjects.encoders import tiny
from tfeff import plots
from tfeff.encoders import Encoder, extend_length
from tfeff.layers import EncoderBlock, FeedForward, OneHeadAttention, TwoStreamBlocks
from tfeff.objectives import generator_for

ONE = {"name": "one_head", "layer_index": 2}
SHARING = {
    "none": {},
    "all": dict(sharing="all"),
    "attention": dict(sharing="attention"),
    "groups": dict(sharing="all", sharing_group_size=2, num_layers=4),
}


def make(attention=ONE, preset="no_position_base", **changes):
    encoder = tiny(preset, attention=attention, **dict(num_layers=3) | changes)
    randomize({w.path: w for w in encoder.weights}, scale=0.5)
    return encoder


def literal_states(encoder, batch, index_of):
    """The last hidden states, where the partition of layer k is that of `index_of`."""
    weights = arrays_of(variables_of(encoder.embedding))
    rows = []
    for row in range(len(batch["token_ids"])):
        hidden = embedding(batch["token_ids"][row], batch["segment_ids"][row], weights)
        for k, block in enumerate(encoder.blocks):

            def attend(hidden, visible, weights, k=k):
                mask = partition_mask(len(hidden), 4, index_of(k), encoder.num_layers)
                return one_head_attention(
                    hidden, visible, weights, mask, "sigmoid_l2", True, True
                )

            visible = batch["padding_mask"][row].astype(bool)
            block_weights = arrays_of(block_variables(block))
            (hidden,) = encoder_block(hidden, visible, block_weights, attend)
        rows.append(hidden)
    return np.stack(rows)


def outputs(encoder, batch):
    return encoder(batch)["sequence_output"]


@pytest.mark.parametrize("sharing", SHARING)
def test_all_layers_have_one_partition(sharing):
    encoder = make(**SHARING[sharing])
    batch = batch_of(encoder)
    expected = literal_states(encoder, batch, lambda k: 2)
    assert_close(outputs(encoder, batch), expected, 1e-5)
    others = literal_states(encoder, batch, lambda k: k)
    assert np.abs(others - expected).max() > 1e-3
    # The same layers without it: each has its own.
    plain = make("one_head", **SHARING[sharing])
    plain.set_weights(encoder.get_weights())
    assert_close(outputs(plain, batch), others, 1e-5)


def test_the_first_layers_index_counts_too():
    """0 is the first layer's own: it must not be taken for none."""
    encoder = make(ONE | {"layer_index": 0}, sharing="all")
    batch = batch_of(encoder)
    expected = literal_states(encoder, batch, lambda k: 0)
    assert_close(outputs(encoder, batch), expected, 1e-5)


def test_layers_of_a_list_have_their_own():
    encoder = make([ONE, "one_head", ONE | {"layer_index": 0}])
    batch = batch_of(encoder)
    expected = literal_states(encoder, batch, lambda k: (2, 1, 0)[k])
    assert_close(outputs(encoder, batch), expected, 1e-5)


@pytest.mark.slow
def test_every_way_of_saving(tmp_path):
    encoder = make([ONE, "one_head", ONE])
    batch = batch_of(encoder)
    expected = outputs(encoder, batch)
    config = json.loads(json.dumps(encoder.get_config()))
    encoder.save(tmp_path / "encoder.keras")
    encoder.save_to_preset(str(tmp_path / "preset"))
    copies = [
        Encoder.from_config(config),
        Encoder(**config | {"dtype": "float32"}),
        extend_length(encoder, 40),
        keras.models.load_model(tmp_path / "encoder.keras"),
        Encoder.from_preset(str(tmp_path / "preset")),
    ]
    for copy in copies:
        copy.set_weights(encoder.get_weights())
        np.testing.assert_array_equal(outputs(copy, batch), expected)
        assert [b.layer_index for b in copy.blocks] == [2, None, 2]
    assert [b.layer_index for b in generator_for(encoder, 1).blocks] == [2, None, 2]
    deeper = tfeff.training.double_depth(encoder)
    assert [b.layer_index for b in deeper.blocks] == [2, None, 2] * 2


@pytest.mark.slow
def test_two_streams():
    """With all tokens visible and of one rank, the content stream is the encoder."""
    encoder = make()
    batch = batch_of(encoder)
    hidden = encoder.embedding(batch["token_ids"], batch["segment_ids"])
    ranks = np.full(batch["token_ids"].shape, -1, "int32")
    arguments = dict(padding_mask=batch["padding_mask"])
    for blocks in (encoder, encoder.blocks):
        streams = TwoStreamBlocks(blocks)
        content, query = streams(hidden, ranks, **arguments)
        assert_close(content, outputs(encoder, batch), 1e-5)
        copy = TwoStreamBlocks.from_config(streams.get_config())
        copy(hidden, ranks, **arguments)
        copy.set_weights(streams.get_weights())
        np.testing.assert_array_equal(copy(hidden, ranks, **arguments)[0], content)


def test_plots_and_recorded_maps():
    encoder = make([ONE, "one_head", ONE], sharing="feedforward")
    values = plots.partition_values(encoder, 5)
    for layer, index in enumerate((2, 1, 2)):
        for h in range(4):
            expected = [partition_function(h, x, 4, index, 3) for x in range(-5, 6)]
            assert_close(values[layer][h], expected, 1e-5)
    with tfeff.layers.record_layers() as recording:
        outputs(encoder, batch_of(encoder, lengths=(5, 5), padded_to=5))
    # Of a key's weight by parts, the shares are the partition's.
    for layer, index in enumerate((2, 1, 2)):
        weights = np.asarray(recording.attention[layer])
        shares = weights / weights.sum(axis=1, keepdims=True)
        assert_close(shares[1], partition_mask(5, 4, index, 3), 1e-4)


@pytest.mark.parametrize("index", [3, -1, "x", 1.0, None])
def test_bad_indices_are_named(index):
    with pytest.raises((ValueError, TypeError), match="`layer_index` must be"):
        tiny("no_position_base", attention=ONE | {"layer_index": index}, num_layers=3)
    if index not in (3, None):
        with pytest.raises((ValueError, TypeError), match="`layer_index` must be"):
            EncoderBlock(OneHeadAttention(4), FeedForward(8), layer_index=index)
