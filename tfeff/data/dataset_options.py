"""What all data sets for training have in common."""

import tensorflow as tf


def finalize(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The batches in their order, also where workers share them, made ahead of time."""
    options = tf.data.Options()
    options.deterministic = True
    # As many calls at once as there are processors. TensorFlow's tuning of that number
    # often misses that training is over, which then ends only when it next wakes: up
    # to a minute later.
    options.autotune.enabled = False
    # Workers of a distributed run take batches in turn; by files they would see
    # different numbers of them.
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)
