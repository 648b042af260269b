"""The order of examples in each epoch."""

import tensorflow as tf

from tfeff.data.sampling import check_stateless_seed
from tfeff.utils.checks import check_bool, check_integer


def epoch_rows(
    count: int,
    batch_size: int,
    seed: int,
    *,
    shuffle: bool,
    repeat: bool,
) -> tf.data.Dataset:
    """The indices of the rows in each batch; epochs follow each other without a gap.

    Args:
        count: N, the number of rows, at least 1.
        batch_size: B, rows in a batch.
        seed: seed of the orders, in [−2⁶³, 2⁶³); the order of an epoch is a function
            of `(seed, epoch)` alone.
        shuffle: False gives 0, 1, …, N − 1 in each epoch.
        repeat: True for endless epochs, False for one, whose last batch is filled up
            with N.

    Returns:
        A dataset of `[B]` int64.

    Raises:
        ValueError: if `batch_size` or `seed` is out of range.
        TypeError: if one of them has the wrong type.
    """
    batch_size = check_integer("batch_size", batch_size)
    seed = check_stateless_seed(seed)
    check_bool("shuffle", shuffle)
    check_bool("repeat", repeat)

    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        rows = tf.range(count, dtype=tf.int64)
        return tf.data.Dataset.from_tensor_slices(
            shuffled(count, seed, number) if shuffle else rows
        )

    def filled_up(rows: tf.Tensor) -> tf.Tensor:
        missing = batch_size - tf.size(rows)
        rows = tf.pad(rows, [[0, missing]], constant_values=count)
        return tf.ensure_shape(rows, [batch_size])

    epochs = tf.data.Dataset.counter() if repeat else tf.data.Dataset.range(1)
    dataset = epochs.flat_map(epoch).batch(batch_size).map(filled_up)
    batches = tf.data.INFINITE_CARDINALITY if repeat else -(-count // batch_size)
    return dataset.apply(tf.data.experimental.assert_cardinality(batches))


def shuffled(count: int, seed: int, epoch: tf.Tensor) -> tf.Tensor:
    """0, …, N − 1 `[N]` int64 shuffled by seed and epoch."""
    seeds = tf.stack([tf.constant(seed, tf.int64), epoch])
    rows = tf.range(count, dtype=tf.int64)
    return tf.random.experimental.stateless_shuffle(rows, seeds)
