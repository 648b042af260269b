"""Masking: BERT's rule, its rates, and that it is a pure function."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks.masking import check_rule
from tests.subjects.masking import (
    CLS,
    MASK,
    PAD,
    SEP,
    SETTINGS,
    SPECIAL,
    VOCABULARY,
    sequences,
)
from tfeff.data import mask_tokens


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 23), min_size=1, max_size=6),
    seed=st.integers(-(2**63), 2**63 - 1),
    first=st.integers(0, 2**40),
    rate=st.floats(0.01, 1.0),
    max_masks=st.integers(1, 25),
)
def test_every_row_follows_the_rule(lengths, seed, first, rate, max_masks):
    rows = sequences(lengths, 25)
    result = mask_tokens(
        rows, seed, first, max_masks=max_masks, mask_rate=rate, **SETTINGS
    )
    check_rule(rows, result, max_masks, rate)


def test_rates():
    """80/10/10, every position alike, every drawn word alike: within 5 sigma."""
    rows = sequences([40] * 20_000, 42)
    rows[:, 1:-1] = 7
    masked, positions, _, _ = mask_tokens(rows, 5, max_masks=6, **SETTINGS)
    total = positions.shape[0] * 6
    found = np.take_along_axis(masked.numpy(), positions.numpy(), axis=1)

    def check(successes, probability, trials):
        sigma = math.sqrt(trials * probability * (1 - probability))
        assert abs(successes - trials * probability) < 5 * sigma

    words = VOCABULARY - len(SPECIAL)
    check(np.sum(found == MASK), 0.8, total)
    check(np.sum(found == 7), 0.1 + 0.1 / words, total)
    for word in set(range(VOCABULARY)) - {*SPECIAL, 7}:
        check(np.sum(found == word), 0.1 / words, total)
    for position in range(1, 41):
        check(np.sum(positions == position), 6 / 40, len(rows))
    # Pairs too: the choice is without replacement, and otherwise independent.
    both = np.any(positions == 3, axis=1) & np.any(positions == 4, axis=1)
    check(np.sum(both), 6 / 40 * 5 / 39, len(rows))


def test_rows_and_seeds_are_independent():
    """The same text is masked differently in each row and by each seed."""
    rows = np.repeat(sequences([100], 102), 300, axis=0)
    chosen = [
        {tuple(p) for p in mask_tokens(rows, s, max_masks=15, **SETTINGS)[1].numpy()}
        for s in (0, 1, -1)
    ]
    assert [len(c) for c in chosen] == [300] * 3
    assert len(set.union(*chosen)) == 900


@pytest.mark.parametrize("total", [3, 8, 33, 34, 35])
def test_masks_depend_on_the_example_not_on_the_batch(total):
    rows = sequences([total - 2 - i % 2 for i in range(12)], total)
    whole = mask_tokens(rows, 3, 1000, max_masks=2, **SETTINGS)
    for start, end in [(0, 5), (5, 6), (6, 12)]:
        part = mask_tokens(rows[start:end], 3, 1000 + start, max_masks=2, **SETTINGS)
        for a, b in zip(whole, part):
            np.testing.assert_array_equal(a[start:end], b)


def test_masks_stay_the_same_for_ever():
    """Pinned, as a run must resume the same after an update of anything."""
    rows = np.array([[CLS, *range(10, 26), SEP, PAD]] * 3, np.int32)
    masked, positions, _, _ = mask_tokens(
        rows, 12, 7, max_masks=5, mask_rate=0.3, **SETTINGS
    )
    assert positions.numpy().tolist() == [
        [1, 2, 7, 10, 11],
        [7, 10, 11, 12, 16],
        [6, 7, 8, 12, 16],
    ]
    changed = masked.numpy()[masked.numpy() != rows].tolist()
    assert changed == [MASK] * 13 + [15, 12]


def test_dynamic_shapes_in_a_graph():
    signature = tf.TensorSpec([None, None], tf.int32)
    graph = tf.function(
        lambda ids: mask_tokens(ids, 1, max_masks=3, **SETTINGS),
        input_signature=[signature],
    )
    for rows in (sequences([5, 9, 0], 11), sequences([17], 19)):
        expected = mask_tokens(rows, 1, max_masks=3, **SETTINGS)
        for a, b in zip(graph(rows), expected):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mask_rate": 0}, ValueError, "`mask_rate`.*mask_rate=0"),
        ({"mask_rate": 1.5}, ValueError, "`mask_rate`.*mask_rate=1.5"),
        ({"mask_rate": float("nan")}, ValueError, "`mask_rate`"),
        ({"mask_rate": "0.1"}, TypeError, "`mask_rate`"),
        ({"seed": 2**63}, ValueError, "`seed`"),
        ({"seed": 0.5}, TypeError, "`seed`"),
        ({"max_masks": 0}, ValueError, "`max_masks`"),
        ({"special_token_ids": range(50)}, ValueError, "`special_token_ids`"),
        ({"max_masks": 10}, ValueError, "`max_masks`.*at most 9.*10"),
        ({"token_ids": np.zeros(5, np.int32)}, ValueError, r"`token_ids`.*\(5,\)"),
        ({"token_ids": np.full((1, 5), 7.9)}, TypeError, "`token_ids`.*float64"),
        ({"token_ids": [[7.9]]}, TypeError, "`token_ids`.*float64"),
        ({"token_ids": [[1], [2, 3]]}, TypeError, "`token_ids`"),
        ({"token_ids": np.array([[2**32 + 7]])}, ValueError, "`token_ids`.*4294967303"),
    ],
)
def test_bad_arguments(arguments, error, message):
    good = {"token_ids": sequences([5], 9), "seed": 0, "max_masks": 2, **SETTINGS}
    with pytest.raises(error, match=message):
        mask_tokens(**{**good, **arguments})
