"""A process that does one cell, and what it leaves for the campaign."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import environment
import machine

from evidence.cells import Cell
from evidence.places import Places
from tfeff.utils.files import atomic_file

SCRIPT = Path(__file__).resolve().parents[1] / "campaign.py"
# One thread a process: sums come in one order, and metrics are the same every time.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",
}


class Process:
    """A process that does a cell.

    Args:
        cell: the cell.
        places: of the campaign.
        folder: of its run.
        core: where it runs; `None` for anywhere.
    """

    def __init__(self, cell: Cell, places: Places, folder: str, core: int | None):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        command = [sys.executable, str(SCRIPT), f"--one={cell.name}"]
        command += [*places.arguments(), f"--folder={folder}"]
        command += [] if core is None else [f"--core={core}"]
        self.cell, self.folder = cell, folder
        with open(f"{folder}.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    **environment.VARIABLES,
                    **ONE_THREAD,
                    "PYTHONPATH": str(SCRIPT.parents[1]),
                },
                # A priority of its own, where the system schedules sessions.
                start_new_session=True,
            )

    def outcome(self) -> dict | None:
        """Its results, at its end; `None` if it failed or was stopped."""
        self.process.wait()
        return read_outcome(self.folder)


def do_one(cell: Cell, places: Places, folder: str, core: int | None) -> None:
    """Does a cell in this process; `FOLDER.json` has the outcome.

    Args: as those of the `Process`.
    """
    from evidence import work

    # A process of a campaign that was killed may still be saving its checkpoint.
    lock = open(f"{folder}.lock", "w", encoding="utf-8")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    if read_outcome(folder) is not None:
        return
    watch_parent(f"{folder}.seconds")
    yield_to_others(core)
    commit = machine.commit()  # Of the code as this process has read it.
    outcome = work.perform(cell, places.context(), folder) | {"commit": commit}
    with atomic_file(f"{folder}.json") as new:
        Path(new).write_text(json.dumps(outcome), encoding="utf-8")


def yield_to_others(core: int | None) -> None:
    """Gives this process the lowest priority, and one core."""
    with contextlib.suppress(OSError):  # Of this process's own session.
        Path("/proc/self/autogroup").write_text("19", encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(19)
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [core])


def watch_parent(path: str) -> None:
    """Ends this process soon after its parent, and counts its seconds over all starts.

    They are the processor's: others may use it in between. A recipe that is told to end
    saves a checkpoint first.
    """
    parent, before = os.getppid(), read_number(path)

    def watch():
        while os.getppid() == parent:
            seconds = before + sum(os.times()[:4])  # Those of its children, too.
            Path(path).write_text(f"{seconds:.0f}", encoding="ascii")
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(300)  # A recipe ends by itself.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def read_outcome(folder: str) -> dict | None:
    """The results of a cell's process, if it came to its end."""
    path = Path(f"{folder}.json")
    if not path.exists():
        return None
    return json.loads(path.read_text(encoding="utf-8"))


def read_seconds(folder: str) -> float:
    """The processor time of a cell's process in seconds, over all its starts."""
    return read_number(f"{folder}.seconds")


def read_number(path: str) -> float:
    """The number that a file holds; 0 if there is none."""
    try:
        return float(Path(path).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0.0
