"""The `tf.data` options of all training data sets."""

import tensorflow as tf


def finalize(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Applies deterministic order, DATA auto-sharding and prefetching."""
    options = tf.data.Options()
    options.deterministic = True
    # Without tuning, the number of parallel calls is that of the processors. The
    # thread that tunes it often misses the end of training, which then waits until it
    # wakes: up to a minute.
    options.autotune.enabled = False
    # Workers take batches in turn; sharding by files would give them different
    # numbers of batches.
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)
