"""Agreement among the workers of a run, and the end of one that has lost another.

Heartbeats of TensorFlow's coordination service tell a worker that has ended from one
that is busy with a checkpoint, a validation or a compilation, however long that takes.
"""

import contextlib
import hashlib
import itertools
import json
import logging
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import keras
import numpy as np
import tensorflow as tf

import tfeff
from tfeff.training.checkpoint_folder import checkpoint_path, latest_checkpoint
from tfeff.training.coordination import coordination_service
from tfeff.utils.checks import check_json
from tfeff.utils.loggers import quieter
from tfeff.utils.reading import is_unreadable

T = TypeVar("T")

_BARRIER_MS = 20_000  # All workers that are not lost arrive at once.
_gathered = itertools.count()  # Workers gather the same values in the same order.


# TensorFlow's messages: of a collective operation that cannot end, and of a request to
# another worker, such as to the coordination service, which is in the first.
_LOST = (
    r"ollective ops is aborted by: (.*)",
    r"(.*)\nAdditional GRPC error information from remote target /job:",
)


class LostWorker(ConnectionError):
    """Another worker of the run has ended, or cannot be reached any more.

    Example: see `lost_workers_named`.
    """


@contextlib.contextmanager
def lost_workers_named() -> Iterator[None]:
    """Turns TensorFlow's errors about a lost worker into one that names it.

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
        for pattern in _LOST:
            if found := re.search(pattern, error.message):
                _raise_named(found[1], error.message)
        raise


def _raise_named(reason, message):
    if "joining a group with size" in reason:
        raise ValueError(
            "TF_CONFIG must name the same workers everywhere. Received: workers of "
            f"different clusters ({reason})"
        ) from None
    own = worker_name() if several_workers() else ""
    tasks = re.findall(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", message)
    lost = sorted({f"{job} {index}" for job, index in tasks} - {own})
    raise LostWorker(
        f"{' or '.join(lost) or 'Another worker'} has ended or cannot be reached "
        f"({reason}). See its messages; when all have ended, start all workers again: "
        "they go on from the newest checkpoint."
    ) from None


def several_workers() -> bool:
    """Whether the strategy in whose scope this is called has several workers."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return False
    return len(worker_names()) > 1


def is_chief() -> bool:
    """Whether this worker writes the files that all share; a worker alone does.

    The chief is the one that TF_CONFIG calls so, or else the first worker.
    """
    return not several_workers() or worker_name() == _chief()


def worker_name() -> str:
    """The name of this worker of several, such as `"worker 1"`."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    return f"{resolver.task_type} {resolver.task_id}"


def worker_names() -> list[str]:
    """The names of all workers, in the order of `gather`."""
    cluster = tf.distribute.get_strategy().cluster_resolver.cluster_spec()
    return sorted(
        f"{job} {index}"
        for job in ("chief", "worker")
        if job in cluster.jobs
        for index in range(cluster.num_tasks(job))
    )


def check_equal_settings(settings: Mapping) -> None:
    """Compares settings among all workers of the strategy; alone, it does nothing.

    Call it before anything that the settings determine, such as the model.

    Args:
        settings: JSON values by name.

    Raises:
        TypeError: if a value is none of JSON's.
        ValueError: in every worker, if any has another value for a name. It lists
            which worker has what.

    Example:

    >>> check_equal_settings({"preset": "bert_tiny", "seed": 0})
    """
    check_json("settings", settings)
    if not several_workers():
        return
    versions = {m.__name__: m.__version__ for m in (tfeff, tf, keras)}
    everyone = gather({**versions, **settings})
    differences = _differences(everyone)
    if differences:
        raise ValueError(
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


def from_chief(make: Callable[[], Any]) -> Any:
    """The JSON value that `make()` returns in the chief, in all workers.

    The others wait for it, however long it takes. Alone, a worker is the chief.

    Args:
        make: called in the chief alone.

    Raises:
        ValueError: in the other workers, with the message of the chief's error.
    """
    if not several_workers():
        return make()
    value, error = None, None
    if is_chief():
        try:
            value = make()
        except Exception as raised:
            error = raised
    return tell(value, error)


def tell(value: Any, error: Exception | None) -> Any:
    """Returns the chief's JSON value in all workers, or raises its error in all."""
    told = gather({"value": value, "error": error and str(error)})[_chief()]
    if error is not None:
        raise error
    if told["error"] is not None:
        raise ValueError(f"{_chief()}, the chief, has ended: {told['error']}")
    return told["value"]


def open_together(
    directory: str, open_it: Callable[[], T], seen: Callable[[T], str | None]
) -> None:
    """Opens a folder in the chief, and makes sure that all workers see that folder.

    Args:
        directory: the folder, as this worker has been told it.
        open_it: called in the chief alone; it locks the folder. What it returns, a JSON
            value, is told to all.
        seen: called in each worker with that value: the text of the lock as it sees it;
            `None` where it sees none.

    Raises:
        ValueError: in every worker, if the chief cannot open it, or one does not see
            the lock of the chief.
    """
    told = from_chief(open_it)
    lock, why = None, ""
    try:
        lock = seen(told)
    except Exception as error:
        why = f": {error}"
    everyone = gather([directory, lock, why])
    path, lock, _ = everyone[_chief()]
    others = [
        f"{worker} does not see there that {_chief()} has opened {path} (it was given "
        f"{own}){why}"
        for worker, (own, seen_lock, why) in everyone.items()
        if lock is None or seen_lock != lock
    ]
    if others:
        raise ValueError(
            "`directory` must be one folder that all workers see, such as one on a "
            f"network file system or in a bucket. Received: {'; '.join(others)}. A run "
            "whose workers had a directory each goes on in that of the chief: give it "
            "to all."
        )


def share(
    url: str,
    publish: Callable[[], contextlib.AbstractContextManager[T]],
    fetch: Callable[[T], None],
) -> None:
    """Publishes a run in the chief, and fetches what it has published in the others.

    Args:
        url: where the run is, for errors.
        publish: called in the chief alone: it publishes, and then nothing more within
            the block. Its value, a JSON value, is told to all.
        fetch: called in the others with that value.

    Raises:
        ValueError: in every worker, if the chief cannot publish, or another one cannot
            fetch it. It names all that cannot.
    """
    with contextlib.ExitStack() as stack:
        told = from_chief(lambda: stack.enter_context(publish()))
        error = None
        if not is_chief():
            try:
                fetch(told)
            except Exception as raised:
                error = str(raised) or type(raised).__name__
        everyone = gather(error)
    failed = [f"{worker} cannot: {text}" for worker, text in everyone.items() if text]
    if failed:
        raise ValueError(
            f"All workers must be able to read what {_chief()}, the chief, has "
            f"published in {url}. Received: {'; '.join(failed)}"
        )


def join_workers(run, steps: Mapping, datasets: Iterable) -> tuple[str | None, int]:
    """Makes all workers begin a run together: same settings, data and checkpoint.

    Args:
        run: the `RunDirectory`.
        steps: its numbers of steps by name.
        datasets: of training and of validation; `None` where there is none.

    Returns:
        The newest checkpoint, see `agree_on_checkpoint`.

    Raises:
        ValueError: in every worker, see `check_equal_settings` and
            `agree_on_checkpoint`.
    """
    names = ("first training batch", "first validation batch")
    data = dict(zip(names, map(data_digest, datasets)))
    check_equal_settings({**run.config, **steps, **data})
    return agree_on_checkpoint(run)


def agree_on_checkpoint(run) -> tuple[str | None, int]:
    """The chief's newest checkpoint and its step, which all workers see alike.

    Args:
        run: the `RunDirectory`.

    Returns:
        The file's path and its step; `(None, 0)` where there is none.

    Raises:
        ValueError: in every worker, if it is damaged, or one does not see it as the
            chief does.
    """
    directory = run.path("checkpoints")
    if not several_workers():
        return latest_checkpoint(directory)
    # Others may see an old list of files: network file systems keep them for a while.
    of_chief, step = from_chief(lambda: latest_checkpoint(directory))
    if not step:
        return None, 0
    path = checkpoint_path(directory, step)
    run.share(os.path.relpath(path, run.directory))
    message = _disagreement(of_chief, gather(_checksum(path)), _chief())
    if message:
        raise ValueError(message)
    return path, step


def _disagreement(path, everyone, chief):
    """The error's text if workers do not see a checkpoint alike; `None` if they do."""
    if isinstance(everyone[chief], str):
        return f"{chief}, the chief, cannot read {path}: {everyone[chief]}"
    if everyone[chief] is None:
        return (
            f"The checkpoint {path} is truncated or corrupted. Delete it, and start "
            "all workers again to go on from the one before it."
        )
    others = [w for w, content in everyone.items() if content != everyone[chief]]
    if not others:
        return None
    return (
        f"All workers must see the checkpoint {path} as {chief}, the chief, does. "
        f"Received: {', '.join(others)} cannot read it, or another one. Start all "
        "workers again when the file system shows the same files to all."
    )


def _checksum(path):
    """A checksum of the files in a checkpoint; None if it is damaged or missing.

    A string, what the system says, where it refuses to read it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is None:
                return [[member.filename, member.CRC] for member in archive.infolist()]
    except Exception as error:  # zipfile has many for damaged files.
        if is_unreadable(error):
            return str(error.strerror)
    return None


def _chief():
    """The name of the worker that writes."""
    cluster = tf.distribute.get_strategy().cluster_resolver.cluster_spec()
    return "chief 0" if "chief" in cluster.jobs else "worker 0"


def gather(value: Any) -> dict[str, Any]:
    """The JSON value that each worker gives, by the worker's name, in all workers.

    No worker returns before all have received the values: one that ended at once, or
    raised an error, could exit before its message reaches the others.
    """
    strategy = tf.distribute.get_strategy()
    line = json.dumps({worker_name(): value}) + "\n"
    codes = tf.constant(np.frombuffer(line.encode(), np.uint8), tf.int32)
    local = strategy.experimental_distribute_values_from_function(lambda _: codes)
    # It warns that each call makes a function anew.
    with quieter("tensorflow", logging.ERROR):
        gathered = strategy.gather(local, axis=0).numpy()
    # It fails where others have already gone on, or where one is lost, which shows
    # later.
    with contextlib.suppress(tf.errors.OpError):
        barrier = f"tfeff/gathered/{next(_gathered)}"
        coordination_service().wait_at_barrier(barrier, _BARRIER_MS)
    text = bytes(gathered.astype(np.uint8)).decode()
    everyone: dict[str, Any] = {}
    for line in text.splitlines():  # One for each replica.
        everyone |= json.loads(line)
    return dict(sorted(everyone.items()))
