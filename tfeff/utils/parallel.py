"""An ordered map over threads, and processes that end with their parents."""

import collections
import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tfeff.utils.checks import check_integer

T = TypeVar("T")
R = TypeVar("R")


def available_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_thread_map(
    function: Callable[[T], R], items: Iterable[T], num_threads: int | None = None
) -> Generator[R, None, None]:
    """Yields `function(item)` for each item, in order, computed by threads.

    At most two items per thread are in progress, which bounds the memory of items and
    results. Threads run in parallel while `function` runs library code that releases
    Python's global lock. With `num_threads=1`, everything runs in this thread.

    Args:
        function: any thread-safe function.
        items: any iterable; it is read in this thread.
        num_threads: integer of at least 1; by default one thread per core.

    Raises:
        Exception: any error of `function` or `items`; all threads have ended by then.
    """
    if num_threads is None:
        num_threads = available_cores()
    num_threads = check_integer("num_threads", num_threads, 1)
    if num_threads == 1:
        return (function(item) for item in items)
    return _in_threads(function, items, num_threads)


def _in_threads(
    function: Callable[[T], R], items: Iterable[T], num_threads: int
) -> Generator[R, None, None]:
    pending: collections.deque[Future[R]] = collections.deque()
    pool = ThreadPoolExecutor(num_threads)
    try:
        for item in items:
            if len(pending) == 2 * num_threads:
                yield pending.popleft().result()
            pending.append(pool.submit(function, item))
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Makes this process, if it was spawned, end when its parent ends.

    Otherwise, a process of a pool would wait for ever after its parent was killed.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # The main process has none.
        return
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()


def _end_with(process):
    process.join()
    os._exit(1)
