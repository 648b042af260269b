"""Agreement among the workers of a run, and the end of one that has lost another.

Heartbeats of TensorFlow's coordination service tell a worker that has ended from one
that is busy with a checkpoint, a validation or a compilation, however long that takes.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf

from tfeff.training.checkpoints import checkpoint_path, checkpoint_steps


class LostWorker(ConnectionError):
    """Another worker of the run has ended, or cannot be reached any more."""


@contextlib.contextmanager
def lost_workers_named() -> Iterator[None]:
    """Turns the errors of code that lost another worker into one of one sentence.

    Also a decorator. `RunDirectory.fit` has it; use it around whatever else workers do
    together: making models, and `evaluate`.

    Returns:
        The context manager.

    Raises:
        LostWorker: if another worker has ended or cannot be reached. TensorFlow
            notices within seconds.
        ValueError: if the workers' TF_CONFIG name different numbers of workers.

    Example:

    >>> with lost_workers_named():
    ...     model = keras.Sequential([keras.layers.Dense(1)])
    """
    try:
        yield
    except tf.errors.OpError as error:
        # TensorFlow's message for every collective operation that cannot end.
        found = re.search(r"ollective ops is aborted by: (.*)", error.message)
        if found is None:
            raise
        _raise_named(found[1], error.message)


def _raise_named(reason, message):
    if "joining a group with size" in reason:
        raise ValueError(
            "TF_CONFIG must name the same workers everywhere. Received: workers of "
            f"different clusters ({reason})"
        ) from None
    own = _name() if several_workers() else ""
    tasks = re.findall(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", message)
    lost = sorted({f"{job} {index}" for job, index in tasks} - {own})
    raise LostWorker(
        f"{' or '.join(lost) or 'Another worker'} has ended or cannot be reached "
        f"({reason}). See its messages; when all have ended, start all workers again: "
        "they go on from the newest checkpoint that all of them have."
    ) from None


def several_workers() -> bool:
    """Whether the strategy in whose scope this is called has several workers."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return False
    cluster = strategy.cluster_resolver.cluster_spec().as_dict()
    return sum(len(cluster.get(job, ())) for job in ("chief", "worker")) > 1


def check_equal_settings(settings: Mapping) -> None:
    """Compares settings among all workers of the strategy; alone, it does nothing.

    Call it before anything that the settings determine, such as the model.

    Args:
        settings: JSON values by name.

    Raises:
        ValueError: in every worker, if any has another value for a name. It lists
            which worker has what.

    Example:

    >>> check_equal_settings({"preset": "bert_tiny", "seed": 0})
    """
    if not several_workers():
        return
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
    everyone = _gather({**versions, **settings})
    differences = _differences(everyone)
    if differences:
        _raise_together(
            "All workers must have the same settings and data. Received: "
            + "; ".join(differences)
        )


def _differences(everyone):
    """A text for each name for which workers have different values."""
    names = sorted({name for values in everyone.values() for name in values})
    missing = "nothing"
    found = {
        name: {w: values.get(name, missing) for w, values in everyone.items()}
        for name in names
    }
    return [
        f"{name}: " + ", ".join(f"{w} has {value!r}" for w, value in values.items())
        for name, values in found.items()
        if any(value != next(iter(values.values())) for value in values.values())
    ]


def data_digest(dataset: tf.data.Dataset | None) -> str | None:
    """The digest of a data set's first batch; None where workers bring their own data.

    Workers that share a data set read all of it and keep their parts, so that the
    first batch is the same for all.
    """
    if dataset is None or isinstance(dataset, tf.distribute.DistributedDataset):
        return None
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if policy == tf.data.experimental.AutoShardPolicy.OFF:
        return None
    digest = hashlib.sha256()
    for batch in dataset.take(1):
        for part in tf.nest.flatten(batch, expand_composites=True):
            digest.update(tf.io.serialize_tensor(part).numpy())
    return digest.hexdigest()[:16]


def join_workers(run, steps: Mapping, datasets: Iterable) -> None:
    """Makes all workers begin a run together: same settings, data and checkpoint.

    Args:
        run: this worker's `RunDirectory`.
        steps: its numbers of steps by name, `steps_per_epoch` among them.
        datasets: of training and of validation; `None` where there is none.

    Raises:
        ValueError: in every worker, see `check_equal_settings` and
            `agree_on_checkpoint`.
    """
    names = ("first training batch", "first validation batch")
    data = dict(zip(names, map(data_digest, datasets)))
    check_equal_settings({**run.config, **steps, **data})
    agree_on_checkpoint(run.path("checkpoints"), steps["steps_per_epoch"])


def agree_on_checkpoint(directory: str, steps_per_epoch: int) -> None:
    """Leaves the newest checkpoint that all workers have as the newest one of each.

    Newer ones are deleted, and a line on standard error says so. Alone, a worker does
    nothing.

    Args:
        directory: `checkpoints/` of this worker's run.
        steps_per_epoch: integer, the step of the run's first checkpoint.

    Raises:
        ValueError: in every worker, if any has a damaged checkpoint, or if no
            checkpoint is common to all although the run was beyond its first one.
    """
    if not several_workers():
        return
    everyone = {
        worker: {int(step): content for step, content in found.items()}
        for worker, found in _gather(_checkpoints(directory)).items()
    }
    try:
        agreed = agreed_step(everyone, steps_per_epoch)
    except ValueError as error:
        _raise_together(str(error))
    newer = [step for step in everyone[_name()] if step > agreed]
    if newer:
        print(
            f"{_name()}: going on from step {agreed}, the newest that all workers "
            f"have. Steps from there to {max(newer)} are computed again.",
            file=sys.stderr,
        )
    for step in newer:
        os.remove(checkpoint_path(directory, step))


def agreed_step(
    everyone: Mapping[str, Mapping[int, int | None]], steps_per_epoch: int
) -> int:
    """The newest step whose checkpoint all workers have, the same in all.

    It is 0 if there is none, and none can have been lost: a worker saves its second
    checkpoint only when all have their first, for a step needs all workers.

    Args:
        everyone: for each worker a checksum for each step; None for a damaged file.
        steps_per_epoch: integer, the step of the run's first checkpoint.

    Raises:
        ValueError: if a checkpoint is damaged, or one that all had is lost.

    Example:

    >>> agreed_step({"worker 0": {2: 111, 4: 222}, "worker 1": {2: 111}}, 2)
    2
    """
    damaged = [
        f"step {step} of {worker}"
        for worker, found in everyone.items()
        for step, content in found.items()
        if content is None
    ]
    if damaged:
        raise ValueError(
            f"Checkpoints are truncated or corrupted: {', '.join(damaged)}. Delete "
            "them there, and start all workers again to go on from the ones before."
        )
    common = set.intersection(*(set(found.items()) for found in everyone.values()))
    if common:
        return max(step for step, _ in common)
    newest = max((step for found in everyone.values() for step in found), default=0)
    if newest <= steps_per_epoch and not all(everyone.values()):
        return 0
    raise ValueError(
        "The workers have no checkpoint in common. Received: "
        + ", ".join(
            f"{worker} has {'steps ' + ', '.join(map(str, found)) if found else 'none'}"
            for worker, found in ((w, sorted(f)) for w, f in everyone.items())
        )
        + ". Copy `checkpoints/` of one worker's run directory into those of the "
        "others, in place of theirs, and start all again; or start a new run."
    )


def _checkpoints(directory):
    """For each step a checksum of weights and optimizer; None for a damaged file."""
    found = {}
    for step in checkpoint_steps(directory):
        found[step] = None
        with (
            contextlib.suppress(Exception),  # zipfile has many for damaged files.
            zipfile.ZipFile(checkpoint_path(directory, step)) as archive,
        ):
            if archive.testzip() is None:
                found[step] = archive.getinfo("model.weights.h5").CRC
    return found


def _name():
    resolver = tf.distribute.get_strategy().cluster_resolver
    return f"{resolver.task_type} {resolver.task_id}"


def _gather(value):
    """The JSON value that each worker gives, by the worker's name."""
    strategy = tf.distribute.get_strategy()
    line = json.dumps({_name(): value}) + "\n"
    codes = tf.constant(np.frombuffer(line.encode(), np.uint8), tf.int32)
    local = strategy.experimental_distribute_values_from_function(lambda _: codes)
    text = bytes(strategy.gather(local, axis=0).numpy().astype(np.uint8)).decode()
    everyone = {}
    for line in text.splitlines():  # One for each replica.
        everyone |= json.loads(line)
    return dict(sorted(everyone.items()))


def _raise_together(message):
    """Raises a ValueError that all workers raise.

    A worker that ended at once could take along what another has not received yet.
    """
    with contextlib.suppress(tf.errors.OpError):
        _gather(None)
    raise ValueError(message)
