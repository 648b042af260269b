"""One process at a time in a run directory."""

import contextlib
import errno
import fcntl
import json
import os
import weakref

from tfeff.utils.files import make_folder
from tfeff.utils.holder import described, this_process
from tfeff.utils.run_files import LOCK

# The locks of this process by directory: it may open a run several times.
_locks: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class RunLock:
    """The right of this process to write to a directory, until the last use ends.

    The lock is one on the open file `run.lock`, so it ends with the process, however
    that ends. The file says who has it. It is removed with the lock; one that a killed
    process left is taken over.

    Args:
        directory: a folder that exists.

    Attributes:
        users: how often it is open in this process.
        is_new: whether the first of them found no file in the directory.
        made: folders that are removed after the last use, inner ones first, if empty.
        at_end: what is done when the last use ends, before it gives the lock back.

    Raises:
        ValueError: if another process has the lock; the message tells which.
        OSError: if the file cannot be written or locked; then it is not there.
    """

    def __init__(self, directory: str):
        path = os.path.join(directory, LOCK)
        self._process = os.getpid()
        self._descriptor = _locked_file(path)
        self.users = 0
        self.is_new = False
        self.made: list[str] = []
        self.at_end = contextlib.ExitStack()
        self.at_end.callback(_remove, path, self._descriptor)
        note = json.dumps(this_process()).encode() + b"\n"
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, note, 0)
            os.fsync(self._descriptor)  # Other machines read it, see `read`.
        except OSError:
            _remove(path, self._descriptor)
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Ends a use. The last one gives the directory back."""
        self.users -= 1
        if self.users:
            return
        is_own = os.getpid() == self._process
        try:
            # A forked process that ends leaves the lock to its parent.
            if is_own:
                self.at_end.close()
        finally:
            os.close(self._descriptor)
        if is_own:
            _remove_empty(self.made)


def lock_directory(directory: str) -> RunLock:
    """Makes a directory, and returns its lock, which this process may have already.

    Raises:
        ValueError: if it cannot be made or written to, or another process has the lock.
            Folders that were made for it are then removed.
    """
    made = make_folder("directory", directory)
    key = os.path.realpath(directory)
    # A forked process does not own the locks of its parent.
    lock = _locks.get((os.getpid(), key))
    try:
        if lock is None or not lock.users:
            lock = _locks[os.getpid(), key] = RunLock(key)
    except ValueError:
        _remove_empty(made)
        raise
    except OSError as error:
        _remove_empty(made)
        raise ValueError(
            "`directory` must be a folder that can be written to. Received: "
            f"directory={directory!r}: {error.strerror}"
        ) from error
    # The last of several uses in this process tidies up.
    lock.made += made
    lock.users += 1
    return lock


def read(directory: str) -> str | None:
    """The text of a directory's lock, which names its holder; `None` without a lock.

    It tells whether processes, also of several machines, see the same directory.
    """
    try:
        with open(os.path.join(directory, LOCK), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _locked_file(path):
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had it may have removed the file in the meantime.
            if _is_at(path, descriptor):
                return descriptor
        except OSError as error:
            is_in_use = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            holder = _holder(descriptor)
            # Where there are no locks, nobody can have held this one.
            if not is_in_use and not os.fstat(descriptor).st_size:
                _remove(path, descriptor)
            os.close(descriptor)
            if not is_in_use:
                raise
            raise ValueError(
                "`directory` must not be in use. Received: "
                f"{os.path.dirname(path)}, in which {holder} is at work. Wait for its "
                "end, or use another directory."
            ) from None
        os.close(descriptor)


def _holder(descriptor):
    """Who has the lock, as far as the file tells."""
    try:
        return described(dict(json.loads(os.pread(descriptor, 1000, 0))))
    except (TypeError, ValueError):
        return described(None)


def _is_at(path, descriptor):
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_empty(folders):
    with contextlib.suppress(OSError):
        for folder in folders:
            os.rmdir(folder)


def _remove(path, descriptor):
    if _is_at(path, descriptor):
        os.unlink(path)
