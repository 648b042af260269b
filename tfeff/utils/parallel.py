"""Ordered maps over threads and over processes."""

import collections
import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
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
    pool = ThreadPoolExecutor(num_threads)
    return _in_order(pool, lambda item: pool.submit(function, item), items, num_threads)


def ordered_map(
    function: Callable[[T], R], items: Iterable[T], num_processes: int | None = None
) -> Generator[R, None, None]:
    """Yields `function(item)` for each item, in order, computed by processes.

    At most two items per process are in progress, which bounds the memory of items and
    results. New processes are spawned, not forked: forking a process in which
    TensorFlow's threads run can hang. With `num_processes=1`, or a single item,
    everything runs in this process.

    Args:
        function: a function of an importable module.
        items: any iterable.
        num_processes: integer of at least 1; by default one process per core.

    Raises:
        RuntimeError: if a process ends abruptly, for example without memory.
        Exception: any error of `function` or `items`; all processes have ended by then.
    """
    if num_processes is None:
        num_processes = available_cores()
    num_processes = check_integer("num_processes", num_processes, 1)
    items = iter(items)
    first = list(itertools.islice(items, 2))
    items = itertools.chain(first, items)
    if num_processes == 1 or len(first) < 2:
        return (function(item) for item in items)
    return _in_processes(function, items, num_processes)


def _in_processes(
    function: Callable[[T], R], items: Iterable[T], num_processes: int
) -> Generator[R, None, None]:
    pool = ProcessPoolExecutor(
        num_processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_process,
    )

    def submit(item: T) -> Future:
        with _hidden_main():
            return pool.submit(function, item)

    try:
        yield from _in_order(pool, submit, items, num_processes)
    except BrokenProcessPool as error:
        raise RuntimeError(
            "A worker process ended abruptly; perhaps it was killed, or memory ran "
            "out. Fewer processes (`num_processes`) need less memory."
        ) from error


def _in_order(
    pool: Executor, submit: Callable[[T], Future], items: Iterable[T], num_workers: int
) -> Generator:
    """Yields the results of the submitted items in order, then shuts the pool down."""
    pending: collections.deque[Future] = collections.deque()
    try:
        for item in items:
            if len(pending) == 2 * num_workers:
                yield pending.popleft().result()
            pending.append(submit(item))
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_process() -> None:
    # Ctrl-C reaches every process, and the parent alone handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


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


@contextlib.contextmanager
def _hidden_main() -> Iterator[None]:
    """Lets processes start without running the user's script again.

    A spawned process first runs the main script as a module, which fails for a
    script without a guard, from standard input, or in an interactive session. The
    mapped functions are in importable modules and do not need it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
