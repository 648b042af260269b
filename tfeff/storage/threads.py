"""Files that are moved at the same time, as storages answer late."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 8

T = TypeVar("T")


def in_threads(function: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Calls a function with each item; raises the error of the first that fails.

    All others are called before that, so that another attempt has the failed ones
    alone. At Ctrl-C what has not begun is left out.

    When a process ends Python starts no threads any more. What is called then, to
    publish what a process leaves, comes one after the other.
    """
    if threads == 1 or not threading.main_thread().is_alive():
        for item in items:
            function(item)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        calls = [pool.submit(function, item) for item in items]
        errors = [call.exception() for call in calls]
    finally:
        pool.shutdown(cancel_futures=True)
    for error in filter(None, errors):
        raise error
