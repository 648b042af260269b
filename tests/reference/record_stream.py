"""The order of a cache's records, as TensorFlow's own data sets make it."""

import tensorflow as tf

FILES_IN_TURN = 16
WINDOW = 16_384


def raw_records(
    paths: list[str],
    num_records: int,
    *,
    seed: int | None,
    first: int,
    repeat: bool,
) -> tf.data.Dataset:
    """Serialised records, starting at the record of index `first`.

    TensorFlow's `Dataset.shuffle` depends on the program's global seed; here the
    order depends on `seed` and the epoch alone.

    Args:
        paths: TFRecord files.
        num_records: number of records in all files.
        seed: seed of the order; None keeps the order of the files.
        first: number of records to skip; whole epochs cost nothing.
        repeat: whether epochs repeat without end; False gives one epoch.

    Returns:
        A dataset of scalar strings.
    """

    def epoch_records(epoch: tf.Tensor) -> tf.data.Dataset:
        if seed is None:
            return tf.data.TFRecordDataset(paths)
        return _shuffled(paths, seed, epoch)

    if not repeat:
        return epoch_records(tf.constant(0, tf.int64)).skip(first)
    first_epoch, rest = divmod(first, num_records)
    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    return epochs.flat_map(epoch_records).skip(rest)


def _shuffled(paths: list[str], seed: int, epoch: tf.Tensor) -> tf.data.Dataset:
    files = shuffle_files(tf.constant(paths), seed, epoch)
    records = tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset,
        cycle_length=FILES_IN_TURN,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    windows = records.batch(WINDOW).enumerate()
    return windows.map(
        lambda window, records: shuffle_window(records, seed, epoch, window)
    ).unbatch()


def shuffle_files(files: tf.Tensor, seed: int, epoch: int | tf.Tensor) -> tf.Tensor:
    """Files [N], of whatever type, in the order of an epoch."""
    return tf.random.experimental.stateless_shuffle(
        files, _fold(seed, 0, epoch), alg="philox"
    )


def shuffle_window(
    records: tf.Tensor, seed: int, epoch: int | tf.Tensor, window: int | tf.Tensor
) -> tf.Tensor:
    """Records [N], of whatever type, in the order of a window of an epoch."""
    return tf.random.experimental.stateless_shuffle(
        records, _fold(seed, 1, epoch, window), alg="philox"
    )


def _fold(seed: int, stream: int, *numbers: int | tf.Tensor) -> tf.Tensor:
    result = tf.constant([seed, stream], tf.int64)
    for number in numbers:
        result = tf.random.fold_in(result, tf.cast(number, tf.int64))
    return result
