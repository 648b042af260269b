"""The row of a cell that is done: its metrics, and what makes them again."""

import contextlib
import json
import shlex
from pathlib import Path

import machine

from evidence.cells import Cell
from evidence.places import Places
from evidence.processes import read_seconds
from evidence.systems import SYSTEMS
from tfeff.utils.files import write_text


def record(cell: Cell, outcome: dict, places: Places) -> None:
    """Writes the row of a cell, and its curve."""
    from evidence import work

    context, ledger = places.context(), places.ledger
    folder = places.run(cell.name)
    words = work.command(cell, context, folder) or [
        *("python", "benchmarks/campaign.py", f"--scale={places.scale_name}"),
        f"--cells={cell.name}",
    ]
    size = context.scale.batch_size * context.scale.length
    curve = [{**p, "tokens": int(p["step"]) * size} for p in outcome["curve"]]
    row = {
        "metrics": outcome["metrics"],
        "tokens": outcome["tokens"],
        "seconds": f"{read_seconds(folder):.0f}",
        "command": shlex.join(words),
        "commit": outcome.get("commit", "unknown"),
        "machine": machine.processor(),
        "versions": machine.versions("tensorflow", "keras", "keras-nlp", "numpy"),
    }
    ledger.add(vars(cell), curve if cell.stage != "long" else [], row)
    if cell.stage == "pilot":
        write_rates(places)


def write_rates(places: Places) -> None:
    """Writes which rates the pilots have chosen, for those who read: rows decide."""
    context, rates = places.context(), {}
    for system in SYSTEMS:
        with contextlib.suppress(KeyError):  # Not all of its pilots are done.
            rates[system] = context.rate(system)
    path = Path(places.results, f"campaign_rates_{places.scale_name}.json")
    write_text(path, json.dumps(rates, indent=1) + "\n")


def summary(outcome: dict) -> str:
    """The metric of an outcome that tells most."""
    metrics = outcome["metrics"]
    for name in ("cost", "score", "f1", "loss", *metrics):
        if name in metrics:
            return f"{name} {metrics[name]:.4f}"
    return "no metrics"
