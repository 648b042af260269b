"""Recorded cells, run again and compared."""

import os
import shutil
import time

from evidence.cells import Cell
from evidence.places import Places
from evidence.schedule import Campaign


def check(wanted: list[Cell], cells: dict[str, Cell], places: Places) -> None:
    """Runs recorded cells again, in folders of their own, and compares the metrics."""
    rows = places.ledger.rows()
    campaign = Campaign(wanted, cells, places)
    core = min(os.sched_getaffinity(0))
    different, count = [], 0
    for cell in wanted:
        if cell.name not in rows or cell.recipe == "timing":
            continue  # Times are never the same.
        count += 1
        for need in campaign.lost(cell):
            if not campaign.do_again(cells[need], core):
                raise SystemExit(f"{need} failed: {places.run(need)}.log")
        folder = f"{places.run(cell.name)}-check-{int(time.time())}"
        outcome = campaign.perform(cell, folder, core)
        if outcome is None:
            raise SystemExit(f"{cell.name} failed: {folder}.log")
        recorded = rows[cell.name]["metrics"]
        # What is measured since the row was written is not compared.
        other = [
            f"{name} {value} there, {outcome['metrics'].get(name)} now"
            for name, value in sorted(recorded.items())
            if value != outcome["metrics"].get(name)
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
