import threading
import time

import pytest

from tfeff.storage.threads import THREADS, in_threads


def test_after_a_failure_nothing_begins():
    """The rest of a folder is not moved before the error is told."""
    begun, failed = [], threading.Event()

    def move(item):
        begun.append(item)
        if item == THREADS - 1:  # Not the first that was given.
            failed.set()
            raise OSError("away")
        failed.wait()
        time.sleep(0.02)

    with pytest.raises(OSError, match="away"):
        in_threads(move, range(400))
    assert len(begun) < 200
