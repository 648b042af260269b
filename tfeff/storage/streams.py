"""Files of corpora, which are read as streams wherever they are."""

import contextlib
from collections.abc import Iterator
from typing import Any

from tfeff.storage.place import Place
from tfeff.utils.checks import is_url


@contextlib.contextmanager
def open_stream(name: str, path: str) -> Iterator[Any]:
    """A file of bytes at a path or a URL.

    Args:
        name: the argument that it was given as, for errors.
        path: the path or URL.
    """
    if not is_url(path):
        with open(path, "rb") as file:
            yield file
        return
    place = Place(name, path)
    with place.open() as file:
        yield file


def matching_urls(name: str, pattern: str) -> list[str]:
    """URLs of the files that a URL or a glob of one matches, by their names.

    Raises:
        ValueError: if it matches none.
    """
    place = Place(name, pattern)
    info = place.info()
    if info is not None and info["type"] == "file":
        return [pattern]
    found = place.glob()
    if not found:
        raise ValueError(
            f"`{name}` must match files. Received: {pattern!r}, which matches none"
        )
    return found
