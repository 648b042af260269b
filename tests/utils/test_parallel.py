"""The ordered map: order, errors, lost processes, scripts without a guard."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfeff.utils.parallel import ordered_map

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


@pytest.mark.parametrize("num_processes", [1, 2, 3])
def test_results_come_in_order(num_processes):
    items = (-i for i in range(20))
    assert list(ordered_map(abs, items, num_processes)) == list(range(20))


@pytest.mark.parametrize("items", [[], [-4]])
def test_few_items(items):
    assert list(ordered_map(abs, items, 2)) == [abs(item) for item in items]


@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_error_of_the_function_arrives(num_processes):
    results = ordered_map(int, ["1", "2", "three", "4"], num_processes)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_an_error_of_the_items_arrives():
    def items():
        yield from range(3)
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(ordered_map(abs, items(), 2))


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


@pytest.mark.parametrize("num_processes", [0, -1])
def test_too_few_processes(num_processes):
    with pytest.raises(ValueError, match="`num_processes`"):
        ordered_map(abs, [1], num_processes)


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
