"""Reductions over the replicas of a distribution strategy."""

import keras


def sum_over_replicas(value):
    """The sum of a value over all replicas; on one device, `value` itself."""
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    # Outside of `strategy.run`, as when Keras traces shapes, there is no replica.
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
