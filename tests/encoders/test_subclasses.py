"""Subclasses of attentions, blocks, encoders and objectives are taken as they are."""

import keras
import numpy as np
import pytest

import tfeff
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tests.subjects.sentences import tokenizer
from tfeff.encoders import disable_heads, extend_length, swap_positions
from tfeff.layers import EncoderBlock, OneHeadAttention, SelfAttention
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.objectives import PermutationLM, PretrainingObjective
from tfeff.tasks import load_pretrained, save_pretrained
from tfeff.training import save_checkpoint


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


@pytest.mark.parametrize("place", ["preset", "step of a run"])
def test_what_is_loaded_has_the_class_that_was_saved(place, tmp_path):
    tripled = Tripled(**{**tiny("bert_base").get_config(), "vocabulary_size": 60})
    if place == "preset":
        save_pretrained(tripled, tokenizer(), tmp_path / "tripled")
        loaded, _ = load_pretrained(tmp_path / "tripled", dropout=0.3)
    else:
        model = tfeff.objectives.MaskedLM(tripled)
        model.compile()
        (tmp_path / "checkpoints").mkdir()
        save_checkpoint(model, tmp_path / "checkpoints" / "step-00000002.keras")
        tfeff.data.save_tokenizer(tokenizer(), tmp_path / "tokenizer.spm")
        loaded, _ = load_pretrained(f"{tmp_path}@2", dropout=0.3)
    assert type(loaded) is Tripled and loaded.factor == 3
    batch = batch_of(tripled)
    expected = tripled(batch)["sequence_output"]
    np.testing.assert_array_equal(loaded(batch)["sequence_output"], expected)
    assert loaded.dropout == 0.3


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


@keras.saving.register_keras_serializable("subclasses")
class Rotary(SelfAttention):
    """Turns queries and keys by their positions, which it counts itself."""

    def project(self, inputs):
        queries, keys = super().project(inputs)
        parts = (queries, keys)
        return tuple(part._replace(vectors=turned(part.vectors)) for part in parts)


def turned(vectors):
    angles = keras.ops.arange(vectors.shape[2], dtype=vectors.dtype)[:, None]
    left, right = keras.ops.split(vectors, 2, axis=-1)
    cos, sin = keras.ops.cos(angles), keras.ops.sin(angles)
    turned = (left * cos - right * sin, left * sin + right * cos)
    return keras.ops.concatenate(turned, axis=-1)


@keras.saving.register_keras_serializable("subclasses")
class Biased(SelfAttention):
    """Adds a bias by the relative position of query and key."""

    def relative_terms(self, positions, inputs):
        return {"bias": keras.ops.cast(positions, self.compute_dtype)[:, None]}

    def scores(self, queries, keys):
        rows = queries.relative["bias"]
        bias = tfeff.ops.toeplitz_rows(queries.vectors, rows)
        return super().scores(queries, keys) + bias


@pytest.mark.parametrize("kind", [Rotary, Biased])
def test_what_may_depend_on_positions_has_all_of_them_unless_it_says_so(kind):
    layer = kind(2)
    hidden = np.random.default_rng(0).normal(size=(2, 7, 8)).astype("float32")
    whole = keras.ops.convert_to_numpy(layer(hidden))
    positions = np.array([[4, 2], [6, 0]])
    query = np.take_along_axis(hidden, positions[..., None], axis=1)
    inputs = AttentionInputs(query=query, hidden=hidden, positions=positions)
    few, _ = layer.attend(inputs)
    expected = np.take_along_axis(whole, positions[..., None], axis=1)
    np.testing.assert_allclose(few, expected, atol=1e-5)
    message = f"{kind.__name__} .* cannot compute queries without a position"
    block = EncoderBlock(layer, tfeff.layers.FeedForward(8))
    with pytest.raises(ValueError, match=message):
        tfeff.layers.LayerwisePooling([block])([hidden, hidden])


@pytest.mark.parametrize(
    "kind", [SelfAttention, OneHeadAttention, tfeff.layers.PartitionedAttention]
)
def test_an_ability_ends_with_the_methods_that_it_depends_on(kind):
    class Changed(kind):
        def project(self, inputs):
            return super().project(inputs)

    class Declared(Changed):
        can_pool = computes_few_queries = True

    assert kind(2).can_pool and not Changed(2).can_pool
    if kind is SelfAttention:  # The others compute all queries.
        assert kind(2).computes_few_queries and not Changed(2).computes_few_queries
    assert Declared(2).can_pool and Declared(2).computes_few_queries
