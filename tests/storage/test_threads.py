import signal
import threading
import time

import pytest

from tfeff.storage.threads import THREADS, in_threads


def test_a_failure_keeps_no_other_file():
    """Another attempt has the failed ones alone."""
    moved = []

    def move(item):
        if item % 10 == 3:
            raise OSError(f"{item} is away")
        moved.append(item)

    with pytest.raises(OSError, match="^3 is away"):
        in_threads(move, range(50), THREADS)
    assert sorted(moved) == [item for item in range(50) if item % 10 != 3]


def test_after_ctrl_c_nothing_begins():
    begun, first = [], threading.Lock()

    def move(item):
        begun.append(item)
        if first.acquire(blocking=False):
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        in_threads(move, range(400), THREADS)
    assert len(begun) < 200
