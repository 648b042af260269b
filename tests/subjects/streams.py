"""Streams that nobody can read."""

import contextlib
import os

UNREADABLE = ["pipe without a reader", "full disk"]


@contextlib.contextmanager
def unreadable(kind):
    """A text file whose lines cannot be written, of a kind in `UNREADABLE`."""
    if kind == "full disk":
        stream = open("/dev/full", "w", buffering=1, encoding="utf-8")  # noqa: SIM115
    else:
        read, write = os.pipe()
        os.close(read)
        stream = os.fdopen(write, "w", buffering=1)
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            stream.close()
