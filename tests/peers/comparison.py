"""The table of docs/COMPARISON.md, and the names of other packages in it.

    python -m tests.peers.comparison transformers

checks those of a package that is installed; 4.57.6 of transformers gives no output.
"""

import importlib
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "COMPARISON.md"


def rows() -> list[list[str]]:
    """The cells of each row of the tables: feature, tfeff, KerasHub, transformers."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [
        [x.strip() for x in line.strip("|").split("|")] for line in lines if "|" in line
    ]
    return [row for row in cells if row[0] and set(row[0]) != {"-"}]


def missing(package: str) -> list[str]:
    """Names of a package on the page that the installed package does not have."""
    text = PAGE.read_text(encoding="utf-8")
    names = re.findall(rf"`({package}(?:\.\w+)+)`", text)
    assert names, package
    return [name for name in names if not _exists(name)]


def _exists(name):
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


if __name__ == "__main__":
    for name in missing(sys.argv[1]):
        print(name)
