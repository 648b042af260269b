"""Streams that nobody can read."""

import os

UNREADABLE = ["pipe without a reader", "full disk"]


def unreadable(kind):
    """A text file whose lines cannot be written, of a kind in `UNREADABLE`."""
    if kind == "full disk":
        return open("/dev/full", "w", buffering=1, encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w", buffering=1)
