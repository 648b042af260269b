"""The list of a campaign's cells, with the hours that they take."""

import os
from collections.abc import Iterable, Mapping

from evidence.cells import Cell
from evidence.claims import Claim
from evidence.deciding import cells_of
from evidence.places import Places, lost_folders
from evidence.systems import TIMED, Scale

VALIDATION = 1.15  # What validations add to the time of pretraining, about.


def print_list(
    wanted: list[Cell], cells: Mapping[str, Cell], places: Places, processes: int
) -> None:
    """Prints cells, what state they are in, and their hours.

    Args:
        wanted: the cells to list.
        cells: all cells by name.
        places: where everything is.
        processes: cells at a time.
    """
    rows = places.ledger.rows()
    stages: dict[str, list[float]] = {}
    for cell in wanted:
        hours = estimate(cell, rows, places.scale)
        done = cell.name in rows
        is_begun = os.path.isdir(places.run(cell.name))
        state = "done" if done else "begun" if is_begun else "to do"
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
    count, hours = run_again(wanted, cells, rows, places)
    if count:
        print(f"again, for the folders of {count}: {hours:.1f} hours of a core")
    left = hours + sum(total[3] for total in stages.values())
    print(
        f"in all {left:.1f} hours of a core left, "
        f"{left / processes:.1f} with --processes={processes}"
    )


def print_claims(
    claims: Iterable[Claim], cells: Mapping[str, Cell], places: Places
) -> None:
    """Prints claims, how many of their cells are done, and the hours that are left.

    Args:
        claims: the claims.
        cells: all cells by name.
        places: where everything is.
    """
    rows = places.ledger.rows()
    for claim in claims:
        names = cells_of(claim, cells, places.scale)
        left = [cells[name] for name in names if name not in rows]
        _, hours = run_again(left, cells, rows, places)
        hours += sum(estimate(cell, rows, places.scale) for cell in left)
        print(
            f"{claim.name} | {len(names) - len(left)} of {len(names)} cells done | "
            f"{hours:.1f} hours of a core left"
        )


def run_again(
    wanted: list[Cell], cells: Mapping[str, Cell], rows: dict[str, dict], places: Places
) -> tuple[int, float]:
    """How many cells have a row and are run again for their folders; their hours."""
    names = {
        name
        for cell in wanted
        if cell.name not in rows
        for name in lost_folders(cell, cells, places)
        if name in rows
    }
    return len(names), sum(estimate(cells[x], rows, places.scale) for x in names)


def estimate(cell: Cell, rows: dict[str, dict], scale: Scale) -> float:
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
    cost = 1.0
    if cell.system in TIMED and f"timing/{cell.system}/0" in rows:
        measured = rows[f"timing/{cell.system}/0"]["metrics"]["cost"]
        cost = measured / TIMED[cell.system].cost
    validation = VALIDATION if cell.recipe in ("pretrain", "stack") else 1.0
    seconds = cell.tokens * cost * validation / scale.tokens_a_second
    return (seconds + scale.overhead) / 3600
