"""The stream of a cache's raw records: epochs, order and first record."""

import tensorflow as tf

_FILES_IN_TURN = 16
_WINDOW = 16_384


def raw_records(
    paths: list[str],
    num_records: int,
    *,
    seed: int | None,
    first: int,
    repeat: bool,
    multiple: int,
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
        multiple: a single epoch is filled up with empty records to a multiple of it.

    Returns:
        A dataset of scalar strings.
    """

    def epoch_records(epoch: tf.Tensor) -> tf.data.Dataset:
        if seed is None:
            return tf.data.TFRecordDataset(paths)
        return _shuffled(paths, seed, epoch)

    if not repeat:
        records = epoch_records(tf.constant(0, tf.int64))
        filling = tf.data.Dataset.from_tensors(b"").repeat(-num_records % multiple)
        return records.concatenate(filling).skip(first)
    first_epoch, rest = divmod(first, num_records)
    epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
    return epochs.flat_map(epoch_records).skip(rest)


def _shuffled(paths: list[str], seed: int, epoch: tf.Tensor) -> tf.data.Dataset:
    def fold(stream: int, *numbers: tf.Tensor) -> tf.Tensor:
        result = tf.constant([seed, stream], tf.int64)
        for number in numbers:
            result = tf.random.fold_in(result, number)
        return result

    def shuffle_window(window: tf.Tensor, records: tf.Tensor) -> tf.Tensor:
        return tf.random.experimental.stateless_shuffle(
            records, fold(1, epoch, window), alg="philox"
        )

    files = tf.random.experimental.stateless_shuffle(
        tf.constant(paths), fold(0, epoch), alg="philox"
    )
    records = tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset,
        cycle_length=_FILES_IN_TURN,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    windows = records.batch(_WINDOW).enumerate().map(shuffle_window)
    return windows.unbatch()
