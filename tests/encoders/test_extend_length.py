"""Encoders for longer sequences: old weights and states unchanged, new rows initial."""

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.subjects.encoders import TINY, quantize_only
from tfeff.encoders import (
    Encoder,
    disable_heads,
    extend_length,
    register_attention,
)


def relative(method, **arguments):
    return {"name": "relative", "method": method, **arguments}


def make(**arguments):
    encoder = Encoder(**{**TINY, "max_sequence_length": 6, **arguments})
    randomize({weight.path: weight for weight in encoder.weights})
    return encoder


def states(encoder, length):
    hidden = encoder(batch_of(encoder, (length, (length + 1) // 2), length))[
        "hidden_states"
    ]
    return [keras.ops.convert_to_numpy(x) for x in hidden]


@register_attention("sized_of_tests")
@keras.saving.register_keras_serializable(package="tests")
class Sized(keras.layers.Layer):
    """A user's attention with one weight for each position."""

    def __init__(self, max_sequence_length, **kwargs):
        super().__init__(**kwargs)
        self.scale = self.add_weight(shape=(max_sequence_length,), name="scale")

    def call(self, hidden, padding_mask=None):
        return hidden


@keras.saving.register_keras_serializable(package="tests")
class Unnamed(keras.layers.Layer):
    """A user's attention of layers with automatic names, which differ in each copy."""

    def __init__(self, hidden_dim, **kwargs):
        super().__init__(**kwargs)
        self.inner = keras.layers.Dense(hidden_dim)
        self.outer = keras.layers.Dense(hidden_dim)

    def build(self, hidden_shape):
        self.inner.build(hidden_shape)
        self.outer.build(hidden_shape)

    def call(self, hidden, padding_mask=None):
        return self.outer(self.inner(hidden))


def test_new_rows_are_initial_and_all_else_is_unchanged():
    encoder = make(embedding_dim=4, dropout=0.25, name="mine")
    with pytest.warns(UserWarning, match="from 6 to 11 rows.*freshly initialised"):
        longer = extend_length(encoder, 11)
    for length in (1, 6):
        for old, new in zip(states(encoder, length), states(longer, length)):
            np.testing.assert_array_equal(new, old)
    old, new = (e.embedding.position_embedding.embeddings for e in (encoder, longer))
    np.testing.assert_array_equal(new.numpy()[:6], old.numpy())
    fresh = new.numpy()[6:]
    assert fresh.shape == (5, 4) and 0.005 < fresh.std() < 0.03
    assert np.abs(fresh).max() <= 0.04 + 1e-6
    changed = {"max_sequence_length": 11}
    assert longer.get_config() == encoder.get_config() | changed
    assert np.isfinite(states(longer, 11)[-1]).all()
    with pytest.raises(ValueError, match="must not be longer"):
        states(encoder, 11)
    with pytest.warns(UserWarning):
        same, other = (extend_length(encoder, 11, seed=seed) for seed in (0, 1))
    for one, two, three in zip(longer.weights, same.weights, other.weights):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
        assert (one is new) != np.array_equal(one.numpy(), three.numpy())


def test_rows_follow_the_initial_distribution():
    encoder = make(hidden_dim=64, intermediate_dim=8)
    with pytest.warns(UserWarning):
        longer = extend_length(encoder, 206)
    rows = longer.embedding.position_embedding.embeddings.numpy()[6:]
    # A normal distribution cut at two deviations keeps 0.8796 of its deviation.
    assert rows.std() == pytest.approx(0.8796 * 0.02, rel=0.02)
    assert abs(rows.mean()) < 4 * 0.02 / rows.size**0.5


def test_relative_tables_keep_their_size(recwarn):
    attention = [
        relative("huang4"),
        relative("huang1", max_distance=3),
        relative("bias", num_buckets=8),
        relative("xlnet"),
        "one_head",
        {"name": "mixed", "kernel_size": 3},
    ]
    encoder = make(attention=attention, num_layers=6, position="none")
    longer = extend_length(encoder, 9)
    assert not recwarn.list
    tables = [block.attention.relative_embedding for block in longer.blocks[:3]]
    assert [table.embeddings.shape[0] for table in tables] == [2 * 5 + 1, 4, 8]
    assert attention[0] == relative("huang4")  # Left as it was.
    # No weight is new, and relative distances clip: longer inputs agree too.
    for old, new in zip(states(encoder, 9), states(longer, 9)):
        np.testing.assert_array_equal(new, old)
    one = make(attention=relative("shaw"), position="none")
    assert extend_length(one, 9).blocks[1].attention.max_distance == 5


def test_sinusoids_have_no_rows_to_add(recwarn):
    encoder = make(position="sinusoid", embedding_dim=4)
    longer = extend_length(encoder, 11)
    assert not recwarn.list
    assert longer.get_config() == encoder.get_config() | {"max_sequence_length": 11}
    for old, new in zip(states(encoder, 11), states(longer, 11)):
        np.testing.assert_array_equal(new, old)


def test_automatic_names_of_weights_do_not_matter(own_attentions):
    register_attention("unnamed", Unnamed)
    encoder = make(attention="unnamed", position="none")
    for copy in (extend_length(encoder, 9), disable_heads(encoder, {})):
        assert {w.path for w in copy.weights} != {w.path for w in encoder.weights}
        for old, new in zip(states(encoder, 6), states(copy, 6), strict=True):
            np.testing.assert_array_equal(new, old)


def test_wrong_arguments_are_named():
    encoder = make()
    with pytest.raises(TypeError, match="`encoder`.*Dense"):
        extend_length(keras.layers.Dense(3), 9)
    for length in (6, 3):
        with pytest.raises(ValueError, match=f"`max_sequence_length`.*{length}"):
            extend_length(encoder, length)
    with pytest.raises(TypeError, match="`max_sequence_length`.*9.5"):
        extend_length(encoder, 9.5)
    with pytest.raises(ValueError, match="`encoder`.*scale of shape.* to 6 tokens"):
        extend_length(make(attention="sized_of_tests"), 9)
    encoder.enable_lora(2)
    with pytest.raises(ValueError, match="adapters.* to 6 tokens"):
        extend_length(encoder, 9)
    quantized = make()
    quantize_only(quantized, "query", "float8")
    with pytest.raises(ValueError, match="layers .*query.* Extend the encoder before"):
        extend_length(quantized, 9)
    assert tfeff.encoders.extend_length is extend_length
