"""Disks: whether there is room, and that what is written has reached them."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def reserve(folder: str | os.PathLike, size: int, largest: int | None = None) -> None:
    """Raises an OSError where a folder's disk has no room, if the system can tell.

    HDF5 ends the process where a disk is full while it writes.

    Args:
        folder: the folder.
        size: integer, bytes in all.
        largest: integer, the most bytes of one file; `None` if there is one alone.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        with contextlib.ExitStack() as stack:
            while size > 0:
                part = min(size, largest or size)
                file = stack.enter_context(
                    tempfile.TemporaryFile(dir=os.fspath(folder))
                )
                os.posix_fallocate(file.fileno(), 0, part)
                size -= part
    except OSError as error:  # Others, such as of a folder's rights, tell nothing.
        if error.errno in FULL:
            raise


@contextlib.contextmanager
def system_folder() -> Iterator[str]:
    """Yields a new folder where the system has temporary files, removed at the end.

    Nothing else may be written meanwhile.

    Raises:
        OSError: if the disk is full; it names that place.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield folder
    except OSError as error:
        if error.errno not in FULL:
            raise
        reason = f"{error.strerror}, for temporary files; TMPDIR names another place"
        raise OSError(error.errno, reason, tempfile.gettempdir()) from error


def sync_below(path: str) -> None:
    """Flushes a folder with all that is in it."""
    for folder, _, names in os.walk(path):
        for name in names:
            sync(os.path.join(folder, name))
        sync(folder)


def sync(path: str) -> None:
    """Flushes a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
