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

    python benchmarks/campaign.py --claims=one-head
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
import json
import os
from collections.abc import Mapping
from pathlib import Path

import environment
import runs
from absl import app, flags
from evidence import texts
from evidence.cells import Cell, make_cells
from evidence.checking import check
from evidence.deciding import cells_of, claims_at
from evidence.listing import print_claims, print_list
from evidence.places import Places
from evidence.processes import do_one
from evidence.schedule import Campaign
from evidence.systems import SCALES
from steps import in_own_process

from tfeff.utils.files import write_text

FLAGS = flags.FLAGS
flags.DEFINE_enum("scale", "full", list(SCALES), "The sizes.")
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/, glue/, squad/ and superglue/.",
)
flags.DEFINE_string("runs", "runs/campaign", "Folder of the texts and the runs.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.DEFINE_multi_string(
    "cells", [], "Pattern of the names of the cells to run; by default all of them."
)
flags.DEFINE_multi_string(
    "claims",
    [],
    "Claim whose cells to run, by the name of its page; with --cells, too.",
)
flags.DEFINE_integer("processes", 1, "Cells at a time, a core each.", lower_bound=1)
flags.DEFINE_float(
    "budget_hours", None, "No cell is begun later; what runs then is stopped."
)
flags.DEFINE_boolean(
    "list", False, "Print cells and claims, their state and hours; run none."
)
flags.DEFINE_boolean("check", False, "Run recorded cells again and compare; no rows.")
flags.DEFINE_boolean("report", False, "Write the pages of the claims; run nothing.")
flags.DEFINE_string("one", None, "For the campaign itself: the cell of this process.")
flags.DEFINE_integer("core", None, "For the campaign itself: its core.")
flags.DEFINE_string("folder", None, "For the campaign itself: its folder.")


def main(_):
    """Does what the flags ask for."""
    places = Places(FLAGS.scale, FLAGS.data, FLAGS.runs, FLAGS.results)
    cells = {cell.name: cell for cell in make_cells(places.scale)}
    if FLAGS.one:
        do_one(cells[FLAGS.one], places, FLAGS.folder, FLAGS.core)
        return
    chosen = choose(cells, places)
    wanted = [cell for name, cell in cells.items() if name in chosen]
    if FLAGS.report:
        from evidence.pages import write_pages

        for path in write_pages(places.ledger, places.results, places.scale):
            print(path)
        return
    if FLAGS.list:
        print_list(wanted, cells, places, FLAGS.processes)
        claims = claims_at(cells.values(), places.scale)
        print_claims(claims, cells, places)
        return
    if not Path(places.data, "text", runs.HELD_OUT).exists():
        raise app.UsageError(f"--data={places.data} holds no text/{runs.HELD_OUT}")
    os.makedirs(places.runs, exist_ok=True)
    os.makedirs(places.results, exist_ok=True)
    with only_one_campaign(places):
        make_texts(places)
        if FLAGS.check:
            check(wanted, cells, places)
        else:
            campaign = Campaign(wanted, cells, places)
            campaign.run(FLAGS.processes, FLAGS.budget_hours)


def choose(cells: Mapping[str, Cell], places: Places) -> set[str]:
    """The names of the cells that the flags ask for, all without them."""
    claims = {c.name: c for c in claims_at(cells.values(), places.scale)}
    chosen: set[str] = set()
    for pattern in FLAGS.cells:
        found = fnmatch.filter(cells, pattern)
        if not found:
            raise app.UsageError(
                "--cells must match the name of a cell, which --list prints. "
                f"Received: {pattern!r}"
            )
        chosen.update(found)
    for name in FLAGS.claims:
        if name not in claims:
            raise app.UsageError(
                f"--claims must be of {', '.join(claims)}. Received: {name!r}"
            )
        chosen |= cells_of(claims[name], cells, places.scale)
    return chosen or set(cells)


@contextlib.contextmanager
def only_one_campaign(places: Places):
    """Holds the folder of the runs; two campaigns would write each other's rows."""
    with open(Path(places.runs, "campaign.lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise app.UsageError(
                f"--runs={places.runs} must not be of a campaign that is running"
            ) from error
        yield


def make_texts(places: Places) -> None:
    """Makes the texts, or checks that they are those of the rows."""
    folder, scale = places.texts, places.scale
    if not os.path.isdir(folder):
        print("making the texts and the tokenizer", flush=True)
        arguments = (folder, places.data, scale.docstrings, scale.vocabulary)
        in_own_process(texts.make, *arguments)
    path = Path(places.results, f"campaign_texts_{places.scale_name}.json")
    found = texts.digests(folder)
    if not path.exists():
        write_text(path, json.dumps(found, indent=1) + "\n")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    names = {*found, *recorded}
    if other := sorted(n for n in names if found.get(n) != recorded.get(n)):
        raise app.UsageError(
            f"{folder} must have the texts of {path}, as its rows are of them. "
            f"Different: {', '.join(other)}. They depend on the installed packages: "
            "docs/CAMPAIGN.md names those of the rows"
        )


if __name__ == "__main__":
    environment.ensure()  # The cells inherit it.
    app.run(main)
