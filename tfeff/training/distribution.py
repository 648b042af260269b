"""Distribution strategies by name."""

import functools
import glob
import os
from collections.abc import Callable

import tensorflow as tf

from tfeff.training.workers import several_workers
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_choice
from tfeff.utils.job_output import say
from tfeff.utils.native_messages import NVIDIA, NVIDIA_IN_WSL

STRATEGIES = ("default", "mirrored", "multi_worker", "tpu")


def make_strategy(name: str = "default", tpu: str = "") -> tf.distribute.Strategy:
    """The strategy for this machine's devices.

    Args:
        name: `"default"`, one device; `"mirrored"`, every GPU of the machine, or
            every logical CPU where there is no GPU, by one strategy in a process;
            `"multi_worker"`, those of all machines that the environment variable
            TF_CONFIG names, where every machine runs the same program, and asks for
            the strategy before it makes any tensor. Each waits for the others to start,
            and says so on standard error; `"tpu"`, a TPU or a slice.
        tpu: name or address of the TPU, for `TPUClusterResolver`; empty for the one
            that the environment names.

    Returns:
        A `tf.distribute.Strategy`. Make models in its `scope()`.

    Raises:
        ValueError: if the name is unknown, `tpu` is given with another one than
            `"tpu"`, TF_CONFIG names no workers as it should, there is no TPU to
            connect to, or Keras runs on another backend than TensorFlow.

    Example:

    >>> make_strategy("default").num_replicas_in_sync
    1
    """
    check_choice("name", name, STRATEGIES)
    if tpu and name != "tpu":
        raise ValueError(
            "`tpu` can be given with `name='tpu'` only. Received: "
            f"tpu={tpu!r:.80}, name={name!r:.80}"
        )
    check_tensorflow("`make_strategy`")
    if name != "tpu":
        _tell_of_idle_gpus()
    if name == "default":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        return _mirrored()
    if name == "multi_worker":
        _tell_of_others()
        return tf.distribute.MultiWorkerMirroredStrategy()
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
    except ValueError as error:
        raise ValueError(
            "`tpu` must be the name or address of a TPU, or be left out where the "
            f"environment names one. Received: tpu={tpu!r}; {error}"
        ) from error
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


@functools.cache
def _tell_of_idle_gpus():
    """Tells of NVIDIA GPUs that TensorFlow does not find; its own line is left out."""
    are_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    has_one = glob.glob(NVIDIA) or glob.glob(NVIDIA_IN_WSL)
    if not has_one or are_hidden or tf.config.list_physical_devices("GPU"):
        return
    say(
        "This machine has an NVIDIA GPU that TensorFlow does not find: the processor "
        "is used. pip install 'tensorflow[and-cuda]' brings CUDA's libraries."
    )


@functools.cache
def _mirrored():
    """The one strategy over the devices of this process.

    A second one over the same devices would number its collective operations from the
    start again, and TensorFlow would take them for those of the first.
    """
    devices = tf.config.list_logical_devices("GPU")
    devices = devices or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _tell_of_others():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        cluster = resolver.cluster_spec().as_dict()
        own = f"{resolver.task_type} {resolver.task_id}"
    except (TypeError, ValueError) as error:
        raise ValueError(
            'TF_CONFIG must be JSON as {"cluster": {"worker": ["HOST:PORT", '
            '"HOST:PORT"]}, "task": {"type": "worker", "index": 0}}. Received: '
            f"TF_CONFIG={os.environ.get('TF_CONFIG')!r}: {error}"
        ) from error
    workers = [w for job in ("chief", "worker") for w in cluster.get(job, ())]
    if len(workers) > 1:
        say(f"{own}: waiting until all of {', '.join(workers)} have started.")


def distribute(
    make_dataset: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Makes the input of a strategy, in whose scope it is called: each worker's part.

    With several workers, each makes the rows of its own replicas and no others.
    Otherwise there is one data set, and the strategy divides its batches.

    Args:
        make_dataset: makes a `tf.data.Dataset`; with the argument `input_context`, of
            batches for each replica of that pipeline in turn, as `Cache.batches` does.

    Raises:
        TypeError: if `make_dataset` cannot be called.

    Returns:
        What `fit` and `evaluate` of a Keras model and `RunDirectory.fit` take.

    Example:

    ```python
    import functools
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 16)
    make = functools.partial(cache.batches, tfeff.data.MaskedTokens(), batch_size=8)
    inputs, labels, weights = next(iter(tfeff.training.distribute(make)))
    ```
    """
    if not callable(make_dataset):
        raise TypeError(
            "`make_dataset` must be a function that makes a data set. "
            f"Received: make_dataset={make_dataset!r:.80}"
        )
    if not several_workers():
        return make_dataset()
    return tf.distribute.get_strategy().distribute_datasets_from_function(
        lambda context: make_dataset(input_context=context)
    )
