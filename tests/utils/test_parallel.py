"""The ordered maps: order, errors, lost processes, scripts without a guard."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tfeff.utils.parallel import ordered_map, ordered_thread_map

REPOSITORY = Path(__file__).resolve().parents[2]
ENDLESS = """
import multiprocessing
import time
from tfeff.utils.parallel import ordered_map
results = ordered_map(time.sleep, [0, 0, 10**6], 2)
next(results), next(results)
for child in multiprocessing.active_children():
    print(child.pid, flush=True)
next(results)
"""
SCRIPT = """
from tfeff.utils.parallel import ordered_map
print(sum(ordered_map(abs, range(-9, 1), 2)))
"""


either = pytest.mark.parametrize("each", [ordered_map, ordered_thread_map])


@either
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_results_come_in_order(each, num_workers):
    items = (-i for i in range(20))
    assert list(each(abs, items, num_workers)) == list(range(20))


@either
@pytest.mark.parametrize("items", [[], [-4]])
def test_few_items(each, items):
    assert list(each(abs, items, 2)) == [abs(item) for item in items]


@either
@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_error_of_the_function_arrives(each, num_workers):
    results = each(int, ["1", "2", "three", "4"], num_workers)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


@either
def test_an_error_of_the_items_arrives(each):
    def items():
        yield from range(3)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(each(abs, items(), 2))


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


def test_a_lost_process_is_an_error():
    with pytest.raises(RuntimeError, match="worker process ended abruptly"):
        list(ordered_map(os._exit, [1, 1, 1], 2))


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


@either
@pytest.mark.parametrize("num_workers", [0, -1])
def test_too_few_workers(each, num_workers):
    with pytest.raises(ValueError, match="`num_(processes|threads)`"):
        each(abs, [1], num_workers)


@pytest.mark.parametrize("way", ["file", "-c", "-"])
def test_scripts_without_a_guard(way, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = {
        "file": [str(tmp_path / "script.py")],
        "-c": ["-c", SCRIPT],
        "-": ["-"],
    }[way]
    done = subprocess.run(
        [sys.executable, *command],
        input=SCRIPT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert (done.stdout, done.stderr) == ("45\n", "")
