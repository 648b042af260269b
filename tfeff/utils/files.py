"""Files and folders that appear when they are complete, or not at all.

What is being written stands in a folder `.partial-…` beside its place, which the
writing process keeps locked. The lock ends with the process, however it ends: what a
killed process left is told from what another one is writing, and removed.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

PARTIAL = ".partial-"
_LOCK = ".lock"


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
def atomic_folder(path: str) -> Iterator[str]:
    """Gives a path to write a folder to, which becomes `path` at the end.

    The folders above `path` are made. After an error nothing is left at `path`.

    Args:
        path: the folder's place, from `check_new_path`.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with _partial(path) as unfinished:
        yield unfinished
        for folder, _, names in os.walk(unfinished):
            for name in names:
                _sync(os.path.join(folder, name))
            _sync(folder)
        os.rename(unfinished, path)
        _sync(os.path.dirname(path))


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[str]:
    """Gives a path to write a file to, which takes the place of `path` at the end.

    The folder above `path` must exist. After an error what was at `path` is still
    there. The path that is given has the same last part, ending included.

    Args:
        path: the file's place; a file of that name is replaced.

    Raises:
        OSError: of a full disk, for instance, with the name of the file.
    """
    path = os.path.abspath(os.fspath(path))
    with _partial(path) as unfinished:
        yield unfinished
        _sync(unfinished)
        os.replace(unfinished, path)
        _sync(os.path.dirname(path))


def remove_partial(directory: str) -> None:
    """Removes what killed processes left unfinished in a folder and those below."""
    for folder, names, _ in os.walk(directory):
        _remove_dead(folder, names)


@contextlib.contextmanager
def _partial(path):
    """A path with the last part of `path`, in a new locked folder beside it."""
    parent, name = os.path.split(os.path.abspath(path))
    _remove_dead(parent, os.listdir(parent))
    # In the same folder, so that the last step is one rename.
    temporary, lock = _locked_folder(parent)
    try:
        yield os.path.join(temporary, name)
    except OSError as error:
        # A full disk: h5py and `write` give no name, `open` that of the partial file.
        named = os.fspath(error.filename or temporary)
        if not named.startswith(temporary):
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{reason}, while writing {path}") from error
    except RuntimeError as error:
        # Of h5py, which finds the disk full when it closes a file.
        number = re.search(r"errno = (\d+)", str(error))
        if number is None:
            raise
        reason = os.strerror(int(number[1]))
        raise OSError(int(number[1]), f"{reason}, while writing {path}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(lock)


def _locked_folder(parent):
    while True:
        folder = tempfile.mkdtemp(prefix=PARTIAL, dir=parent)
        lock = _lock(folder)
        # Before it was locked, another process may have taken it for a dead one's.
        if lock is not None and os.path.exists(folder):
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder):
    """A file descriptor that locks the folder; None if another process has it."""
    # Of a file to be written: network file systems lock no others.
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return None
        raise
    return lock


def _remove_dead(parent, names):
    for name in names:
        if not name.startswith(PARTIAL):
            continue
        folder = os.path.join(parent, name)
        try:
            lock = _lock(folder)
        except OSError:  # It is another user's, or the file system has no locks.
            continue
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _sync(path):
    """Has what was written to a file, or renamed in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
