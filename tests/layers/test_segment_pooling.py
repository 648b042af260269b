"""The means of two segments and how they differ, against loops."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close, check_gradients
from tests.reference import segment_pooling
from tfeff.layers import SegmentPooling

VISIBLE = np.arange(6) < np.array([6, 4, 1, 0])[:, None]
SEGMENTS = (np.arange(6) >= np.array([2, 3, 1, 0])[:, None]).astype("int32")


def hidden(length=6, dtype="float32"):
    return np.random.default_rng(0).normal(size=(4, length, 8)).astype(dtype)


def literal(hidden, segments, mask):
    return np.stack([segment_pooling(*row) for row in zip(hidden, segments, mask)])


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-12)]
)
@pytest.mark.parametrize("length", [6, 1])
def test_equals_literal_version(dtype, tolerance, length):
    layer, x = SegmentPooling(dtype=dtype), hidden(length, dtype)
    segments, mask = SEGMENTS[:, :length], VISIBLE[:, :length]
    expected = literal(x, segments, mask)
    assert not expected[-1].any() and expected[0].any()
    for m in (mask, mask.astype("int32")):
        assert_close(layer(x, segments, padding_mask=m), expected, tolerance)
    everything = literal(x, segments, np.ones_like(mask))
    assert_close(layer(x, segments), everything, tolerance, "no mask")
    compiled = tf.function(layer, jit_compile=True)
    assert_close(compiled(x, segments, mask), expected, tolerance, "XLA")


def test_gradients():
    layer = SegmentPooling(dtype="float64")
    check_gradients(
        lambda x: layer(x, SEGMENTS, padding_mask=VISIBLE),
        lambda arrays: literal(arrays["x"], SEGMENTS, VISIBLE),
        {},
        {"x": hidden(dtype="float64")},
    )


@pytest.mark.parametrize(
    ("policy", "tolerance"), [("mixed_float16", 5e-3), ("mixed_bfloat16", 0.04)]
)
def test_half_precision(policy, tolerance):
    output = SegmentPooling(dtype=policy)(hidden(), SEGMENTS, VISIBLE)
    assert keras.backend.standardize_dtype(output.dtype) == policy.removeprefix(
        "mixed_"
    )
    expected = literal(hidden(), SEGMENTS, VISIBLE)
    error = np.abs(np.asarray(output, "float64") - expected).max()
    assert error <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_differences_of_like_texts_keep_their_digits(policy):
    same = np.random.default_rng(1).normal(size=8)
    like = same + 0.1 * np.random.default_rng(2).normal(size=(2, 64, 8))
    dtype = policy.removeprefix("mixed_")
    rounded = np.asarray(keras.ops.cast(like, dtype), "float64")
    segments = np.repeat([[0, 1]], 32, axis=1) * np.ones((2, 1), "int32")
    output = SegmentPooling(dtype=policy)(like.astype("float32"), segments)
    expected = literal(rounded, segments, np.ones((2, 64)))[:, 16:24]
    found = np.asarray(output, "float64")[:, 16:24]
    bound = {"float16": 1e-3, "bfloat16": 8e-3}[dtype]  # of the output itself
    assert (np.abs(found - expected) <= bound * expected).all()


def test_bad_inputs_are_named():
    with pytest.raises(ValueError, match="`padding_mask` must"):
        SegmentPooling()(hidden(), SEGMENTS, VISIBLE[:, :3])
    with pytest.raises(TypeError, match="`segment_ids` must be an integer"):
        SegmentPooling()(hidden(), SEGMENTS.astype("float32"), VISIBLE)
