"""The fixed sparse patterns against sets of keys."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import (
    assert_close,
    check_equations,
    check_layer,
    randomize,
    variables_of,
)
from tests.checks.programs import largest_tensor
from tests.reference import batched, sparse_attention, sparse_pairs
from tfeff.layers import SparseAttention

PATTERNS = ("fairseq", "sparse_transformer")


def check(check, **options):
    check(
        # Windows at any length.
        partial(SparseAttention, 2, query_block_size=None, **options),
        batched(partial(sparse_attention, num_heads=2, **options)),
        hidden_dim=4 if check is check_equations else 8,
    )


def kept_pairs(length, **options):
    """The pairs that a layer gives a weight, the same in every head."""
    layer = SparseAttention(2, **options)
    hidden = np.zeros((1, length, 2), "float32")
    _, scores = layer(hidden, return_attention_scores=True)
    kept = np.asarray(scores)[0] > 0
    np.testing.assert_array_equal(kept[0], kept[1])
    return kept[0]


@pytest.mark.quick("sparse_transformer")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_layer(pattern):
    check(check_layer, stride=3, expressivity=1, pattern=pattern)


@pytest.mark.quick("2-1-fairseq", "4-2-sparse_transformer")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("stride, expressivity", [(2, 1), (4, 2), (100, 30)])
def test_equations(pattern, stride, expressivity):
    check(check_equations, stride=stride, expressivity=expressivity, pattern=pattern)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_pattern(data):
    length, stride = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 9))
    options = {
        "stride": stride,
        "expressivity": data.draw(st.integers(1, stride)),
        "pattern": data.draw(st.sampled_from(PATTERNS)),
    }
    np.testing.assert_array_equal(
        kept_pairs(length, **options), sparse_pairs(length, **options)
    )


@pytest.mark.parametrize(
    "pattern, length, percent",
    [
        ("fairseq", 1024, 34.97),
        ("fairseq", 512, 44.19),
        ("sparse_transformer", 1024, 34.375),
        ("sparse_transformer", 512, 43.75),
    ],
)
def test_published_densities(pattern, length, percent):
    """The defaults: stride 128 and expressivity 32."""
    kept = kept_pairs(length, pattern=pattern)
    assert round(100 * kept.mean(), 2 if pattern == "fairseq" else 3) == percent


def test_default_pattern_is_that_of_sparsebert():
    np.testing.assert_array_equal(kept_pairs(300), kept_pairs(300, pattern="fairseq"))
    assert kept_pairs(300, stride=128, expressivity=32).all(axis=1).sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("size", [None, 1, 9])
def test_windows_equal_the_mask(pattern, size):
    """At any length, known or not; with returned scores, the layer masks all pairs."""
    layer = SparseAttention(2, 4, 2, pattern, query_block_size=size, dtype="float64")
    layer.build((None, None, 8))
    randomize(variables_of(layer))
    rng = np.random.default_rng(0)

    def gradients(call, hidden, *mask):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = call(hidden, *mask)
            loss = tf.reduce_sum(tf.sin(output))
        return [output, *tape.gradient(loss, [hidden, *layer.trainable_variables])]

    unknown = tf.TensorSpec((None, None, 8), tf.float64)
    masked = tf.TensorSpec((None, None), tf.bool)
    for signature in ([unknown], [unknown, masked]):
        windows = tf.function(partial(gradients, layer), input_signature=signature)
        for length in (1, 4, 5, 6, 9, 11, 17):
            hidden = tf.constant(rng.normal(size=(2, length, 8)))
            visible = tf.constant(rng.random((2, length)) < 0.6)
            inputs = [hidden, visible][: len(signature)]

            def dense(*inputs):
                return layer(*inputs, return_attention_scores=True)[0]

            expected = gradients(dense, *inputs)
            for actual in (gradients(layer, *inputs), windows(*inputs)):
                for one, other in zip(actual, expected, strict=True):
                    assert_close(one, other, 1e-11)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_nothing_is_of_the_size_of_all_pairs(pattern):
    """The largest tensor is that of a summary of 2 in each window of 16."""
    layer = SparseAttention(
        1, stride=16, expressivity=2, pattern=pattern, query_block_size=None
    )
    layer.build((None, None, 2))
    hidden = np.zeros((1, 512, 2), "float32")
    overlap = pattern == "fairseq"
    rows, shared = 32 * (16 + overlap), 32 * (2 + overlap)
    size = largest_tensor(layer, layer.trainable_variables, hidden)
    assert size <= rows * shared < 512 * 512 / 4


def test_short_sequences_are_computed_under_the_mask():
    layer = SparseAttention(1)
    layer.build((None, None, 2))
    sizes = [
        largest_tensor(layer, layer.trainable_variables, np.zeros((1, n, 2), "f4"))
        for n in (512, 1024)
    ]
    assert sizes[0] == 512 * 512 and sizes[1] < 1024 * 1024 / 2


def test_a_query_attends_to_the_keys_of_its_pattern_alone():
    layer = SparseAttention(2, stride=4, expressivity=1, pattern="sparse_transformer")
    hidden = np.random.default_rng(0).normal(size=(1, 12, 8)).astype("float32")
    layer(hidden)
    randomize(variables_of(layer))
    changed = hidden.copy()
    changed[0, 5] += 1.0
    moved = np.abs(layer(changed) - layer(hidden)).max(axis=(0, 2)) > 1e-5
    assert set(np.flatnonzero(moved)) == {4, 5, 6, 7}


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"stride": 0}, "stride"),
        ({"stride": 4.0}, "stride"),
        ({"expressivity": 0}, "expressivity"),
        ({"stride": 4, "expressivity": 5}, "expressivity"),
        ({"pattern": "strided"}, "pattern"),
        ({"pattern": None}, "pattern"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        SparseAttention(**{"num_heads": 2, **arguments})


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="`num_heads` must divide.*num_heads=3.*dim=8"):
        SparseAttention(3)(np.zeros((1, 2, 8), "float32"))
