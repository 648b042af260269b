"""The ordered map: order and errors; processes whose parent is killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tfeff.utils.parallel import ordered_thread_map

REPOSITORY = Path(__file__).resolve().parents[2]
ENDLESS = """
import concurrent.futures
import multiprocessing
import time
from tfeff.utils.parallel import end_with_parent
spawn = multiprocessing.get_context("spawn")
pool = concurrent.futures.ProcessPoolExecutor(2, spawn, end_with_parent)
endless = pool.submit(time.sleep, 10**6)
pool.submit(time.sleep, 0).result()
for child in multiprocessing.active_children():
    print(child.pid, flush=True)
endless.result()
"""


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_results_come_in_order(num_threads):
    items = (-i for i in range(20))
    assert list(ordered_thread_map(abs, items, num_threads)) == list(range(20))


@pytest.mark.parametrize("items", [[], [-4]])
def test_few_items(items):
    assert list(ordered_thread_map(abs, items, 2)) == [abs(item) for item in items]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_error_of_the_function_arrives(num_threads):
    results = ordered_thread_map(int, ["1", "2", "three", "4"], num_threads)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_an_error_of_the_items_arrives():
    def items():
        yield from range(3)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(ordered_thread_map(abs, items(), 2))


def test_threads_run_at_the_same_time_and_read_few_items_ahead():
    both, taken = threading.Barrier(2), []

    def items():
        for item in range(20):
            taken.append(item)
            yield item

    def meet(item):
        both.wait()
        return item

    for result in ordered_thread_map(meet, items(), 2):
        assert len(taken) <= result + 5


def test_no_thread_runs_after_an_error():
    slow, ended = threading.Event(), []

    def work(item):
        if item == 0:
            raise ValueError("first")
        slow.wait(0.1)
        ended.append(item)

    with pytest.raises(ValueError, match="first"):
        list(ordered_thread_map(work, range(9), 2))
    count = len(ended)
    slow.wait(0.3)
    assert len(ended) == count


def test_processes_end_with_a_parent_that_is_killed():
    """One is at work then, the other one waits for work."""
    parent = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    with parent:
        children = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(runs, children))
        parent.kill()
    try:
        # They end at once; those that do not, never would.
        for _ in range(60_000):
            if not any(map(runs, children)):
                break
            time.sleep(0.01)
        assert not any(map(runs, children))
    finally:
        for pid in filter(runs, children):
            os.kill(pid, signal.SIGKILL)


def runs(pid):
    """Whether there is such a process, which has not ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("num_threads", [0, -1])
def test_too_few_threads(num_threads):
    with pytest.raises(ValueError, match="`num_threads`"):
        ordered_thread_map(abs, [1], num_threads)
