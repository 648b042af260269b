"""Orders of prediction: all alike, partial, and blind to their own targets."""

import collections
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.subjects.masking import SPECIAL, sequences
from tfeff.data import permute_targets
from tfeff.ops import permutation_masks


def permute(rows, seed, first=0, **settings):
    result = permute_targets(rows, seed, first, special_token_ids=SPECIAL, **settings)
    return [np.asarray(t) for t in result]


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 15), min_size=4, max_size=4),
    seed=st.integers(-(2**63), 2**63 - 1),
    first=st.integers(0, 2**40),
    rate=st.floats(0.01, 1.0),
    max_targets=st.sampled_from([1, 3, 17]),
)
def test_every_row_follows_the_rule(lengths, seed, first, rate, max_targets):
    rows = sequences(lengths, 17, seed % 1000)
    ranks, positions, labels, weights = permute(
        rows, seed, first, max_targets=max_targets, mask_rate=rate
    )
    content, query = (np.asarray(mask) for mask in permutation_masks(ranks, rows > 0))
    for b, row in enumerate(rows):
        count = min(max_targets, lengths[b], max(1, round(rate * lengths[b])))
        free = [0] * (max_targets - count)
        targets = positions[b][:count].tolist()
        assert not set(row[targets]) & set(SPECIAL)
        assert ranks[b][targets].tolist() == list(range(count))
        assert np.sum(ranks[b] == -1) == 17 - count and ranks[b].min() == -1
        assert labels[b].tolist() == [*row[targets], *free]
        assert positions[b][count:].tolist() == free
        assert weights[b].tolist() == [1.0] * count + free
        given_ones = np.flatnonzero((ranks[b] == -1) & (row > 0))
        for number, target in enumerate(targets):
            seen = {*given_ones, *targets[:number]}
            assert set(np.flatnonzero(query[b, target])) == seen
            assert not content[b, given_ones, target].any()


def test_every_order_is_as_likely():
    """All orders of four tokens and all pairs of targets, by chi-square at 1e-4."""
    rows = np.repeat(sequences([4], 6), 12_000, axis=0)
    for rate, count, bound in [(1.0, 4, 55.3), (0.5, 2, 37.4)]:  # 23, 11 degrees
        _, positions, _, _ = permute(rows, 7, max_targets=count, mask_rate=rate)
        found = collections.Counter(map(tuple, positions.tolist()))
        orders = list(itertools.permutations(range(1, 5), count))
        expected = len(rows) / math.perm(4, count)
        assert set(found) == set(orders)
        square = sum((found[order] - expected) ** 2 / expected for order in orders)
        assert square < bound


def test_orders_depend_on_the_example_not_on_the_batch():
    rows = sequences([15 - i % 4 for i in range(9)], 17)
    whole = permute(rows, 3, 1000, max_targets=3)
    for start, end in [(0, 4), (4, 5), (5, 9)]:
        part = permute(rows[start:end], 3, 1000 + start, max_targets=3)
        for a, b in zip(whole, part):
            np.testing.assert_array_equal(a[start:end], b)
    assert not np.array_equal(permute(rows, 4, 1000, max_targets=3)[1], whole[1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mask_rate": 0}, ValueError, "`mask_rate`.*mask_rate=0"),
        ({"seed": 2**63}, ValueError, "`seed`"),
        ({"max_targets": 0}, ValueError, "`max_targets`"),
        ({"max_targets": 10}, ValueError, "`max_targets`.*at most 9.*10"),
        ({"token_ids": np.zeros(5, np.int32)}, ValueError, r"`token_ids`.*\(5,\)"),
        ({"token_ids": np.full((1, 5), 7.9)}, TypeError, "`token_ids`.*float64"),
        ({"first_example": tf.constant(0.5)}, TypeError, "`first_example`.*0.5"),
    ],
)
def test_bad_arguments(arguments, error, message):
    good = {"token_ids": sequences([5], 9), "seed": 0, "max_targets": 2}
    with pytest.raises(error, match=message):
        permute_targets(**{**good, **arguments}, special_token_ids=SPECIAL)
