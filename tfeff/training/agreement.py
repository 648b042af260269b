"""Agreement among the workers of a run: on settings, data, folder and checkpoint."""

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import keras
import tensorflow as tf

import tfeff
from tfeff.training.checkpoint_folder import checkpoint_path, latest_checkpoint
from tfeff.training.workers import (
    chief_name,
    from_chief,
    gather,
    is_chief,
    several_workers,
)
from tfeff.utils.checks import check_json
from tfeff.utils.reading import is_unreadable
from tfeff.utils.run_files import CHECKPOINTS

T = TypeVar("T")


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
    path, lock, _ = everyone[chief_name()]
    others = [
        f"{worker} does not see there that {chief_name()} has opened {path} (it was "
        f"given {own}){why}"
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
            f"All workers must be able to read what {chief_name()}, the chief, has "
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
    directory = run.path(CHECKPOINTS)
    if not several_workers():
        return latest_checkpoint(directory)
    # Others may see an old list of files: network file systems keep them for a while.
    of_chief, step = from_chief(lambda: latest_checkpoint(directory))
    if not step:
        return None, 0
    path = checkpoint_path(directory, step)
    run.share(os.path.relpath(path, run.directory))
    message = _disagreement(of_chief, gather(_checksum(path)), chief_name())
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
