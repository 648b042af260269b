"""What an error in reading says: a missing file, a failing disk, or damage."""

import errno
import os
from collections.abc import Iterator
from typing import TypeGuard

# Exceptions that Keras raises for a complete file, or folder, with damaged content.
DAMAGE = (
    *(AttributeError, KeyError, OSError, OverflowError),
    *(RuntimeError, TypeError, ValueError),
)
# Libraries' own errors have no number, and a damaged file may send its reader to before
# its beginning.
_NOT_REFUSED = (None, errno.ENOENT, errno.ENOTDIR, errno.EINVAL)


def is_there(path: str | os.PathLike) -> bool:
    """Whether a path leads to something, where `os.path.exists` hides a failing disk.

    What seems to be missing is made anew, and what is left of it removed.

    Raises:
        OSError: if the system cannot tell.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_unreadable(error: Exception) -> TypeGuard[OSError]:
    """Whether the system refused to read a file, which says nothing of its content."""
    return isinstance(error, OSError) and error.errno not in _NOT_REFUSED


def raise_unreadable(error: Exception, path: str) -> None:
    """Raises an error in reading a file as the system's, if `is_unreadable` says so."""
    if is_unreadable(error):
        raise OSError(error.errno, f"{error.strerror}, while reading {path}") from error


def walk(
    folder: str | os.PathLike, follow_links: bool = False
) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, but a folder that cannot be read is an error.

    Args:
        folder: the folder; where it is missing, or is none, there is nothing in it.
        follow_links: whether links to folders are followed. One to a folder that it is
            in is listed among the files.

    Raises:
        OSError: if a folder cannot be read.
    """
    folder = os.fspath(folder)
    above: dict[str, frozenset] = {folder: frozenset()}
    for parent, folders, names in os.walk(
        folder, onerror=_raise_unless_gone, followlinks=follow_links
    ):
        way = above.pop(parent) | {os.path.realpath(parent)}
        for name in list(folders):
            path = os.path.join(parent, name)
            above[path] = way
            if follow_links and os.path.realpath(path) in way:
                folders.remove(name)
                names.append(name)
        yield parent, folders, names


def _raise_unless_gone(error):
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error
