"""Which worker of a run this is, and what workers tell each other."""

import contextlib
import itertools
import json
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfeff.training.coordination import coordination_service
from tfeff.utils.loggers import quieter

_BARRIER_MS = 20_000  # All workers that are not lost arrive at once.
_gathered = itertools.count()  # Workers gather the same values in the same order.


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
    return not several_workers() or worker_name() == chief_name()


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
    told = gather({"value": value, "error": error and str(error)})[chief_name()]
    if error is not None:
        raise error
    if told["error"] is not None:
        raise ValueError(f"{chief_name()}, the chief, has ended: {told['error']}")
    return told["value"]


def chief_name() -> str:
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
