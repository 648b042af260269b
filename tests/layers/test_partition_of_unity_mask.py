"""The partition mask against `N[h, i, j] = f_h(j - i)`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference import partition_mask, tent_mask
from tests.subjects.partitions import TENTS, tents
from tfeff.layers import (
    OneHeadAttention,
    PartitionedAttention,
    PartitionOfUnityMask,
    partition_registry,
    partitions,
    register_partition,
)

PLACES = [
    (2, 0, 12, None),
    (4, 2, 3, None),
    (8, 0, 12, None),
    (16, 11, 12, None),
    (4, 0, 12, (-3, 0, 1)),
    (1, 0, 12, ()),
    (6, 1, 12, None, -2.0, -0.4),
    (6, 1, 12, None, None, None, 5.0),
]


@pytest.mark.parametrize("setting", PLACES)
@pytest.mark.parametrize("length", [1, 2, 7, 40])
def test_equals_literal_version(setting, length):
    hidden = np.zeros((3, length, 4), "float32")
    expected = partition_mask(length, *setting)
    actual = PartitionOfUnityMask(*setting)(hidden)
    assert actual.dtype == tf.float32
    assert_close(actual, expected, 1e-5)
    actual = PartitionOfUnityMask(*setting, dtype="float64")(hidden)
    assert actual.dtype == tf.float64
    assert_close(actual, expected, 1e-12)


@pytest.mark.parametrize("setting", PLACES)
@pytest.mark.parametrize("dtype, digits", [("float16", 11), ("bfloat16", 8)])
def test_half_precision_only_rounds_the_result(setting, dtype, digits):
    """The error is that of one rounding, not of a computation in half precision."""
    expected = partition_mask(60, *setting)
    layer = PartitionOfUnityMask(*setting, dtype=f"mixed_{dtype}")
    actual = layer(np.zeros((1, 60, 4), "float32"))
    assert actual.dtype.name == dtype
    error = np.abs(np.asarray(actual, "float64") - expected)
    assert (error <= 2.0**-digits * expected + 1e-6).all()


def test_reads_only_the_length_of_its_input():
    layer = PartitionOfUnityMask(6)
    zeros, nans = np.zeros((1, 5, 4)), np.full((2, 5, 3), np.nan)
    np.testing.assert_array_equal(layer(zeros), layer(nans))
    assert not layer.weights


@pytest.mark.parametrize("setting", [PLACES[2], PLACES[4], PLACES[6]])
def test_dynamic_lengths_xla_and_saving(setting, tmp_path):
    layer = PartitionOfUnityMask(*setting)
    spec = tf.TensorSpec((None, None, 4))
    dynamic = tf.function(layer.__call__, input_signature=[spec])
    compiled = tf.function(layer.__call__, jit_compile=True)
    hidden = keras.Input((None, 4))
    model = keras.Model(hidden, layer(hidden))
    assert model.output.shape == (setting[0], None, None)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_config() == layer.get_config()
    for length in (1, 4, 9):
        hidden = tf.zeros((2, length, 4))
        for call in (dynamic, compiled, model, loaded):
            assert_close(call(hidden), partition_mask(length, *setting), 1e-5)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ((3,), "num_parts"),
        ((0,), "num_parts"),
        (("8",), "num_parts"),
        ((8, 12, 12), "layer_index"),
        ((8, -1, 12), "layer_index"),
        ((8, 0, 0), "num_layers"),
        ((8, 0, 12, (0, 1)), "boundaries"),
        ((3, 0, 12, (1, 1)), "boundaries"),
        ((2, 0, 12, (float("inf"),)), "boundaries"),
        ((8, 0, 12, None, 1.0), "alpha"),
        ((8, 0, 12, None, None, "x"), "beta"),
        ((8, 0, 12, None, None, None, -1), "spacing"),
        ((2, 0, 12, (0,), -1.0), "alpha"),
        ((8, 0, 12, None, None, None, 12.0, 3), "partition"),
        ((8, 0, 12, None, None, None, 12.0, "tent_of_tests"), "partition"),
        ((8, 0, 12, None, None, None, 12.0, {"width": 2}), "partition"),
        ((8, 0, 12, None, None, None, 6.0, TENTS), "spacing"),
        ((8, 0, 12, None, -1.0, None, 12.0, TENTS), "alpha"),
        ((2, 0, 12, [0], None, None, 12.0, TENTS), "boundaries"),
        ((0, 0, 12, None, None, None, 12.0, TENTS), "num_parts"),
        ((8, 12, 12, None, None, None, 12.0, TENTS), "layer_index"),
    ],
)
def test_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        PartitionOfUnityMask(*arguments)


@pytest.mark.parametrize("num_parts", [1, 5])
def test_registered_functions(num_parts, tmp_path):
    hidden = np.zeros((2, 9, 4))
    expected = tent_mask(9, num_parts, 1.5)
    layer = PartitionOfUnityMask(num_parts, partition=TENTS, dtype="float64")
    assert layer(hidden).dtype == tf.float64
    assert_close(layer(hidden), expected, 1e-12)
    assert_close(tf.function(layer, jit_compile=True)(hidden), expected, 1e-12)
    inputs = keras.Input((None, 4), dtype="float64")
    keras.Model(inputs, layer(inputs)).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_config() == layer.get_config()
    assert_close(loaded(hidden), expected, 1e-12)


@pytest.mark.parametrize("way", [tf.function, keras.layers.Lambda])
def test_registered_functions_of_a_layer_that_a_traced_call_makes(way, registry):
    for name in ("tents", way.__name__):  # Checked functions are not checked again.
        register_partition(name, tents)

    def call(hidden):
        return PartitionOfUnityMask(3, partition=way.__name__)(hidden)

    inputs = keras.Input((9, 4)) if way is keras.layers.Lambda else np.zeros((1, 9, 4))
    assert tuple(way(call)(inputs).shape) == (3, 9, 9)


@pytest.mark.parametrize("partition", [TENTS, "tents_without_reach"])
def test_the_reach_of_registered_functions(partition):
    layer = PartitionOfUnityMask(6, 1, 3, partition=partition)
    if partition is not TENTS:
        assert layer.reach() is None
        return
    assert layer.reach() == 4
    assert layer.outer_parts == (0, 5)
    far = np.asarray(layer.functions(np.array([-50, -5, -4, 4, 5, 50])))
    np.testing.assert_array_equal(far[0], [1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(far[5], [0, 0, 0, 1, 1, 1])


@pytest.fixture
def registry(monkeypatch):
    """A registry that the test may fill."""
    monkeypatch.setattr(partition_registry, "_REGISTRY", {})


def halves(x, num_parts):
    return keras.ops.stack([0.5 + 0.0 * x] * num_parts)


# Functions, their reach, and what is wrong with them.
NO_PARTITIONS = [
    (
        lambda x: 1.5 * halves(x, 2),
        None,
        "`partition` must be a .* its sum is off 1 by 0.5",
    ),
    (
        lambda x: keras.ops.stack([0.0 * x - 0.5, 0.0 * x + 1.5]),
        None,
        "`partition` must be a .* its smallest value is -0.5",
    ),
    (lambda x: halves(x, 2) * x / x, None, "`partition` must be a"),  # NaN at 0.
    (
        # Wrong in one layer of the stack alone.
        lambda x, layer_index: halves(x, 2) * (1.0 + (layer_index == 2)),
        None,
        "in layer 2 of 3",
    ),
    (lambda x: halves(x, 2)[0], None, "`partition` must give a tensor of shape"),
    (lambda x: halves(x, 1), None, "`partition` must give a tensor of shape"),
    (lambda x: halves(x, 2), 7, "`reach` must be .* reach=7 .* layer 0 is off by 0.5"),
    (lambda x: halves(x, 2), lambda num_parts: -1, "`reach` must be an integer"),
    (lambda x, width: halves(x, 2), None, "must have the arguments .'width'.*Received"),
]


@pytest.mark.parametrize("functions, reach, message", NO_PARTITIONS)
def test_what_is_no_partition_is_refused(functions, reach, message, registry):
    register_partition("wrong", functions, reach)
    for make_layer in (PartitionOfUnityMask, PartitionedAttention, OneHeadAttention):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            make_layer(2, num_layers=3, partition="wrong")


def test_names_what_cannot_be_registered(registry):
    assert register_partition("tents", tents) is tents
    register_partition("tents", tents)  # Again, as when a module is reloaded.
    assert partitions() == ["tents"]
    with pytest.raises(ValueError, match="`name` must be the name of no other"):
        register_partition("tents", halves)
    with pytest.raises(ValueError, match="Give another name, or start Python again"):
        register_partition("tents", tents, reach=3)
    with pytest.raises(TypeError, match="`name` must be a string.*name=3"):
        register_partition(3, tents)
    with pytest.raises(TypeError, match="`functions` must be callable.*functions=3"):
        register_partition("a", 3)
    for reach in (-1, 1.5, "x"):
        with pytest.raises((ValueError, TypeError), match="`reach` must be.*reach="):
            register_partition("a", tents, reach)
    with pytest.raises(ValueError, match="among .'width'.. Received: height"):
        PartitionOfUnityMask(2, partition={"name": "tents", "height": 2})
    with pytest.raises(ValueError, match="Received: num_parts"):
        PartitionOfUnityMask(2, partition={"name": "tents", "num_parts": 3})


def test_long_arguments_are_told_apart(registry):
    """NumPy shows only the ends of an array of more than a thousand."""

    def scaled(relative_positions, table):
        right = keras.ops.sigmoid(relative_positions) * float(table[1000])
        return keras.ops.stack([right, 1.0 - keras.ops.sigmoid(relative_positions)])

    register_partition("scaled", scaled)
    table = np.ones(2000)
    partition = {"name": "scaled", "table": table}
    PartitionOfUnityMask(num_parts=2, partition=partition)
    table = table.copy()
    table[1000] = 2.0
    with pytest.raises(ValueError, match="scaled"):
        PartitionOfUnityMask(num_parts=2, partition={"name": "scaled", "table": table})
