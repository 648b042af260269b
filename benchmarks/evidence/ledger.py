"""The record of the campaign: a row a cell, and the points of its curve.

Both are CSV files that are replaced as a whole, so that there is never half a row. The
curve is written before the row: a cell that has no row has not been done, whatever
points it has.
"""

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence

from rows import read

from tfeff.utils.files import atomic_file

FIELDS = (
    *("scale", "stage", "system", "task", "seed", "metrics", "tokens", "seconds"),
    *("command", "commit", "machine", "versions"),
)
POINTS = ("scale", "stage", "system", "task", "seed", "step", "tokens", "loss")
POINTS += ("val_loss",)
KEY = ("stage", "system", "task", "seed")


class Ledger:
    """The rows of one scale in a folder of results.

    Args:
        folder: where the files are, or will be.
        scale: the name of the scale; rows of others are kept, and not seen.
    """

    def __init__(self, folder: str, scale: str):
        self.folder, self.scale = folder, scale
        self.path = os.path.join(folder, "campaign.csv")
        self.curves_path = os.path.join(folder, "campaign_curves.csv")

    def rows(self) -> dict[str, dict]:
        """The rows by the names of their cells; `metrics` is a dict."""
        return {
            name_of(row): {**row, "metrics": json.loads(row["metrics"])}
            for row in read(self.path)
            if row["scale"] == self.scale
        }

    def curves(self) -> dict[str, list[dict[str, float]]]:
        """The points by the names of their cells, of cells that have a row."""
        done, found = self.rows(), {}
        for row in read(self.curves_path):
            name = name_of(row)
            if row["scale"] == self.scale and name in done:
                numbers = ("step", "tokens", "loss", "val_loss")
                point = {key: float(row[key]) for key in numbers}
                found.setdefault(name, {})[point["step"]] = point
        return {
            name: [points[step] for step in sorted(points)]
            for name, points in found.items()
        }

    def add(self, cell: Mapping, curve: Sequence[Mapping], row: Mapping) -> None:
        """Writes the row of a cell, unless it is there, and the points of its curve."""
        key = {"scale": self.scale, **{name: str(cell[name]) for name in KEY}}
        if name_of(key) in self.rows():
            raise ValueError(f"{self.path} has a row of {name_of(key)} already")
        old = [p for p in read(self.curves_path) if not key.items() <= p.items()]
        if curve:
            new = [{**key, **point} for point in curve]
            _write(self.curves_path, POINTS, [*old, *new])
        metrics = json.dumps(dict(sorted(row["metrics"].items())))
        _write(
            self.path, FIELDS, [*read(self.path), {**row, **key, "metrics": metrics}]
        )


def name_of(row: Mapping) -> str:
    """The name of a row's cell."""
    return "/".join(str(row[key]) for key in KEY if str(row[key]))


def _write(path: str, fields: Iterable[str], rows: Iterable[Mapping]) -> None:
    with (
        atomic_file(path) as new,
        open(new, "w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, list(fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
