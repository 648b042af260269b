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
    again = repeated(wanted, cells, places)
    if again:
        hours = sum(estimate(cells[name], rows, places.scale) for name in again)
        print(f"again, for the folders of {len(again)}: {hours:.1f} hours of a core")
    left = hours_left(wanted, cells, places)
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
        done = sum(name in rows for name in names)
        hours = hours_left([cells[name] for name in names], cells, places)
        print(
            f"{claim.name} | {done} of {len(names)} cells done | "
            f"{hours:.1f} hours of a core left"
        )


def hours_left(wanted: list[Cell], cells: Mapping[str, Cell], places: Places) -> float:
    """The hours of the cells that have no row, and of those that are run again."""
    rows = places.ledger.rows()
    left = {cell.name for cell in wanted if cell.name not in rows}
    left |= repeated(wanted, cells, places)
    return sum(estimate(cells[name], rows, places.scale) for name in left)


def repeated(wanted: list[Cell], cells: Mapping[str, Cell], places: Places) -> set[str]:
    """The cells that have a row, and are run again for their folders."""
    rows = places.ledger.rows()
    return {
        name
        for cell in wanted
        if cell.name not in rows
        for name in lost_folders(cell, cells, places)
        if name in rows
    }


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
