"""Folders named by numbers, as TensorFlow Serving reads the versions of a model."""

import os
import re
from collections.abc import Callable, Iterable

from tfeff.utils.disks import sync, sync_below
from tfeff.utils.files import TAKEN
from tfeff.utils.partial import partial_path


def write_numbered(folder: str, write: Callable[[str], object]) -> str:
    """Writes a new folder whose name is the next number in `folder`; returns it.

    Behind `1` and `2` it is `3`. Parent folders are created. Several processes may
    write at once: each has a number of its own. After an error there is no new number.

    Args:
        folder: where the numbers are; it is made if it is missing.
        write: called with the path to write the new folder to.
    """
    os.makedirs(folder, exist_ok=True)
    with partial_path(os.path.join(folder, "next")) as unfinished:
        write(unfinished)
        sync_below(unfinished)
        while True:
            last = max(map(int, numbers(folder)), default=0)
            path = os.path.join(folder, str(last + 1))
            try:
                os.rename(unfinished, path)
                break
            except OSError as error:
                # Another process has taken the number in the meantime.
                if error.errno not in TAKEN:
                    raise
        sync(folder)
    return path


def numbers(folder: str) -> list[str]:
    """The names in a folder that are numbers, in their order; none if there is none."""
    return in_order(os.listdir(folder)) if os.path.isdir(folder) else []


def in_order(names: Iterable[str]) -> list[str]:
    """The names that TensorFlow Serving reads as numbers, in their order.

    It takes zeros before them, as in `00000007`, and 63 bits.
    """
    found = (name for name in names if re.fullmatch("[0-9]+", name))
    return sorted((name for name in found if int(name) < 2**63), key=int)
