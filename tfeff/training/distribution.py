"""Distribution strategies by name."""

import tensorflow as tf

from tfeff.checks import check_choice

STRATEGIES = ("default", "mirrored", "multi_worker", "tpu")


def make_strategy(name: str = "default", tpu: str = "") -> tf.distribute.Strategy:
    """The strategy for this machine's devices.

    Args:
        name: `"default"`, one device; `"mirrored"`, every GPU of the machine, or
            every logical CPU where there is no GPU; `"multi_worker"`, those of all
            machines that the environment variable TF_CONFIG names, where every
            machine runs the same program with its own run directory, and asks for the
            strategy before it makes any tensor; `"tpu"`, a TPU or a slice.
        tpu: name or address of the TPU, for `TPUClusterResolver`; empty for the one
            that the environment names.

    Returns:
        A `tf.distribute.Strategy`. Make models in its `scope()`.

    Raises:
        ValueError: if the name is unknown, or there is no TPU to connect to.

    Example:

    >>> make_strategy("default").num_replicas_in_sync
    1
    """
    check_choice("strategy", name, STRATEGIES)
    if name == "default":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        devices = tf.config.list_logical_devices("GPU")
        devices = devices or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
