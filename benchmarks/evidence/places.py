"""Where a campaign has its texts, its runs and its results."""

import dataclasses
import os
from collections.abc import Mapping

from evidence.cells import Cell, Context
from evidence.ledger import Ledger
from evidence.systems import SCALES, Scale


@dataclasses.dataclass(frozen=True)
class Places:
    """The folders of a campaign, which all of its processes are told.

    Attributes:
        scale_name: the name of the sizes.
        data: the folder with `text/`, `glue/`, `squad/` and `superglue/`.
        runs: the folder of the texts and the runs.
        results: the folder of the rows, the curves and the pages.
    """

    scale_name: str
    data: str
    runs: str
    results: str

    @property
    def scale(self) -> Scale:
        """The sizes."""
        return SCALES[self.scale_name]

    @property
    def texts(self) -> str:
        """The folder of the texts of the scale."""
        return os.path.join(self.runs, f"texts-{self.scale_name}")

    @property
    def ledger(self) -> Ledger:
        """The rows of the scale."""
        return Ledger(self.results, self.scale_name)

    def run(self, name: str) -> str:
        """The folder of a cell's run, as the commands name it."""
        plain = name.replace(", ", "_").replace(" ", "_").replace("/", "-")
        return os.path.join(self.runs, self.scale_name, plain)

    def context(self) -> Context:
        """The values that settings depend on, from the rows as they are now."""
        rows = self.ledger.rows()
        return Context(
            self.scale,
            self.texts,
            self.run,
            lambda name, metric: rows[name]["metrics"][metric],
        )

    def arguments(self) -> list[str]:
        """The flags that give another process the same places."""
        return [
            f"--scale={self.scale_name}",
            f"--data={self.data}",
            f"--runs={self.runs}",
            f"--results={self.results}",
        ]


def lost_folders(cell: Cell, cells: Mapping[str, Cell], places: Places) -> list[str]:
    """The needs of a cell whose folders are gone, each after its own.

    Rows may have come to a machine without the folders.

    Args:
        cell: the cell.
        cells: all cells by name.
        places: where everything is.
    """
    found: dict[str, None] = {}
    for need in cell.needs:
        other = cells[need]
        is_made = other.recipe not in ("timing", "positions") and other.stage != "pilot"
        if is_made and not os.path.isdir(os.path.join(places.run(need), "preset")):
            found |= dict.fromkeys([*lost_folders(other, cells, places), need])
    return list(found)
