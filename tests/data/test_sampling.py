"""Orders of examples: those recorded, and of any seed."""

import numpy as np
import pytest
import tensorflow as tf

from tfeff.data.sampling import epoch_rows, index_shuffled, shuffled

# The third epochs of ten rows with seed 3, recorded in November 2026.
RECORDED = {
    shuffled: [5, 7, 6, 1, 3, 2, 8, 0, 9, 4],
    index_shuffled: [5, 7, 9, 0, 8, 6, 2, 4, 3, 1],
}
SEEDS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("order", RECORDED)
def test_orders(order):
    def rows(seed, epoch, count=10):
        return order(count, seed, tf.constant(epoch, tf.int64)).numpy().tolist()

    assert rows(3, 2) == RECORDED[order]
    orders = {
        (seed, epoch): tuple(rows(seed, epoch, 40))
        for seed in SEEDS
        for epoch in range(3)
    }
    assert all(sorted(found) == list(range(40)) for found in orders.values())
    same = 2**31 if order is index_shuffled else 2**64
    classes = {(seed % same, epoch) for seed, epoch in orders}
    assert len(set(orders.values())) == len(classes)


@pytest.mark.parametrize("order", RECORDED)
def test_epochs_follow_one_another(order):
    settings = {"order": order, "shuffle": True, "repeat": True}
    dataset = epoch_rows(10, 4, 3, **settings)
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert dataset.element_spec == tf.TensorSpec([4], tf.int64)
    rows = np.concatenate([*dataset.take(10).as_numpy_iterator()])
    epochs = rows.reshape(4, 10).tolist()
    assert epochs[2] == RECORDED[order]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)

    settings["repeat"] = False
    dataset = epoch_rows(10, 4, 3, **settings)
    assert len(dataset) == 3
    rows = np.concatenate([*dataset.as_numpy_iterator()]).tolist()
    assert rows == [*epochs[0], 10, 10]
    settings["shuffle"] = False
    rows = np.concatenate([*epoch_rows(10, 5, 3, **settings).as_numpy_iterator()])
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
    settings = {"order": shuffled, "shuffle": True, "repeat": True}
    with pytest.raises(error, match=message):
        epoch_rows(10, **{"batch_size": 4, "seed": 0, **settings, **arguments})
