"""Errors of TensorFlow about a worker that was lost, turned into one that names it.

Heartbeats of TensorFlow's coordination service tell a worker that has ended from one
that is busy with a checkpoint, a validation or a compilation, however long that takes.
"""

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from tfeff.training.workers import several_workers, worker_name

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
