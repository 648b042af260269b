r"""The papers' claims in small: a campaign of trainings that goes on where it stopped.

It pretrains every system on the same text, chooses each one's peak rate by a pilot,
fine-tunes, answers questions, stacks, distils and extends: `evidence/cells.py` has the
cells, `evidence/claims.py` what the papers claim. A cell's row is written to
`campaign.csv` in `--results` when it is done, its curve to `campaign_curves.csv`, and
the rates that the pilots choose to a file for those who read. A campaign that was
killed goes on with the cells that it was at, from their checkpoints.

    python benchmarks/campaign.py --list
    python benchmarks/campaign.py --processes=2 --budget_hours=48
    python benchmarks/campaign.py --report

A part of it, and again what is recorded, whose metrics must be equal to the last digit:

    python benchmarks/campaign.py --cells='pretraining/Shatter/*'
    python benchmarks/campaign.py --cells='pretraining/Shatter/0' --check

All of it in minutes, with the sizes of a toy, to see that it runs:

    python benchmarks/campaign.py --scale=toy --results=runs/toy --runs=runs/toy_runs

Each process has one core to itself and one thread, at the lowest priority: so the
numbers do not depend on what else runs. Costs are measured first, one after the other.
"""

import contextlib
import fcntl
import fnmatch
import functools
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import environment
import machine
import runs
from absl import app, flags
from evidence import texts
from evidence.cells import Cell, Context, make_cells
from evidence.ledger import Ledger
from evidence.systems import SCALES, SYSTEMS, TIMED
from steps import in_own_process

from tfeff.utils.files import atomic_file

ROOT = Path(__file__).resolve().parents[1]
# One thread a process: sums come in one order, and metrics are the same every time.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",
}
VALIDATION = 1.15  # What validations add to the time of pretraining, about.

FLAGS = flags.FLAGS
flags.DEFINE_enum("scale", "full", list(SCALES), "The sizes.")
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/, glue/, squad/ and superglue/.",
)
flags.DEFINE_string("runs", "runs/campaign", "Folder of the texts and the runs.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.DEFINE_string("cells", "*", "Pattern of the names of the cells to run.")
flags.DEFINE_integer("processes", 1, "Cells at a time, a core each.", lower_bound=1)
flags.DEFINE_float(
    "budget_hours", None, "No cell is begun later; what runs then is stopped."
)
flags.DEFINE_boolean("list", False, "Print the cells, their state and hours; run none.")
flags.DEFINE_boolean("check", False, "Run recorded cells again and compare; no rows.")
flags.DEFINE_boolean("report", False, "Write the pages of the claims; run nothing.")
flags.DEFINE_string("one", None, "For the campaign itself: the cell of this process.")
flags.DEFINE_integer("core", None, "For the campaign itself: its core.")
flags.DEFINE_string("folder", None, "For the campaign itself: its folder.")


def main(_):
    """Does what the flags ask for."""
    ledger = Ledger(FLAGS.results, FLAGS.scale)
    cells = {cell.name: cell for cell in make_cells(SCALES[FLAGS.scale])}
    if FLAGS.one:
        do_one(cells[FLAGS.one], ledger)
        return
    wanted = [cells[name] for name in cells if fnmatch.fnmatchcase(name, FLAGS.cells)]
    if not wanted:
        raise app.UsageError(
            "--cells must match the name of a cell, which --list prints. "
            f"Received: {FLAGS.cells!r}"
        )
    if FLAGS.report:
        from evidence.pages import write_pages

        for path in write_pages(ledger, FLAGS.results, SCALES[FLAGS.scale]):
            print(path)
        return
    if FLAGS.list:
        print_list(wanted, ledger)
        return
    if not Path(FLAGS.data, "text", runs.HELD_OUT).exists():
        raise app.UsageError(f"--data={FLAGS.data} holds no text/{runs.HELD_OUT}")
    os.makedirs(FLAGS.runs, exist_ok=True)
    os.makedirs(FLAGS.results, exist_ok=True)
    with only_one_campaign():
        make_texts()
        if FLAGS.check:
            check(wanted, cells, ledger)
        else:
            Campaign(wanted, cells, ledger).run()


@contextlib.contextmanager
def only_one_campaign():
    """Holds the folder of the runs; two campaigns would write each other's rows."""
    with open(Path(FLAGS.runs, "campaign.lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise app.UsageError(
                f"--runs={FLAGS.runs} must not be of a campaign that is running"
            ) from error
        yield


def make_texts():
    """Makes the texts, or checks that they are those of the rows."""
    folder, scale = texts_folder(), SCALES[FLAGS.scale]
    if not os.path.isdir(folder):
        print("making the texts and the tokenizer", flush=True)
        arguments = (folder, FLAGS.data, scale.docstrings, scale.vocabulary)
        in_own_process(texts.make, *arguments)
    path = Path(FLAGS.results, f"campaign_texts_{FLAGS.scale}.json")
    found = texts.digests(folder)
    if not path.exists():
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    names = {*found, *recorded}
    if other := sorted(n for n in names if found.get(n) != recorded.get(n)):
        raise app.UsageError(
            f"{folder} must have the texts of {path}, as its rows are of them. "
            f"Different: {', '.join(other)}"
        )


def texts_folder() -> str:
    """Where the texts of the scale are."""
    return os.path.join(FLAGS.runs, f"texts-{FLAGS.scale}")


def run_folder(name: str) -> str:
    """The folder of a cell's run, as the commands name it."""
    plain = name.replace(", ", "_").replace(" ", "_").replace("/", "-")
    return os.path.join(FLAGS.runs, FLAGS.scale, plain)


def make_context(ledger: Ledger) -> Context:
    """What settings depend on, from the rows as they are now."""
    rows = ledger.rows()
    return Context(
        SCALES[FLAGS.scale],
        texts_folder(),
        run_folder,
        lambda name, metric: rows[name]["metrics"][metric],
    )


def do_one(cell: Cell, ledger: Ledger) -> None:
    """Does a cell in this process; `FOLDER.json` has the outcome."""
    from evidence import work

    # A process of a campaign that was killed may still be saving its checkpoint.
    lock = open(f"{FLAGS.folder}.lock", "w", encoding="utf-8")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    if read_outcome(FLAGS.folder) is not None:
        return
    watch_parent(f"{FLAGS.folder}.seconds")
    with contextlib.suppress(OSError):  # Of this process's own session.
        Path("/proc/self/autogroup").write_text("19", encoding="ascii")
    with contextlib.suppress(OSError):
        os.nice(19)
    if FLAGS.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [FLAGS.core])
    outcome = work.perform(cell, make_context(ledger), FLAGS.folder)
    with atomic_file(f"{FLAGS.folder}.json") as new:
        Path(new).write_text(json.dumps(outcome), encoding="utf-8")


def watch_parent(path: str) -> None:
    """Ends this process soon after its parent, and counts its seconds over all starts.

    A recipe that is told to end saves a checkpoint first.
    """
    parent, start = os.getppid(), time.monotonic()
    with contextlib.suppress(FileNotFoundError, ValueError):
        start -= float(Path(path).read_text(encoding="ascii"))

    def watch():
        while os.getppid() == parent:
            Path(path).write_text(f"{time.monotonic() - start:.0f}", encoding="ascii")
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(300)  # A recipe ends by itself.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Process:
    """A process that does a cell.

    Args:
        cell: the cell.
        folder: of its run.
        core: where it runs; `None` for anywhere.
    """

    def __init__(self, cell: Cell, folder: str, core: int | None):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        names = ("scale", "data", "runs", "results")
        command = [sys.executable, os.path.abspath(__file__), f"--one={cell.name}"]
        command += [f"--{name}={getattr(FLAGS, name)}" for name in names]
        command += [f"--folder={folder}"]
        command += [] if core is None else [f"--core={core}"]
        self.cell, self.folder = cell, folder
        with open(f"{folder}.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)},
                # A priority of its own, where the system schedules sessions.
                start_new_session=True,
            )

    def outcome(self) -> dict | None:
        """What it has found, at its end; `None` if it failed or was stopped."""
        self.process.wait()
        return read_outcome(self.folder)


def read_outcome(folder: str) -> dict | None:
    """What a cell's process has found, if it came to its end."""
    path = Path(f"{folder}.json")
    if not path.exists():
        return None
    return json.loads(path.read_text(encoding="utf-8"))


class Campaign:
    """Runs cells as soon as those that they need are there.

    Args:
        wanted: the cells to run, in this order.
        cells: all cells by name.
        ledger: where the rows go.
    """

    def __init__(self, wanted: list[Cell], cells: dict[str, Cell], ledger: Ledger):
        self.wanted, self.cells, self.ledger = wanted, cells, ledger
        self.needed = {need for cell in cells.values() for need in cell.needs}
        self.lock = threading.Condition()
        self.running: dict[str, Process] = {}
        self.taken: set[str] = set()
        self.failed: set[str] = set()
        self.is_over = False

    def run(self) -> None:
        """Runs all that can be run, until the budget is spent or a signal comes."""
        stop = functools.partial(self.stop, "stopped")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop())
        timer = None
        if FLAGS.budget_hours is not None:
            timer = threading.Timer(
                3600 * FLAGS.budget_hours, self.stop, ["the budget is spent"]
            )
            timer.daemon = True
            timer.start()
        # What is timed has the machine to itself.
        timed = [cell for cell in self.wanted if cell.recipe == "timing"]
        others = [cell for cell in self.wanted if cell.recipe != "timing"]
        cores = sorted(os.sched_getaffinity(0))
        for cells, count in ((timed, 1), (others, FLAGS.processes)):
            slots = [
                threading.Thread(target=self.work, args=[cells, cores[i % len(cores)]])
                for i in range(count)
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
        print(f"{len(self.wanted) - len(left)} of {len(self.wanted)} cells are done")
        if self.failed:
            logs = ", ".join(f"{run_folder(name)}.log" for name in sorted(self.failed))
            raise SystemExit(f"cells failed; see {logs}")
        if missing and not self.is_over:
            raise SystemExit(
                f"cells are left, which need others first: {', '.join(sorted(missing))}"
            )

    def stop(self, why: str) -> None:
        """Begins no more cells, and lets those that run save a checkpoint and end."""
        print(why, flush=True)
        # No lock: a signal may come to the thread that holds it.
        self.is_over = True
        for process in list(self.running.values()):
            process.process.terminate()

    def work(self, cells: list[Cell], core: int) -> None:
        """Does one cell after the other on a core."""
        while cell := self.take(cells):
            found = None
            try:
                found = self.do(cell, core)
            finally:
                with self.lock:
                    self.taken.discard(cell.name)
                    if not found and not self.is_over:
                        self.failed.add(cell.name)
                        print(f"{cell.name} failed: {run_folder(cell.name)}.log")
                    self.lock.notify_all()

    def take(self, cells: list[Cell]) -> Cell | None:
        """The first cell that can be run; waits for one if others are running."""
        with self.lock:
            while not self.is_over:
                rows = self.ledger.rows()
                left = [
                    cell
                    for cell in cells
                    if cell.name not in rows
                    and cell.name not in self.taken
                    and cell.name not in self.failed
                ]
                for cell in left:
                    if all(need in rows for need in cell.needs):
                        self.taken.add(cell.name)
                        return cell
                if not left or not self.taken:
                    return None
                self.lock.wait(timeout=1)
        return None

    def do(self, cell: Cell, core: int) -> bool:
        """Runs a cell to its row; False if it did not come to its end."""
        for need in cell.needs:  # Rows may be there where folders are gone.
            lost = self.cells[need]
            if is_folder_lost(lost):
                print(f"{need}: again, for its folder", flush=True)
                if not self.do_again(lost, core):
                    return False
        print(f"{cell.name}: begins", flush=True)
        outcome = self.perform(cell, run_folder(cell.name), core)
        if outcome is None:
            return False
        with self.lock:
            record(cell, outcome, self.ledger)
        seconds = read_seconds(run_folder(cell.name))
        print(f"{cell.name}: {summary(outcome)}, {seconds:.0f} s", flush=True)
        return True

    def do_again(self, cell: Cell, core: int) -> bool:
        """Runs a cell that has a row for its folder; False if that failed."""
        Path(f"{run_folder(cell.name)}.json").unlink(missing_ok=True)
        lost = [self.cells[n] for n in cell.needs if is_folder_lost(self.cells[n])]
        if not all(self.do_again(need, core) for need in lost):
            return False
        return self.perform(cell, run_folder(cell.name), core) is not None

    def perform(self, cell: Cell, folder: str, core: int) -> dict | None:
        """The outcome of a cell's process, or of one that ended before its row."""
        if (found := read_outcome(folder)) is not None:
            return found
        process = Process(cell, folder, core)
        self.running[cell.name] = process
        if self.is_over:  # It came in between.
            process.process.terminate()
        found = process.outcome()
        del self.running[cell.name]
        if found is not None:
            from evidence import work

            work.clean(folder, cell.name in self.needed)
        return found


def is_folder_lost(cell: Cell) -> bool:
    """Whether what others start from is not there any more."""
    is_made = cell.recipe not in ("timing", "positions") and cell.stage != "pilot"
    return is_made and not Path(run_folder(cell.name), "preset").exists()


def record(cell: Cell, outcome: dict, ledger: Ledger) -> None:
    """Writes the row of a cell, and its curve."""
    from evidence import work

    context = make_context(ledger)
    folder = run_folder(cell.name)
    words = work.command(cell, context, folder) or [
        *("python", "benchmarks/campaign.py", f"--scale={FLAGS.scale}"),
        f"--cells={cell.name}",
    ]
    size = context.scale.batch_size * context.scale.length
    curve = [{**p, "tokens": int(p["step"]) * size} for p in outcome["curve"]]
    row = {
        "metrics": outcome["metrics"],
        "tokens": outcome["tokens"],
        "seconds": f"{read_seconds(folder):.0f}",
        "command": shlex.join(words),
        "commit": commit(),
        "machine": machine.processor(),
        "versions": versions(),
    }
    ledger.add(vars(cell), curve if cell.stage != "long" else [], row)
    if cell.stage == "pilot":
        write_rates(ledger)


def write_rates(ledger: Ledger) -> None:
    """Writes which rates the pilots have chosen, for those who read: rows decide."""
    context, rates = make_context(ledger), {}
    for system in SYSTEMS:
        with contextlib.suppress(KeyError):  # Not all of its pilots are done.
            rates[system] = context.rate(system)
    path = Path(FLAGS.results, f"campaign_rates_{FLAGS.scale}.json")
    with atomic_file(path) as new:
        Path(new).write_text(json.dumps(rates, indent=1) + "\n", encoding="utf-8")


def read_seconds(folder: str) -> float:
    """The seconds of a cell's process, over all its starts."""
    try:
        return float(Path(f"{folder}.seconds").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0.0


def summary(outcome: dict) -> str:
    """The metric of an outcome that tells most."""
    metrics = outcome["metrics"]
    for name in ("cost", "score", "f1", "loss", *metrics):
        if name in metrics:
            return f"{name} {metrics[name]:.4f}"
    return "no metrics"


@functools.cache
def commit() -> str:
    """The commit of the code, with a mark where files differ from it."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    found = subprocess.run(git, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


@functools.cache
def versions() -> str:
    """Python's version, and those of what computes."""
    names = ("tensorflow", "keras", "keras-nlp", "numpy")
    found = (f"{name} {importlib.metadata.version(name)}" for name in names)
    return ", ".join((f"Python {platform.python_version()}", *found))


def check(wanted: list[Cell], cells: dict[str, Cell], ledger: Ledger) -> None:
    """Runs recorded cells again, in folders of their own, and compares the metrics."""
    rows = ledger.rows()
    campaign = Campaign(wanted, cells, ledger)
    different, count = [], 0
    for cell in wanted:
        if cell.name not in rows or cell.recipe == "timing":
            continue  # Times are never the same.
        count += 1
        for need in cell.needs:
            if is_folder_lost(cells[need]) and not campaign.do_again(cells[need], 0):
                raise SystemExit(f"{need} failed: {run_folder(need)}.log")
        folder = f"{run_folder(cell.name)}-check-{int(time.time())}"
        outcome = campaign.perform(cell, folder, sorted(os.sched_getaffinity(0))[0])
        if outcome is None:
            raise SystemExit(f"{cell.name} failed: {folder}.log")
        recorded = rows[cell.name]["metrics"]
        names = sorted({*recorded, *outcome["metrics"]})
        other = [
            f"{name} {recorded.get(name)} there, {outcome['metrics'].get(name)} now"
            for name in names
            if recorded.get(name) != outcome["metrics"].get(name)
        ]
        print(f"{cell.name}: {'; '.join(other) or 'equal to the last digit'}")
        if other:
            different.append(cell.name)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if different:
        raise SystemExit(f"different: {', '.join(different)}")
    if not count:
        raise SystemExit("none of these cells has a row that can be compared")


def print_list(wanted: list[Cell], ledger: Ledger) -> None:
    """Prints cells, what state they are in, and their hours."""
    rows = ledger.rows()
    stages: dict[str, list[float]] = {}
    for cell in wanted:
        hours = estimate(cell, rows)
        done = cell.name in rows
        state = "done" if done else "begun" if is_begun(cell) else "to do"
        print(f"{cell.name} | {state} | {hours:.2f} hours")
        total = stages.setdefault(cell.stage, [0, 0, 0.0, 0.0])
        total[0] += 1
        total[1] += done
        total[2] += hours
        total[3] += 0.0 if done else hours
    for stage, (count, done, hours, left) in stages.items():
        print(
            f"{stage}: {done:.0f} of {count:.0f} cells done, {hours:.1f} hours of a "
            f"core, {left:.1f} of them left"
        )
    left = sum(total[3] for total in stages.values())
    print(
        f"in all {left:.1f} hours of a core left, "
        f"{left / FLAGS.processes:.1f} with --processes={FLAGS.processes}"
    )


def is_begun(cell: Cell) -> bool:
    """Whether a cell has a run that was stopped."""
    return os.path.isdir(run_folder(cell.name))


def estimate(cell: Cell, rows: dict[str, dict]) -> float:
    """The hours of a cell: as recorded, as others of its kind, or by its tokens."""
    if cell.name in rows:
        return float(rows[cell.name]["seconds"]) / 3600
    alike = [
        float(row["seconds"])
        for row in rows.values()
        if (row["stage"], row["system"]) == (cell.stage, cell.system)
        and (row["task"] == cell.task or cell.stage == "pilot")
    ]
    if alike:
        return sum(alike) / len(alike) / 3600
    scale = SCALES[FLAGS.scale]
    cost = 1.0
    if cell.system in TIMED and f"timing/{cell.system}/0" in rows:
        measured = rows[f"timing/{cell.system}/0"]["metrics"]["cost"]
        cost = measured / TIMED[cell.system].cost
    validation = VALIDATION if cell.recipe in ("pretrain", "stack") else 1.0
    seconds = cell.tokens * cost * validation / scale.tokens_a_second
    return (seconds + scale.overhead) / 3600


if __name__ == "__main__":
    environment.ensure()  # The cells inherit it.
    app.run(main)
