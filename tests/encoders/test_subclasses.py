"""Subclasses of attentions, blocks, encoders and objectives are taken as they are."""

import keras
import numpy as np
import pytest

import tfeff
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tfeff.encoders import disable_heads, extend_length, swap_positions
from tfeff.layers import EncoderBlock, OneHeadAttention, SelfAttention
from tfeff.objectives import PermutationLM, PretrainingObjective


@keras.saving.register_keras_serializable("subclasses")
class Closed(SelfAttention):
    """Changes the output, and passes on what else it is called with."""

    def call(self, hidden, padding_mask=None, **kwargs):
        return 0 * super().call(hidden, padding_mask=padding_mask, **kwargs)


@keras.saving.register_keras_serializable("subclasses")
class Passing(OneHeadAttention):
    """Passes on what it is called with."""

    def call(self, hidden, padding_mask=None, **kwargs):
        return super().call(hidden, padding_mask=padding_mask, **kwargs)


@keras.saving.register_keras_serializable("subclasses")
class Naming(OneHeadAttention):
    """Names what it needs."""

    def call(self, hidden, padding_mask=None, layer_index=None):
        return super().call(hidden, padding_mask=padding_mask, layer_index=layer_index)


@keras.saving.register_keras_serializable("subclasses")
class Tripled(tfeff.encoders.Encoder):
    """Has an argument of its own."""

    def __init__(self, *args, factor=3, **kwargs):
        super().__init__(*args, **kwargs)
        self.factor = factor

    def call(self, *args, **kwargs):
        outputs = super().call(*args, **kwargs)
        return {**outputs, "sequence_output": self.factor * outputs["sequence_output"]}

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


class PreNorm(EncoderBlock):
    """Another block."""

    def call(self, hidden, padding_mask=None, **kwargs):
        return hidden + super().call(hidden, padding_mask, **kwargs)


@pytest.fixture(name="registry", autouse=True)
def _registry(own_attentions):
    tfeff.encoders.register_attention("closed", Closed)
    tfeff.encoders.register_attention("passing", Passing)


def test_single_queries_need_attend():
    encoder = tiny("bert_base", attention="closed", position="none")
    message = "must have layers whose `attend` .*a Closed, which overrides `call` alone"
    with pytest.raises(ValueError, match=f"`encoder` {message}"):
        PermutationLM(encoder)
    for layer in (tfeff.layers.TwoStreamBlocks, tfeff.layers.LayerwisePooling):
        with pytest.raises(ValueError, match=f"`blocks` {message}"):
            layer(encoder.blocks)
        block = PreNorm(SelfAttention(2), tfeff.layers.FeedForward(8))
        with pytest.raises(ValueError, match="a PreNorm, which overrides `call`"):
            layer([block])


def test_a_partition_needs_the_index_of_the_layer():
    with pytest.raises(ValueError, match="`attention` must have `layer_index` among"):
        tiny("shatter_base", attention="passing")
    tfeff.encoders.register_attention("naming", Naming)
    arguments = dict(position="none", num_layers=3, sharing="all")
    naming = tiny("shatter_base", attention="naming", **arguments)
    plain = tiny("shatter_base", attention="one_head", **arguments)
    plain.set_weights(naming.get_weights())
    batch = batch_of(plain)
    np.testing.assert_array_equal(
        naming(batch)["sequence_output"], plain(batch)["sequence_output"]
    )
    with pytest.raises(ValueError, match="a Naming, whose `call` has no `recompute`"):
        tiny("shatter_base", attention="naming", memory_efficient="attention")


@pytest.mark.parametrize(
    "make",
    [
        lambda encoder: extend_length(encoder, 2 * encoder.max_sequence_length),
        lambda encoder: disable_heads(encoder, {}),
        lambda encoder: swap_positions(encoder, "huang4"),
    ],
    ids=["extend_length", "disable_heads", "swap_positions"],
)
@pytest.mark.filterwarnings("ignore:The table of absolute positions grew")
def test_what_is_made_of_an_encoder_has_its_class(make):
    encoder = tiny("bert_base")
    tripled = Tripled(**encoder.get_config(), factor=2)
    tripled.set_weights(encoder.get_weights())
    made = make(tripled)
    assert type(made) is Tripled and made.factor == 2
    batch = batch_of(encoder)
    np.testing.assert_allclose(
        made(batch)["sequence_output"],
        2 * make(encoder)(batch)["sequence_output"],
        atol=1e-6,
    )


class Linear(keras.layers.Layer):
    """An attention of plain Keras, without scores."""

    def call(self, hidden, padding_mask=None):
        return hidden


def test_maps_of_an_attention_without_scores():
    block = EncoderBlock(Linear(), tfeff.layers.FeedForward(8))
    hidden = np.ones([1, 3, 8], "float32")
    message = "`attention` must be None .* for Linear"
    with tfeff.layers.record_layers(), pytest.raises(ValueError, match=message):
        block(hidden)
    with tfeff.layers.record_layers(attention=None) as recording:
        block(hidden)
    assert len(recording.hidden_states) == 2


class Extended(tfeff.objectives.MaskedLM):
    """Has a setting beside those of its class."""

    def __init__(self, encoder, extra=1, **kwargs):
        super().__init__(encoder, **kwargs)
        self.extra = extra


def test_the_settings_of_an_objective_are_those_of_its_classes():
    examples = tfeff.data.MaskedTokens()
    extended, plain = (
        PretrainingObjective("extended", examples, kind)
        for kind in (Extended, tfeff.objectives.MaskedLM)
    )
    assert extended._model_settings() == plain._model_settings() | {"extra"}
    model = extended.override(extra=2, activation="relu").make_model(tiny("bert_base"))
    assert model.extra == 2 and model.head.activation == "relu"
