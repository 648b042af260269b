"""The encoder: every variant holds to the checks, and the laws between them."""

import json

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import (
    arrays_of,
    assert_close,
    check_encoder,
    randomize,
    variables_of,
)
from tests.checks.encoder import batch_of
from tests.reference import (
    embedding,
    encoder_block,
    one_head_attention,
    partition_mask,
    partitioned_attention,
    self_attention,
)
from tests.subjects.blocks import block_variables
from tests.subjects.encoders import TINY
from tfeff.encoders import build, register_attention

VARIANTS = (
    "bert_base",
    "no_position_base",
    "part_mask_base",
    "one_head_softmax_base",
    "one_head_sigmoid_base",
    "part_bias_base",
    "shatter_base",
)


# The layers of the slow ones have all of these checks of their own.
@pytest.mark.quick("shatter_base")
@pytest.mark.parametrize(
    "preset",
    [
        name
        if name in ("bert_base", "part_mask_base", "shatter_base")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in VARIANTS
    ],
)
def test_encoder_checks(preset):
    check_encoder(lambda dtype: build(preset, **TINY, dtype=dtype))


@pytest.mark.slow
def test_factorised_and_mixed_attentions_checks():
    check_encoder(
        lambda dtype: build(
            "bert_base",
            **TINY | dict(num_layers=3, embedding_dim=6),
            attention=["self", {"name": "one_head", "normalizer": "softmax"}, "self"],
            dtype=dtype,
        )
    )


def _random_encoder(preset, **changes):
    encoder = build(preset, **TINY | changes)
    randomize({w.path: w for w in encoder.weights}, scale=0.5)
    return encoder


@pytest.mark.parametrize("preset", VARIANTS)
def test_permuting_tokens(preset):
    encoder = _random_encoder(preset)
    batch = batch_of(encoder, lengths=(7, 7))
    batch["segment_ids"] *= 0
    order = np.random.default_rng(0).permutation(7)
    shuffled = {name: value[:, order] for name, value in batch.items()}
    expected = np.asarray(encoder(batch)["sequence_output"])[:, order]
    actual = np.asarray(encoder(shuffled)["sequence_output"])
    if preset == "no_position_base":
        assert_close(actual, expected, 1e-5, "an order-blind encoder")
    else:
        assert np.abs(actual - expected).max() > 0.05


@pytest.mark.quick("shatter_base", "part_bias_base")
@pytest.mark.parametrize("preset", VARIANTS[1:])
def test_takes_sequences_longer_than_trained_on(preset):
    encoder = _random_encoder(preset, max_sequence_length=5)
    longer = _random_encoder(preset, max_sequence_length=40)
    longer.set_weights(encoder.get_weights())
    batch = batch_of(encoder, lengths=(33, 20), padded_to=33)
    assert_close(
        encoder(batch)["sequence_output"],
        longer(batch)["sequence_output"],
        1e-6,
        "longer",
    )


def test_absolute_positions_end_at_the_table():
    encoder = _random_encoder("bert_base", max_sequence_length=5)
    with pytest.raises(ValueError, match="max_sequence_length.*5.*(2, 7)"):
        encoder(batch_of(encoder, lengths=(7, 6)))


def _literal_attention(preset, layer_index):
    """The variant's attention by the reference, at its index in the stack."""

    def attend(hidden, visible, weights):
        if preset in ("bert_base", "no_position_base"):
            return self_attention(hidden, visible, weights, num_heads=4)
        mask = partition_mask(len(hidden), 4, layer_index, TINY["num_layers"])
        if preset == "part_mask_base":
            return partitioned_attention(hidden, visible, weights, 4, mask)
        return one_head_attention(
            hidden,
            visible,
            weights,
            mask,
            "softmax" if preset == "one_head_softmax_base" else "sigmoid_l2",
            preset in ("part_bias_base", "shatter_base"),
            preset == "shatter_base",
        )

    return attend


@pytest.mark.parametrize("preset", VARIANTS)
def test_all_hidden_states_are_those_of_the_equations(preset):
    encoder = _random_encoder(preset)
    batch = batch_of(encoder)
    states = encoder(batch)["hidden_states"]
    weights = arrays_of(variables_of(encoder.embedding))
    for row in range(len(batch["token_ids"])):
        hidden = embedding(batch["token_ids"][row], batch["segment_ids"][row], weights)
        assert_close(states[0][row], hidden, 1e-5, "embedding")
        for index, block in enumerate(encoder.blocks):
            (hidden,) = encoder_block(
                hidden,
                batch["padding_mask"][row].astype(bool),
                arrays_of(block_variables(block)),
                _literal_attention(preset, index),
            )
            assert_close(states[index + 1][row], hidden, 1e-5, f"block {index}")


def test_initial_weights_are_those_of_bert():
    encoder = build("shatter_base", **TINY | dict(hidden_dim=64, vocabulary_size=99))
    for weight in encoder.weights:
        values = np.asarray(weight)
        if weight.name in ("bias", "beta"):
            assert not values.any(), weight.path
        elif weight.name == "gamma":
            assert (values == 1).all(), weight.path
        else:
            # A normal distribution of 0.02, truncated at two deviations.
            assert np.abs(values).max() <= 0.04, weight.path
            assert 0.012 < values.std() < 0.022, weight.path
    kernels = [np.asarray(w) for w in encoder.weights if w.name == "kernel"]
    assert not np.allclose(kernels[0], kernels[1])


def test_lora_and_quantization_come_with_the_backbone():
    encoder = _random_encoder("shatter_base", hidden_dim=64)
    batch = batch_of(encoder)
    before = np.asarray(encoder(batch)["sequence_output"])
    encoder.enable_lora(2)
    trainable = {w.path.split("/")[-2] for w in encoder.trainable_weights}
    assert trainable == {"query", "value"}
    assert_close(encoder(batch)["sequence_output"], before, 1e-5, "fresh LoRA")

    quantized = _random_encoder("shatter_base", hidden_dim=64)
    exact = np.asarray(quantized(batch)["sequence_output"])
    quantized.quantize("int8")
    error = np.abs(np.asarray(quantized(batch)["sequence_output"]) - exact).max()
    assert 0 < error < 0.1 * np.abs(exact).max()


def test_dropout_of_attention_apart():
    """The scores of attention have a rate of their own, or the encoder's."""
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    for rates, expected in (
        ((0.25, None), (0.25, 0.25)),
        ((0.25, 0.5), (0.25, 0.5)),
        ((0.25, 0.0), (0.25, 0.0)),
        ((0.0, 0.5), (0.0, 0.5)),
    ):
        config = TINY | dict(zip(("dropout", "attention_dropout"), rates))
        encoder = build("bert_base", **config)
        again = tfeff.encoders.Encoder.from_config(encoder.get_config())
        assert again.attention_dropout == rates[1]
        for block in (*encoder.blocks, *again.blocks):
            assert (block.dropout, block.attention.dropout) == expected
        assert encoder.embedding.dropout == rates[0]
        block = encoder.blocks[0]
        drops = {
            "attention": block.attention(hidden, training=True)
            - block.attention(hidden),
            "hidden": block.attention_dropout(hidden, training=True) - hidden,
        }
        for (name, difference), rate in zip(drops.items(), expected[::-1]):
            assert bool(np.abs(difference).max() > 1e-4) == bool(rate), name
    own = [{"name": "self", "dropout": 0.125}, "self"]
    encoder = build("bert_base", **TINY, attention=own, attention_dropout=0.5)
    assert [block.attention.dropout for block in encoder.blocks] == [0.125, 0.5]
    for rate in (1.0, -0.1, "0.1"):
        with pytest.raises((TypeError, ValueError), match="`attention_dropout` must"):
            build("bert_base", **TINY, attention_dropout=rate)


def test_registered_attention_of_a_user():
    @keras.saving.register_keras_serializable(package="tests")
    class Halving(keras.layers.Layer):
        """Returns half of its input, to show what the registry passes on."""

        def __init__(self, num_heads, layer_index, share=0.5, **kwargs):
            super().__init__(**kwargs)
            self.num_heads, self.layer_index, self.share = num_heads, layer_index, share

        def call(self, hidden, padding_mask=None, training=None):
            return hidden * self.share

    register_attention("halving", Halving)
    assert "halving" in tfeff.encoders.attentions()
    encoder = build("bert_base", **TINY, attention={"name": "halving", "share": 0.25})
    layers = [block.attention for block in encoder.blocks]
    assert [(x.num_heads, x.layer_index, x.share) for x in layers] == [
        (4, 0, 0.25),
        (4, 1, 0.25),
    ]
    assert encoder(batch_of(encoder))["sequence_output"].shape == (3, 7, 8)
    with pytest.raises(ValueError, match="'halving'.*Give another name"):
        register_attention("halving", tfeff.layers.SelfAttention)
    with pytest.raises(ValueError, match="'self'.*tfeff's own: give another one"):
        register_attention("self", Halving)
    with pytest.raises(ValueError, match="hared"):
        build("bert_base", **TINY, attention={"name": "halving", "hared": 1})


def test_a_cell_that_is_run_again():
    cell = "def own(num_heads, **others): return SelfAttention({}, **others)"
    for heads in (2, 8):  # It was edited in between.
        names = {"SelfAttention": tfeff.layers.SelfAttention, "__name__": "__main__"}
        exec(cell.format(heads), names)
        register_attention("own_of_tests", names["own"])
        encoder = build("bert_base", **TINY, attention="own_of_tests")
        assert encoder.blocks[0].attention.num_heads == heads


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(num_heads=3), "`num_heads` must divide.*num_heads=3, hidden_dim=8"),
        (dict(num_heads=0), "`num_heads`.*num_heads=0"),
        (dict(num_layers=0), "`num_layers`.*num_layers=0"),
        (dict(attention="self_"), "`attention`.*'self_'.*Did you mean 'self'"),
        (dict(attention=["self"]), "one entry for each layer.*1 entries, num_layers=2"),
        (dict(attention={"name": "self", "parts": 2}), "num_heads.*parts"),
        (dict(position="relative"), "`position`.*'relative'"),
        (dict(dropout=1.0), "`dropout`.*1.0"),
        (dict(attention="one_head", num_heads=1), "`num_parts` must be even"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        build("bert_base", **TINY | changes)


def test_bad_types_are_named():
    with pytest.raises(TypeError, match="`num_layers`.*2.5"):
        build("bert_base", **TINY | dict(num_layers=2.5))
    with pytest.raises(TypeError, match="`attention`.*7"):
        build("bert_base", **TINY, attention=7)


def test_bad_masks_are_named():
    encoder = _random_encoder("shatter_base")
    batch = batch_of(encoder)
    with pytest.raises(ValueError, match="`padding_mask`"):
        encoder(batch | {"padding_mask": batch["padding_mask"][:, :-1]})


def test_an_activation_that_is_a_function_is_saved_by_its_name():
    encoder = build(
        "bert_tiny",
        vocabulary_size=9,
        num_layers=1,
        hidden_dim=8,
        feedforward={"activation": keras.activations.tanh},
    )
    config = json.loads(json.dumps(encoder.get_config()))
    assert config["feedforward"] == {"activation": "tanh"}
    loaded = tfeff.encoders.Encoder.from_config(config)
    loaded.set_weights(encoder.get_weights())
    batch = batch_of(encoder)
    np.testing.assert_array_equal(
        loaded(batch)["sequence_output"], encoder(batch)["sequence_output"]
    )


def test_inputs_are_by_name():
    ids = np.ones((2, 5), "int32")
    with pytest.raises(TypeError, match="`inputs` must be a mapping .*Received: inp"):
        build("bert_tiny", **TINY)([ids, ids, ids])
