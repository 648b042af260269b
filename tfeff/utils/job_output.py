"""The output of a job: a line that cannot be written is left out.

A job must not end, and lose what it has not saved yet, because `tee` or a terminal has
ended, or because the disk of its log is full.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO


class Lossy:
    """A text file of which what cannot be written is left out.

    Args:
        file: a function that returns the file, which may change.
    """

    def __init__(self, file: Callable[[], IO[str]]):
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file().flush()

    def __getattr__(self, name):
        return getattr(self._file(), name)


def say(text: object) -> None:
    """Prints a line on standard error, or nothing if nobody can read it."""
    # Windows starts some programs without a standard error.
    if sys.stderr is not None:
        print(text, file=Lossy(lambda: sys.stderr))


@contextlib.contextmanager
def job_output() -> Iterator[None]:
    """Context in which lines on standard output cannot end what prints them.

    They are written at once, also to a file or a pipe; characters that a terminal lacks
    are printed as question marks. Of a line that cannot be written nothing is said:
    what is printed as the result of a command does not belong here.
    """
    output = sys.stdout
    if output is None:
        yield
        return
    before = {
        name: getattr(output, name, None) for name in ("errors", "line_buffering")
    }
    _reconfigure(output, errors="replace", line_buffering=True)
    try:
        with contextlib.redirect_stdout(Lossy(lambda: output)):
            yield
    finally:
        is_of_process = output is sys.__stdout__
        if is_of_process and not output.closed:
            # The last flush of the process must not make a failure of a job.
            try:
                output.flush()
            except BrokenPipeError:
                drop_unwritten(output)
            except OSError:
                pass
        _reconfigure(output, **before)


def drop_unwritten(output: IO[str]) -> None:
    """Drops what a file could not write, and what is written to it later."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output.fileno())
    os.close(nowhere)


def _reconfigure(output, **settings):
    if isinstance(output, io.TextIOWrapper) and not output.closed:
        with contextlib.suppress(OSError):  # It writes first what it has.
            output.reconfigure(**settings)
