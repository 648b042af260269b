"""The fixed sparse patterns against sets of keys."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import check_equations, check_layer, randomize, variables_of
from tests.reference import batched, sparse_attention, sparse_pairs
from tfeff.layers import SparseAttention

PATTERNS = ("fairseq", "sparse_transformer")


def check(check, **options):
    check(
        partial(SparseAttention, 2, **options),
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


@pytest.mark.parametrize("pattern", PATTERNS)
def test_layer(pattern):
    check(check_layer, stride=3, expressivity=1, pattern=pattern)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("stride, expressivity", [(2, 1), (4, 2), (100, 30)])
def test_equations(pattern, stride, expressivity):
    check(check_equations, stride=stride, expressivity=expressivity, pattern=pattern)


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


def test_a_query_reads_the_keys_of_its_pattern_alone():
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
