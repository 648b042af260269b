"""The table of metrics of a run: a row after every epoch, never half of one."""

import csv
import io
import os
from collections.abc import Mapping, Sequence

import keras

from tfeff.utils.files import set_aside, write_text
from tfeff.utils.job_output import say
from tfeff.utils.reading import is_there


class MetricsFile(keras.callbacks.Callback):
    """Writes the metrics of each epoch as a row of a CSV file.

    Args:
        path: the file.
        text: its rows so far, which `restore` returns.
    """

    def __init__(self, path: str, text: str = ""):
        super().__init__()
        self._path = path
        self._rows: list[dict] = parse_rows(text)

    def on_epoch_end(self, epoch, logs=None):
        self._rows.append({"epoch": epoch, **dict(sorted(logs.items()))})
        write_rows(self._rows, self._path)

    def text(self) -> str:
        """The text of the file, to be saved in a checkpoint."""
        return _format(self._rows)


def restore(path: str, step: int, saved: str | None) -> str:
    """Restores a table of metrics to its state at a checkpoint.

    Up to two rows that came after the checkpoint are removed: they will be written
    again. If the file differs otherwise, it is damaged, or checkpoints were deleted:
    then it is kept beside the new one, as `metrics.csv.damaged-1`, and a line on
    standard error says so.

    Args:
        path: the file, which need not exist.
        step: integer, the step of the checkpoint; 0 without one.
        saved: the text of the file at the checkpoint; `None` if the checkpoint does
            not have it. Then the file's own rows up to the step are kept.

    Returns:
        The text that the file now has.
    """
    found = ""
    if is_there(path):
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            found = file.read().replace("\r\n", "\n")
    is_whole = True
    if saved is None:
        saved, is_whole = _rows_until(found, step)
    if found == saved:
        return saved
    # The first row comes with a header.
    lines_left = found.removeprefix(saved).count("\n") - (not saved)
    # A row is written while the checkpoint of the epoch before may still be.
    if not is_whole or not found.startswith(saved) or lines_left > 2:
        _set_aside(path, step)
    if saved:
        _write(saved, path)
    elif is_there(path):
        os.remove(path)
    return saved


def parse_rows(text: str) -> list[dict[str, str]]:
    """The rows of a table's text."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def write_rows(rows: Sequence[Mapping], path: str | os.PathLike) -> None:
    """Writes a whole CSV file, or nothing, with a column for each name in the rows."""
    _write(_format(rows), path)


def _set_aside(path, step):
    kept = "it is missing"
    if is_there(path):
        kept = f"it is kept as {os.path.basename(set_aside(path, 'damaged'))}"
    say(
        f"{path} is not as the checkpoint of step {step} has it: {kept}, and the run "
        "goes on with the rows of the checkpoint."
    )


def _rows_until(text, step):
    """The whole rows of a table up to a step, and whether the step has a row."""
    header, *lines = text.split("\n")
    names = next(csv.reader([header] if header.isprintable() else []), [])
    kept, last = [], 0
    for line in lines[:-1]:  # Text after the last line break is no row.
        cells = next(csv.reader([line] if line.isprintable() else []), [])
        number = dict(zip(names, cells, strict=False)).get("step", "")
        is_row = len(cells) == len(names) and number.isdecimal()
        if not is_row or not last < int(number) <= step:
            break
        kept.append(line)
        last = int(number)
    return "".join(f"{line}\n" for line in [header, *kept] if kept), last == step


def _format(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue() if rows else ""


def _write(text, path):
    # Surrogates stand for bytes that are not UTF-8.
    write_text(path, text, errors="surrogateescape", newline="")
