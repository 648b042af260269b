"""The mean over real tokens, against the sum and the count written as a loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_gradients
from tests.reference import mean_pooling
from tfeff.layers import MeanPooling

LENGTHS = [5, 3, 1, 0]


def visible(length=5):
    return np.arange(length) < np.array(LENGTHS)[:, None]


def hidden(length=5, dtype="float32"):
    return np.random.default_rng(0).normal(size=(4, length, 8)).astype(dtype)


def literal(hidden, mask):
    return np.stack([mean_pooling(*row) for row in zip(hidden, mask)])


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-12)]
)
@pytest.mark.parametrize("length", [5, 1])
def test_equals_literal_version(dtype, tolerance, length):
    layer, x, mask = MeanPooling(dtype=dtype), hidden(length, dtype), visible(length)
    expected = literal(x, mask)
    assert not expected[-1].any()
    for m in (mask, mask.astype("int32")):
        assert_close(layer(x, padding_mask=m), expected, tolerance)
    assert_close(layer(x), literal(x, np.ones_like(mask)), tolerance, "no mask")
    # Neither order nor what padding holds matters.
    garbage = np.where(mask[..., None], x, np.nan)[:, ::-1]
    assert_close(layer(garbage, padding_mask=mask[:, ::-1]), expected, tolerance)


def test_gradients():
    layer, mask = MeanPooling(dtype="float64"), visible()
    check_gradients(
        lambda x: layer(x, padding_mask=mask),
        lambda arrays: literal(arrays["x"], mask),
        {},
        {"x": hidden(dtype="float64")},
    )


def test_xla_and_dynamic_shapes():
    layer = MeanPooling()
    specs = [tf.TensorSpec((None, None, 8)), tf.TensorSpec((None, None), tf.bool)]
    traced = tf.function(lambda x, m: layer(x, padding_mask=m), input_signature=specs)
    compiled = tf.function(lambda x, m: layer(x, padding_mask=m), jit_compile=True)
    for length in (5, 1):
        x, mask = hidden(length), visible(length)
        for function in (traced, compiled):
            assert_close(function(x, mask), literal(x, mask), 1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_sums_in_float32(policy):
    """In float16 the sum of this many would overflow; in bfloat16 it would stall."""
    layer = MeanPooling(dtype=policy)
    x = np.full((1, 4096, 2), 100.0, "float32")
    x[:, 1::2] = 300.0
    mean = layer(x)
    assert keras.backend.standardize_dtype(mean.dtype) == policy.removeprefix("mixed_")
    np.testing.assert_array_equal(np.asarray(mean, "float32"), [[200.0, 200.0]])
    mask = np.arange(4096)[None] < 4000
    masked = np.asarray(layer(x, padding_mask=mask), "float32")
    np.testing.assert_array_equal(masked, [[200.0, 200.0]])


def test_masks_by_position():
    x, mask = hidden(), visible()
    for arguments in ((mask,), (None, mask)):
        assert_close(MeanPooling()(x, *arguments), literal(x, mask), 1e-6)


def test_bad_masks_are_named():
    with pytest.raises(ValueError, match="`padding_mask` must"):
        MeanPooling()(hidden(), padding_mask=visible()[:, :3])
    with pytest.raises(TypeError, match="`padding_mask` must"):
        MeanPooling()(hidden(), padding_mask=visible().astype("float32"))
    with pytest.raises(TypeError, match="`mask` must"):
        MeanPooling()(hidden(), mask=visible().astype("float32"))


@pytest.mark.parametrize("layer", [MeanPooling, tfeff.layers.SegmentPooling])
def test_the_summary_of_a_subclassed_model(layer):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.pooling = layer()

        def call(self, inputs):
            return self.pooling(*inputs)

    model = Model()
    x = [hidden(), np.zeros(hidden().shape[:2], "int32")]
    model(x[:1] if layer is MeanPooling else x)
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert layer.__name__ in "".join(lines)
