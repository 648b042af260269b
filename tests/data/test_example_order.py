"""Orders of examples: those recorded, and of any seed."""

import numpy as np
import pytest
import tensorflow as tf

from tfeff.data.example_order import epoch_rows, shuffled

# The third epoch of ten rows with seed 3, recorded in November 2026.
RECORDED = [5, 7, 6, 1, 3, 2, 8, 0, 9, 4]
SEEDS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)]


def order(seed, epoch, count):
    return shuffled(count, seed, tf.constant(epoch, tf.int64)).numpy()


def test_orders():
    assert order(3, 2, 10).tolist() == RECORDED
    orders = {
        (seed, epoch): tuple(order(seed, epoch, 40))
        for seed in SEEDS
        for epoch in range(3)
    }
    assert all(sorted(found) == list(range(40)) for found in orders.values())
    assert len(set(orders.values())) == len(orders)


@pytest.mark.parametrize("count", [200, 1000, 5000])
def test_neighbours_come_apart(count):
    """Also where seed and epoch are one number, as in the first epoch of seed 0."""
    for seed, epoch in ((0, 0), (1, 1), (2, 2), (0, 1), (7, 0)):
        rows = order(seed, epoch, count)
        # Rows that stay beside each other: two in the mean.
        assert (np.abs(np.diff(rows)) == 1).sum() < 12
        rank = np.corrcoef(rows, np.arange(count))[0, 1]
        assert abs(rank) * np.sqrt(count - 1) < 4


def test_epochs_follow_one_another():
    dataset = epoch_rows(10, 4, 3, shuffle=True, repeat=True)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert dataset.element_spec == tf.TensorSpec([4], tf.int64)
    rows = np.concatenate([*dataset.take(10).as_numpy_iterator()])
    epochs = rows.reshape(4, 10).tolist()
    assert epochs[2] == RECORDED
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)

    dataset = epoch_rows(10, 4, 3, shuffle=True, repeat=False)
    assert len(dataset) == 3
    rows = np.concatenate([*dataset.as_numpy_iterator()]).tolist()
    assert rows == [*epochs[0], 10, 10]
    dataset = epoch_rows(10, 5, 3, shuffle=False, repeat=False)
    rows = np.concatenate([*dataset.as_numpy_iterator()])
    assert rows.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "`batch_size`.*0"),
        ({"seed": 2**63}, ValueError, "`seed`.*9223372036854775808"),
        ({"seed": 0.5}, TypeError, "`seed`.*0.5"),
    ],
)
def test_bad_arguments(arguments, error, message):
    settings = {"shuffle": True, "repeat": True}
    with pytest.raises(error, match=message):
        epoch_rows(10, **{"batch_size": 4, "seed": 0, **settings, **arguments})
