"""Folders that appear when they are complete, or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator


def check_new_path(name: str, path: object) -> str:
    """Returns `path` as an absolute path if nothing is there yet, else raises."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"`{name}` must be a path. Received: {name}={path!r}")
    absolute = os.path.abspath(os.fspath(path))
    if os.path.lexists(absolute):
        raise ValueError(
            f"`{name}` must not exist yet. Received: {name}={os.fspath(path)!r}"
        )
    return absolute


@contextlib.contextmanager
def appearing(path: str) -> Iterator[str]:
    """Gives a path to write a folder to, which becomes `path` at the end.

    The folders above `path` are made. After an error nothing is left at `path`.

    Args:
        path: the folder's place, from `check_new_path`.
    """
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    # In the same folder, so that the last step is one rename.
    temporary = tempfile.mkdtemp(prefix=f".{name}-", dir=parent)
    try:
        unfinished = os.path.join(temporary, name)
        yield unfinished
        os.rename(unfinished, path)
    finally:
        shutil.rmtree(temporary)
