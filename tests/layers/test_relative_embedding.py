"""Tables of relative positions: the row of each distance."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tfeff
from tests.checks import assert_close, check_gradients, randomize, variables_of
from tests.reference import relative_embedding, t5_bucket
from tfeff.layers import RelativeEmbedding

POSITIONS = np.arange(-160, 161)


def randomized(max_distance, **kwargs):
    layer = RelativeEmbedding(max_distance, **kwargs)
    layer(np.arange(3))
    randomize(variables_of(layer))
    return layer


def table_of(layer):
    return variables_of(layer)["embeddings"].numpy()


@pytest.mark.parametrize("shape", [(), (3,), (3, 4)])
@pytest.mark.parametrize(
    "index, max_distance, num_buckets, rows",
    [
        ("signed", 1, 32, 3),
        ("signed", 4, 32, 9),
        ("distance", 4, 32, 5),
        ("t5", 128, 32, 32),
        ("t5", 20, 8, 8),
        ("t5", 1000, 64, 64),
    ],
)
def test_rows(shape, index, max_distance, num_buckets, rows):
    layer = randomized(max_distance, shape=shape, index=index, num_buckets=num_buckets)
    assert table_of(layer).shape == (rows, *shape)
    for positions in (POSITIONS, np.int32(-3), np.array([[5, -900], [0, 900]])):
        expected = relative_embedding(
            table_of(layer), positions, index, max_distance, num_buckets
        )
        np.testing.assert_array_equal(layer(positions), expected)


@pytest.mark.parametrize("index", ["signed", "distance", "t5"])
def test_one_trace_serves_all_lengths(index):
    layer = randomized(8, shape=(2, 4), index=index, num_buckets=8)
    signature = [tf.TensorSpec((None,), tf.int32)]
    call = tf.function(layer, input_signature=signature)
    compiled = tf.function(layer, jit_compile=True)
    for length in (1, 2, 7, 12):
        positions = np.arange(1 - length, length, dtype="int32")
        expected = relative_embedding(table_of(layer), positions, index, 8, 8)
        np.testing.assert_array_equal(call(positions), expected)
    np.testing.assert_array_equal(compiled(positions), expected)


@pytest.mark.parametrize("index", ["signed", "distance", "t5"])
def test_gradients_are_summed_over_the_positions_of_a_row(index):
    layer = randomized(8, shape=(2,), index=index, num_buckets=8, dtype="float64")
    positions = np.arange(-12, 13)
    check_gradients(
        lambda: layer(positions),
        lambda a: relative_embedding(a["embeddings"], positions, index, 8, 8),
        variables_of(layer),
        {},
    )


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 12))
def test_a_longer_table_that_repeats_its_ends_is_the_same(k, more):
    """Distances beyond the table use the end rows."""
    short, long = randomized(k, shape=(3,)), randomized(k + more, shape=(3,))
    repeated = np.pad(table_of(short), ((more, more), (0, 0)), mode="edge")
    variables_of(long)["embeddings"].assign(repeated)
    np.testing.assert_array_equal(short(POSITIONS), long(POSITIONS))


def test_buckets_of_t5():
    """32 buckets up to distance 128: the last starts at 91, and 16 is not used."""
    layer = randomized(128, index="t5")
    for x, row in ((0, 0), (-1, 1), (1, 17), (90, 30), (91, 31), (-91, 15), (300, 31)):
        assert t5_bucket(x) == row
        assert np.asarray(layer(np.array(x))) == table_of(layer)[row]
    used = np.unique(layer(np.arange(-300, 301)))
    assert table_of(layer)[16] not in used and len(used) == 31


def test_saving(tmp_path):
    positions = keras.Input((None,), dtype="int32")
    layer = RelativeEmbedding(3, shape=(2, 4), embeddings_initializer="ones")
    model = keras.Model(positions, layer(positions))
    assert model.output.shape == (None, None, 2, 4)
    batch = POSITIONS[None].astype("int32")
    assert (np.asarray(model(batch)) == 1.0).all()
    randomize(variables_of(layer))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(batch), model(batch))
    config = json.dumps(keras.saving.serialize_keras_object(layer))
    copy = keras.saving.deserialize_keras_object(json.loads(config))
    assert json.dumps(keras.saving.serialize_keras_object(copy)) == config


def test_precision_follows_the_policy():
    layer = randomized(3, shape=(2,), dtype="mixed_float16")
    assert variables_of(layer)["embeddings"].dtype == "float32"
    rows = layer(POSITIONS)
    assert rows.dtype == tf.float16
    expected = relative_embedding(table_of(layer), POSITIONS, "signed", 3)
    assert_close(rows, expected, 1e-3)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"max_distance": 0}, "max_distance"),
        ({"max_distance": -1}, "max_distance"),
        ({"max_distance": 2.0}, "max_distance"),
        ({"max_distance": None}, "max_distance"),
        ({"max_distance": 4, "index": "absolute"}, "index"),
        ({"max_distance": 128, "index": "t5", "num_buckets": 0}, "num_buckets"),
        ({"max_distance": 128, "index": "t5", "num_buckets": 31}, "num_buckets"),
        # Eight distances have a bucket each: the last must start beyond.
        ({"max_distance": 8, "index": "t5", "num_buckets": 32}, "max_distance"),
        ({"max_distance": 4, "shape": (0,)}, "shape"),
        ({"max_distance": 4, "shape": (2.0,)}, "shape"),
        ({"max_distance": 4, "shape": 3}, "shape"),
    ],
)
def test_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        RelativeEmbedding(**arguments)


def test_the_summary_of_a_model_with_a_shared_table():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = tfeff.layers.RelativeEmbedding(4, (2, 8))
            self.attention = tfeff.layers.RelativeAttention(
                2, "shaw", relative_embedding=self.table
            )

        def call(self, x):
            return self.attention(x)

    model = Model()
    model(np.ones((2, 5, 16), "float32"))
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert "RelativeEmbedding" in "".join(lines)
