"""Files of corpora, which are read as streams wherever they are."""

import contextlib
import io
from collections.abc import Iterator
from typing import Any

from tfeff.storage.place import Place
from tfeff.utils.paths import is_url

_ARGUMENT = "patterns"  # of all functions that read corpora


@contextlib.contextmanager
def open_stream(path: str) -> Iterator[Any]:
    """A file of bytes at a path or a URL, one of the argument `patterns`."""
    if not is_url(path):
        with open(path, "rb") as file:
            yield file
        return
    with Place(_ARGUMENT, path).open() as file:
        # Some web servers tell no size; what they send can only be read on.
        yield _Forward(file) if getattr(file, "size", 0) is None else file


class _Forward(io.BufferedReader):
    """A file without a size, whose lines can be read."""

    def seek(self, offset, whence=0):
        raise ValueError(
            f"`{_ARGUMENT}` must match files that can be read from any byte on. "
            f"Received: {self.raw.path}, whose server tells no size, or gives no parts "
            "of it"
        )


def matching_urls(pattern: str) -> list[str]:
    """URLs of the files that a URL or a glob of one matches, by their names.

    Raises:
        ValueError: if it matches none.
    """
    place = Place(_ARGUMENT, pattern)
    if place.is_file():
        return [pattern]
    found = place.glob()
    if not found:
        raise ValueError(
            f"`{_ARGUMENT}` must match files. Received: {pattern!r}, which matches none"
        )
    return found
