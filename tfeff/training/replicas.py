"""The replicas of a distribution strategy of TensorFlow; other backends have one."""

import keras


def sum_over_replicas(value):
    """The sum of a value over all replicas; on one device, `value` itself."""
    context = _replica_context()
    return value if context is None else context.all_reduce("SUM", value)


def largest_of_replicas(value):
    """The largest values, number by number, that any replica has."""
    context = _replica_context()
    if context is None:
        return value
    return keras.ops.max(context.all_gather(value[None], axis=0), axis=0)


def gather_from_replicas(value):
    """The rows of all replicas, one replica's below the other's.

    The gradient of a replica's rows is the sum of what all replicas make of them, so
    gradients that are summed over the replicas are those of one device.
    """
    context = _replica_context()
    return value if context is None else context.all_gather(value, axis=0)


def num_replicas(model: keras.Model) -> int:
    """The number of replicas that a model was made for."""
    if keras.backend.backend() != "tensorflow":
        return 1
    return model.distribute_strategy.num_replicas_in_sync


def needs_static_shapes(model: keras.Model) -> bool:
    """Whether a model is compiled anew for each shape: by XLA, as JAX and TPUs do."""
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    import tensorflow as tf

    return model.jit_compile or isinstance(
        model.distribute_strategy, tf.distribute.TPUStrategy
    )


def _replica_context():
    """The context of one replica of several; `None` where there is one alone."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    # Outside of `strategy.run`, as when Keras traces shapes, there is no replica.
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context
