"""Dropout masks: their rate, and the independence of their elements."""

import importlib.util
import os
import subprocess
import sys
import zlib

import keras
import numpy as np
import pytest

from tfeff.layers import Dropout
from tfeff.ops import keep_mask, keep_mask_from_bits

# CRC-32 of the masks that TensorFlow made of the same bits.
RECORDED = {0.001: 0xBAE03755, 0.1: 0xE5007EE7, 0.5: 0xB5CC90EC, 0.9: 0x456E050A}


def drawn(shape, rate, seed=0):
    return np.asarray(keep_mask(shape, rate, seed), "float64")


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("length", [1, 2, 77, 512])
def test_share_of_every_column(rate, length):
    rows = 20_000
    kept = drawn((rows // 10, 10, length), rate).reshape(rows, length)
    spread = np.sqrt(rate * (1 - rate) / rows)
    assert np.abs(kept.mean(axis=0) - (1 - rate)).max() <= 5.5 * spread
    assert abs(kept.mean() - (1 - rate)) <= 5 * spread / np.sqrt(length)


@pytest.mark.parametrize("rate", RECORDED)
def test_the_same_bits_are_the_same_mask_on_every_backend(rate):
    bits = np.random.default_rng(0).integers(-(2**31), 2**31, size=(500, 1))
    bits = keras.ops.convert_to_tensor(bits.astype("int32"))
    kept = np.asarray(keep_mask_from_bits(bits, 77, rate))
    assert abs(kept.mean() - (1 - rate)) < 0.01
    assert zlib.crc32(np.packbits(kept).tobytes()) == RECORDED[rate]


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_all_of_this_on_other_backends(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("this is another backend")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout


def test_columns_and_rows_do_not_depend_on_each_other():
    """In particular not the two elements that share a word, `j` and `j + 32`."""
    rows, rate = 100_000, 0.3
    kept = (drawn((rows, 64), rate) - (1 - rate)) / np.sqrt(rate * (1 - rate))
    columns = kept.T @ kept / rows - np.eye(64)
    assert np.abs(columns).max() <= 5.5 / np.sqrt(rows)
    for distance in (1, 2, 64):
        products = kept[distance:] * kept[:-distance]
        assert np.abs(products.mean(axis=0)).max() <= 5.5 / np.sqrt(rows)
    # Neither do three in a row, which linear generators get wrong.
    triples = kept[:, :-2] * kept[:, 1:-1] * kept[:, 2:]
    assert np.abs(triples.mean(axis=0)).max() <= 10 / np.sqrt(rows)


def test_runs_in_a_row_are_as_long_as_chance_makes_them():
    kept = drawn((4000, 512), 0.5).astype(int)
    changes = np.abs(np.diff(kept, axis=1)).sum(axis=1)
    assert abs(changes.mean() - 511 / 2) <= 5 * np.sqrt(511 / 4 / 4000)
    assert abs(changes.var() - 511 / 4) <= 5 * 511 / 4 * np.sqrt(2 / 4000)


def test_seeds():
    generator = keras.random.SeedGenerator(7)
    draws = [drawn((3, 50), 0.5, generator) for _ in range(2)]
    assert (draws[0] != draws[1]).any()
    again = keras.random.SeedGenerator(7)
    np.testing.assert_array_equal(draws[0], drawn((3, 50), 0.5, again))
    np.testing.assert_array_equal(drawn((3, 50), 0.5, 1), drawn((3, 50), 0.5, 1))


def test_layer():
    layer = Dropout(0.25, seed=3)
    x = np.random.default_rng(0).normal(size=(40, 50, 11)).astype("float32")
    np.testing.assert_array_equal(layer(x), x)
    y = np.asarray(layer(x, training=True))
    dropped = y == 0
    np.testing.assert_allclose(y[~dropped], x[~dropped] / 0.75, rtol=1e-6)
    assert abs(dropped.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / x.size)
    copy = keras.layers.deserialize(keras.layers.serialize(layer))
    assert isinstance(copy, Dropout)
    np.testing.assert_array_equal(copy(x, training=True), y)


def test_a_scalar():
    layer = Dropout(0.5, seed=1)
    found = [layer(np.float32(3.0), training=True) for _ in range(40)]
    assert {x.shape for x in found} == {()}
    assert {float(x) for x in found} == {0.0, 6.0}
    assert float(layer(np.float32(3.0))) == 3.0
    assert layer(keras.Input(batch_shape=()), training=True).shape == ()


@pytest.mark.parametrize("rate", [1.0, 1.5, -0.1, float("nan")])
def test_a_rate_that_is_none_is_named(rate):
    """A rate of 1 would keep everything: 2³² becomes 0."""
    with pytest.raises(ValueError, match="`rate` must be a finite number .*Received"):
        keep_mask((2, 4), rate, seed=0)
