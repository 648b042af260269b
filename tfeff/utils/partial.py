"""Folders for unfinished content, which end with the process that writes to them.

They are beside the destination, as `.partial-…`, and the writing process keeps them
locked. The lock ends with the process, however it ends. A partial folder whose lock
nobody holds is therefore that of a killed process, and is removed. A folder of such a
name without the file of a lock is somebody else's, and stays.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

from tfeff.utils.disks import FULL

PARTIAL = ".partial-"
_MADE = re.compile(re.escape(PARTIAL) + "[a-z0-9_]{8}")  # As `tempfile` names folders.
_LOCK = ".lock"
_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


@contextlib.contextmanager
def partial_path(path: str, shown: str | None = None) -> Iterator[str]:
    """A path with the file name of `path`, in a new locked folder beside it.

    Errors name `shown`, by default `path`.
    """
    parent, name = os.path.split(os.path.abspath(path))
    # It has the same parent, so that the last step is one rename.
    with (
        writing(shown or path, os.path.join(parent, PARTIAL)),
        temporary_folder(parent) as temporary,
    ):
        yield os.path.join(temporary, name)


@contextlib.contextmanager
def writing(shown: str, prefix: str) -> Iterator[None]:
    """Errors of the system in writing files name `shown`, whichever library writes.

    `prefix` is what the names of these files begin with.
    """
    try:
        yield
    except Exception as error:
        found = _failure(error, prefix)
        if found is None:
            raise
        number, reason = found
        given = [] if number is None else [number]
        raise OSError(*given, f"{reason}, while writing {shown}") from error


@contextlib.contextmanager
def temporary_folder(parent: str) -> Iterator[str]:
    """Yields a new folder in `parent`, which is removed at the end.

    That of a process that was killed is removed by the next call.
    """
    _remove_dead(parent, os.listdir(parent))
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        _remove_locked(folder)
        os.close(lock)


@contextlib.contextmanager
def scratch_folder(path: str) -> Iterator[str]:
    """Yields a new folder beside `path`, which is removed at the end."""
    with partial_path(path) as folder:
        os.mkdir(folder)
        yield folder


def remove_partial(directory: str) -> None:
    """Removes the partial folders of killed processes in and below a folder."""
    for folder, names, _ in os.walk(directory):
        _remove_dead(folder, names)


def _failure(error, temporary):
    """The number and reason of a system's error in writing; None of other errors.

    `temporary` is what the names of folders for unfinished files begin with.
    """
    # HDF5's errors, and those of safetensors, which are no OSErrors.
    found = re.search(r"(?:errno =|\(os error) (\d+)", str(error))
    if found:
        return int(found[1]), os.strerror(int(found[1]))
    if isinstance(error, OSError):
        # On a full disk, `write` names no file, `open` the partial one, and a copy its
        # source first.
        found = (error.filename2, error.filename, temporary)
        named = os.fspath(next(name for name in found if name))
        if not named.startswith(temporary):
            return None
        # One within another folder for unfinished files has named its own.
        reason, *_ = (error.strerror or str(error)).split(
            f", while writing {temporary}"
        )
        return error.errno, reason
    if not hasattr(error, "error_code"):
        return None
    # TensorFlow's have the file and the reason, as "FILE; No space left on device". Its
    # converters write to the system's folder for temporary files, too.
    for folder in (temporary, tempfile.gettempdir()):
        found = re.search(rf"{re.escape(folder)}[^;]*; ([^\[\n]+)", str(error))
        number = found and _NUMBERS.get(found[1].strip())
        # A file of the other folder, or one that is missing, may be one that is read.
        if folder != temporary and number in FULL:
            return number, f"{os.strerror(number)} in {folder}"
        if folder == temporary and number and number != errno.ENOENT:
            return number, os.strerror(number)
    return None


def _locked_folder(parent):
    while True:
        folder = tempfile.mkdtemp(prefix=PARTIAL, dir=parent)
        try:
            lock = _lock(folder, os.O_CREAT)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Another process may have removed it before it was locked, as one of a process
        # that has ended.
        if lock is not None and os.path.exists(folder):
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder, flags=0):
    """A file descriptor that locks the folder; None if another process holds it.

    None, too, if there is no file to lock, unless the flags make one.
    """
    # The file is opened for writing: network file systems lock no others.
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | flags, 0o600)
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
        if not _MADE.fullmatch(name):
            continue
        folder = os.path.join(parent, name)
        # It may be another user's, or the file system may have no locks.
        with contextlib.suppress(OSError):
            lock = _lock(folder)
            if lock is None:
                os.rmdir(folder)  # If it is empty: killed before it had a lock.
                continue
            _remove_locked(folder)
            os.close(lock)


def _remove_locked(folder):
    """Removes a folder, its lock last: without one it would count as another's."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.name == _LOCK:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.remove(entry.path)
    shutil.rmtree(folder, ignore_errors=True)
