"""The partition mask against `N[h, i, j] = f_h(j - i)`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tests.reference import partition_mask
from tfeff.layers import PartitionOfUnityMask

PLACES = [
    (2, 0, 12, None),
    (4, 2, 3, None),
    (8, 0, 12, None),
    (16, 11, 12, None),
    (4, 0, 12, (-3, 0, 1)),
    (1, 0, 12, ()),
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


@pytest.mark.parametrize("setting", [PLACES[2], PLACES[4]])
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
    ],
)
def test_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        PartitionOfUnityMask(*arguments)
