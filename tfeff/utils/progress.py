"""Progress of a long job: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from typing import IO, cast

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tfeff.utils.job_output import Lossy

_SECONDS_BETWEEN_LINES = 10.0


class ErrorConsole(Console):
    """Standard error, where a line or a bar that nobody can read is left out."""

    def __init__(self):
        # Windows starts some programs without a standard error.
        file = None if sys.stderr is None else Lossy(_standard_error)
        super().__init__(file=cast(IO[str] | None, file), stderr=True, emoji=False)

    def tell(self, text: str) -> None:
        """Prints a line as it is, however wide it is."""
        self.print(text, highlight=False, markup=False, soft_wrap=True)


def _standard_error():
    # While there is a bar, Rich has a file of its own in place of the real one.
    return getattr(sys.stderr, "rich_proxied_file", sys.stderr)


def live_bar(console: Console, *columns: ProgressColumn) -> Progress | None:
    """Starts a bar with these columns on a terminal; returns None elsewhere."""
    if not console.is_terminal:
        return None
    bar = Progress(*columns, console=console)
    bar.start()
    return bar


class ProgressReport:
    """Context manager that reports a growing count on standard error.

    Args:
        label: the activity, such as "Tokenizing".
        unit: the counted things, such as "documents".
        total: the final count, if known.
        enabled: whether anything is reported.
    """

    def __init__(self, label: str, unit: str, total: int | None, enabled: bool):
        self._label, self._unit, self._total = label, unit, total
        self._enabled = enabled
        self._count = 0
        self._console = ErrorConsole()
        self._bar: Progress | None = None

    def __enter__(self) -> "ProgressReport":
        self._start = self._last = time.monotonic()
        if self._enabled:
            self._bar = live_bar(
                self._console,
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(self._unit),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
        if self._bar is not None:
            self._task = self._bar.add_task(self._label, total=self._total)
        return self

    def advance(self, amount: int) -> None:
        """Adds `amount` to the count."""
        self._count += amount
        if self._bar is not None:
            self._bar.advance(self._task, amount)
        elif time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._print()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif kind is None:
            self._print()

    def _print(self) -> None:
        if not self._enabled:
            return
        self._last = time.monotonic()
        total = "" if self._total is None else f" of {self._total:,}"
        self._console.tell(
            f"{self._label}: {self._count:,}{total} {self._unit}, "
            f"{self._last - self._start:.0f} s"
        )
