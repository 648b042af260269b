"""The input embedding against equation 4."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import (
    arrays_of,
    assert_close,
    check_gradients,
    randomize,
    variables_of,
)
from tests.reference import embedding
from tfeff.layers import EncoderEmbedding

TOKENS = np.array([[3, 0, 10, 10, 1], [2, 9, 4, 0, 0]], "int32")
SEGMENTS = np.array([[0, 0, 1, 2, 2], [1, 1, 1, 0, 0]], "int32")
KINDS = {
    "absolute": {},
    "none": {"position": "none"},
    "factorised": {"embedding_dim": 6},
    "factorised, none": {"embedding_dim": 6, "position": "none"},
    "tokens alone": {"num_segments": 0, "layer_norm": False, "position": "none"},
    "sinusoid": {"position": "sinusoid"},
    "factorised, sinusoid": {"embedding_dim": 6, "position": "sinusoid"},
    "one segment": {"num_segments": 1},
    "without segments, factorised": {"num_segments": 0, "embedding_dim": 6},
}


def make(kind="absolute", **kwargs):
    layer = EncoderEmbedding(
        vocabulary_size=11,
        hidden_dim=8,
        max_sequence_length=7,
        **{"num_segments": 3} | KINDS[kind],
        **kwargs,
    )
    layer(TOKENS, SEGMENTS)
    randomize(variables_of(layer))
    return layer


def literal(arrays, tokens=TOKENS, segments=SEGMENTS, kind="none"):
    position = KINDS[kind].get("position")
    return np.stack(
        [embedding(t, s, arrays, position) for t, s in zip(tokens, segments)]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_equals_literal_version(kind):
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
        layer = make(kind, dtype=dtype)
        expected = literal(arrays_of(variables_of(layer)), kind=kind)
        assert_close(layer(TOKENS, SEGMENTS), expected, tolerance)
        assert_close(layer(TOKENS[:, :1], SEGMENTS[:, :1]), expected[:, :1], tolerance)
    check_gradients(
        lambda: layer(TOKENS, SEGMENTS),
        partial(literal, kind=kind),
        variables_of(layer),
        inputs={},
    )


def test_weights():
    width = {"absolute": 8, "none": 8, "factorised": 6, "factorised, none": 6}
    width |= {"sinusoid": 8, "factorised, sinusoid": 6}
    for kind, e in width.items():
        expected = {
            "token_embedding/embeddings": (11, e),
            "segment_embedding/embeddings": (3, e),
            "norm/gamma": (e,),
            "norm/beta": (e,),
        }
        if "none" not in kind and "sinusoid" not in kind:
            expected["position_embedding/embeddings"] = (7, e)
        if e != 8:
            expected["projection/kernel"] = (6, 8)
            expected["projection/bias"] = (8,)
        variables = variables_of(make(kind))
        assert {k: tuple(v.shape) for k, v in variables.items()} == expected


@pytest.mark.parametrize("kind", ["absolute", "factorised, none", "sinusoid"])
def test_dynamic_lengths_xla_and_saving(kind, tmp_path):
    layer = make(kind)
    spec = tf.TensorSpec((None, None), tf.int32)
    dynamic = tf.function(layer.__call__, input_signature=[spec, spec])
    compiled = tf.function(layer.__call__, jit_compile=True)
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    model = keras.Model(inputs, layer(*inputs))
    assert model.output.shape == (None, None, 8)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    weights = arrays_of(variables_of(layer))
    for length in (1, 4, 5):
        tokens, segments = TOKENS[:, :length], SEGMENTS[:, :length]
        expected = literal(weights, tokens, segments, kind)
        for name, call in (
            ("dynamic", dynamic),
            ("XLA", compiled),
            ("model", lambda *x: model(x)),
            ("loaded", lambda *x: loaded(x)),
        ):
            actual = call(tf.constant(tokens), tf.constant(segments))
            assert_close(actual, expected, 1e-5, name)
    copy = EncoderEmbedding.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()


@pytest.mark.parametrize("kind", ["factorised", "sinusoid"])
def test_half_precision(kind):
    for dtype, tolerance in (("mixed_float16", 0.01), ("mixed_bfloat16", 0.06)):
        layer = make(kind, dtype=dtype)
        output = layer(TOKENS, SEGMENTS)
        assert output.dtype.name == dtype.removeprefix("mixed_")
        expected = literal(arrays_of(variables_of(layer)), kind=kind)
        error = np.abs(np.asarray(output, "float64") - expected).max()
        assert error <= tolerance * np.abs(expected).max(), dtype


@pytest.mark.parametrize("kind", ["factorised", "factorised, none"])
def test_dropout_before_a_projection(kind):
    layer = make(kind, dropout=0.5)
    plain, again = (np.asarray(layer(TOKENS, SEGMENTS)) for _ in range(2))
    np.testing.assert_array_equal(plain, again)
    one, two = (np.asarray(layer(TOKENS, SEGMENTS, training=True)) for _ in range(2))
    assert np.abs(one - plain).max() > 0.1 and np.abs(one - two).max() > 0.1


def test_dropout_acts_in_training_alone():
    keras.utils.set_random_seed(0)
    layer = make("none", dropout=0.5)
    output = np.asarray(layer(TOKENS, SEGMENTS))
    assert_close(output, literal(arrays_of(variables_of(layer))), 1e-5)
    tokens, segments = (np.repeat(x[:1], 4000, axis=0) for x in (TOKENS, SEGMENTS))
    dropped = np.asarray(layer(tokens, segments, training=True))
    kept = dropped != 0
    assert abs(kept.mean() - 0.5) < 0.01
    twice = np.broadcast_to(2 * output[0], dropped.shape)
    assert_close(dropped[kept], twice[kept], 1e-5)


@pytest.mark.parametrize("length", [8, 20])
def test_longer_than_the_position_table(length):
    tokens = np.zeros((1, length), "int32")
    with pytest.raises(ValueError, match="(?s)`max_sequence_length`.*7.*Received"):
        make()(tokens, tokens)
    for kind in ("none", "sinusoid"):
        layer = make(kind)
        expected = literal(arrays_of(variables_of(layer)), tokens, tokens, kind)
        assert_close(layer(tokens, tokens), expected, 1e-5)
    model = keras.Input((length,), dtype="int32")
    with pytest.raises(ValueError, match="(?s)`max_sequence_length`.*7.*Received"):
        make()(model, model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sinusoids_in_half_precision_are_rounded_once(dtype):
    """At positions, 257 and more, that half precision does not have."""
    layer = EncoderEmbedding(
        *(3, 8),
        num_segments=0,
        position="sinusoid",
        layer_norm=False,
        dtype=f"mixed_{dtype}",
    )
    tokens = np.zeros((1, 600), "int32")
    layer(tokens)
    table = variables_of(layer)["token_embedding/embeddings"]
    table.assign(np.random.default_rng(0).normal(0, 0.02, table.shape))
    rounded = {"t": keras.ops.cast(table, dtype)}
    weights = {"token_embedding/embeddings": np.asarray(rounded["t"], "float64")}
    expected = embedding(tokens[0], tokens[0], weights, "sinusoid")
    output = layer(tokens)
    assert output.dtype == dtype
    half_step = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    error = np.abs(np.asarray(output[0], "float64") - expected)
    # Beside rounding, the angles' in float32, of 600 at most.
    assert (error <= half_step * np.abs(expected) + 1e-4).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"vocabulary_size": 0},
        {"hidden_dim": -8},
        {"max_sequence_length": 0},
        {"num_segments": -1},
        {"embedding_dim": 0},
        {"embedding_dim": 2.5},
        {"position": "relative"},
        {"dropout": 1.0},
        {"layer_norm_epsilon": -1.0},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_names_a_bad_argument(arguments):
    (name,) = arguments
    good = {"vocabulary_size": 11, "hidden_dim": 8}
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        EncoderEmbedding(**(good | arguments))


@pytest.mark.parametrize("sizes", [dict(hidden_dim=7), dict(embedding_dim=5)])
def test_sinusoids_come_in_pairs(sizes):
    good = {"vocabulary_size": 11, "hidden_dim": 8}
    with pytest.raises(ValueError, match="`embedding_dim`.* must be even.*Received: "):
        EncoderEmbedding(**(good | sizes), position="sinusoid")


def test_names_bad_tokens():
    layer = make()
    with pytest.raises((ValueError, TypeError), match="`token_ids` must .*Received"):
        layer(TOKENS[0], SEGMENTS[0])
    with pytest.raises((ValueError, TypeError), match="`token_ids` must .*Received"):
        layer(TOKENS.astype("float32"), SEGMENTS)
    with pytest.raises((ValueError, TypeError), match="`segment_ids` must .*Received"):
        layer(TOKENS, SEGMENTS[:, :3])
