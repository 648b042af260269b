"""The order in which a campaign's cells are run, several at a time."""

import functools
import os
import signal
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path

from evidence.cells import Cell, with_needs
from evidence.claims import CLOSE
from evidence.places import Places, lost_folders
from evidence.processes import Process, read_outcome, read_seconds
from evidence.recording import record, summary


class Campaign:
    """Runs cells as soon as those that they need are there.

    Args:
        wanted: the cells to run, in this order.
        cells: all cells by name.
        places: where everything is.
    """

    def __init__(self, wanted: list[Cell], cells: dict[str, Cell], places: Places):
        self.wanted, self.cells, self.places = wanted, cells, places
        self.ledger = places.ledger
        self.needed = {need for cell in cells.values() for need in cell.needs}
        self.lock = threading.Condition()
        self.running: dict[str, Process] = {}
        # By the cell that a slot has taken: it, and what is run again for its folder.
        self.taken: dict[str, set[str]] = {}
        self.failed: set[str] = set()
        # Cells that nothing can begin with here, see `unlike_rows`.
        self.left: set[str] = set()
        self.is_over = False

    def run(self, count: int, budget_hours: float | None) -> None:
        """Runs all that can be run, until the budget is spent or a signal comes.

        Args:
            count: cells at a time, a core each.
            budget_hours: after which no cell is begun, and what runs is stopped.
        """
        stop = functools.partial(self.stop, "stopped")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop())
        timer = None
        if budget_hours is not None:
            timer = threading.Timer(
                3600 * budget_hours, self.stop, ["the budget is spent"]
            )
            timer.daemon = True
            timer.start()
        # What is timed has the machine to itself.
        timed = [cell for cell in self.wanted if cell.recipe == "timing"]
        others = [cell for cell in self.wanted if cell.recipe != "timing"]
        cores = sorted(os.sched_getaffinity(0))
        for cells, at_a_time in ((timed, 1), (others, count)):
            slots = [
                threading.Thread(target=self.work, args=[cells, cores[i % len(cores)]])
                for i in range(at_a_time)
            ]
            for slot in slots:
                slot.start()
            for slot in slots:
                slot.join()
        if timer:
            timer.cancel()
        rows = self.ledger.rows()
        left = [cell.name for cell in self.wanted if cell.name not in rows]
        missing = {
            need
            for cell in self.wanted
            if cell.name in left
            for need in cell.needs
            if need not in rows and need not in left
        }
        say(f"{len(self.wanted) - len(left)} of {len(self.wanted)} cells are done")
        if self.failed:
            logs = ", ".join(
                f"{self.places.run(name)}.log" for name in sorted(self.failed)
            )
            raise SystemExit(f"cells failed; see {logs}")
        if self.left:
            raise SystemExit(f"cells are left: {', '.join(sorted(self.left))}")
        if missing and not self.is_over:
            raise SystemExit(
                f"cells are left, which need others first: {', '.join(sorted(missing))}"
            )

    def stop(self, why: str) -> None:
        """Begins no more cells, and lets those that run save a checkpoint and end."""
        say(why)
        # No lock: a signal may come to the thread that holds it.
        self.is_over = True
        for process in list(self.running.values()):
            process.process.terminate()

    def work(self, cells: list[Cell], core: int) -> None:
        """Does one cell after the other on a core."""
        while cell := self.take(cells):
            found = False
            try:
                found = self.do(cell, core)
            except Exception:
                say(traceback.format_exc())
            finally:
                with self.lock:
                    del self.taken[cell.name]
                    if not (found or self.is_over or cell.name in self.left):
                        self.failed.add(cell.name)
                        say(f"{cell.name} failed: {self.places.run(cell.name)}.log")
                    self.lock.notify_all()

    def take(self, cells: list[Cell]) -> Cell | None:
        """The first cell that can be run; waits for one if others are running."""
        with self.lock:
            while not self.is_over:
                rows = self.ledger.rows()
                taken = {name for names in self.taken.values() for name in names}
                left = [
                    cell
                    for cell in cells
                    if cell.name not in rows
                    and cell.name not in taken
                    and cell.name not in self.failed | self.left
                ]
                for cell in left:
                    if all(need in rows for need in cell.needs):
                        names = {cell.name, *self.lost(cell)}
                        if taken.isdisjoint(names):
                            self.taken[cell.name] = names
                            return cell
                if not left or not self.taken:
                    return None
                self.lock.wait(timeout=1)
        return None

    def do(self, cell: Cell, core: int) -> bool:
        """Runs a cell to its row; False if it did not come to its end."""
        for name in self.lost(cell):
            say(f"{name}: again, for its folder")
            if not self.do_again(self.cells[name], core):
                return False
        if unlike := unlike_rows(cell, self.cells, self.places):
            say(
                f"{cell.name} is left: what it begins with was made again here, and is "
                f"not what its row says: {'; '.join(unlike)}"
            )
            self.left.add(cell.name)
            return False
        say(f"{cell.name}: begins")
        outcome = self.perform(cell, self.places.run(cell.name), core)
        if outcome is None:
            return False
        with self.lock:
            record(cell, outcome, self.places)
        seconds = read_seconds(self.places.run(cell.name))
        say(f"{cell.name}: {summary(outcome)}, {seconds:.0f} s")
        return True

    def do_again(self, cell: Cell, core: int) -> bool:
        """Runs a cell that has a row for its folder; False if that failed."""
        Path(f"{self.places.run(cell.name)}.json").unlink(missing_ok=True)
        return self.perform(cell, self.places.run(cell.name), core) is not None

    def perform(self, cell: Cell, folder: str, core: int) -> dict | None:
        """The outcome of a cell's process, or of one that ended before its row."""
        if (found := read_outcome(folder)) is not None:
            return found
        process = Process(cell, self.places, folder, core)
        self.running[cell.name] = process
        if self.is_over:  # It came in between.
            process.process.terminate()
        found = process.outcome()
        del self.running[cell.name]
        if found is not None:
            from evidence import work

            work.clean(folder, cell.name in self.needed)
        return found

    def lost(self, cell: Cell) -> list[str]:
        """The needs of a cell whose folders are gone, each after its own."""
        return lost_folders(cell, self.cells, self.places)


def unlike_rows(cell: Cell, cells: Mapping[str, Cell], places: Places) -> list[str]:
    """What of a cell's needs is not what their rows say, by words; nothing if all is.

    What is made again on another processor is another run, as of another seed. Where a
    training is unstable it may end elsewhere, and what begins with it would be no cell
    of the recorded model. Losses and scores are compared to `CLOSE`.

    Args:
        cell: the cell.
        cells: all cells by name.
        places: where everything is.
    """
    rows = places.ledger.rows()
    found = []
    for need in sorted(with_needs(cell.needs, cells)):
        outcome = read_outcome(places.run(need))
        recorded = rows[need]["metrics"] if need in rows else {}
        for name in ("loss", "score"):
            if outcome is None or name not in recorded:
                continue
            value = outcome["metrics"].get(name, recorded[name])
            if not abs(value - recorded[name]) <= CLOSE:
                found.append(
                    f"{need} has a {name} of {value:.3f}, not {recorded[name]:.3f}"
                )
    return found


def say(text: str) -> None:
    """Prints a line as a whole, whatever other threads print."""
    print(f"{text}\n", end="", flush=True)
