"""Atomic writing: files and folders appear when they are complete, or not at all.

Incomplete content is in a folder `.partial-…` beside the destination, which the writing
process keeps locked. The lock ends with the process, however it ends. A partial folder
whose lock nobody holds is therefore that of a killed process, and is removed. A folder
of such a name without the file of a lock is somebody else's, and stays.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator

from tfeff.utils.checks import check_path

# What Keras raises of a whole file, or folder, with damaged content.
DAMAGE = (
    *(AttributeError, KeyError, OSError, OverflowError),
    *(RecursionError, TypeError, ValueError),
)
_MISSING = (None, errno.ENOENT, errno.ENOTDIR)  # Libraries' own errors have no number.
PARTIAL = ".partial-"
_MADE = re.compile(re.escape(PARTIAL) + "[a-z0-9_]{8}")  # As `tempfile` names folders.
_LOCK = ".lock"


def is_unreadable(error: Exception) -> bool:
    """Whether the system refused to read a file, which says nothing of its content."""
    return isinstance(error, OSError) and error.errno not in _MISSING


def check_new_path(name: str, path: object, advice: str = "") -> str:
    """Returns `path` as an absolute path if it does not exist yet, else raises.

    Args:
        name: the argument, for errors.
        path: its value.
        advice: what to do where it exists, a sentence without its full stop.
    """
    given = check_path(name, path)
    absolute = os.path.abspath(given)
    if os.path.lexists(absolute):
        raise ValueError(
            f"`{name}` must not exist yet. Received: {name}={given!r}"
            f"{advice and f'. {advice}'}"
        )
    return absolute


def make_folder(name: str, path: str) -> list[str]:
    """Makes a folder and those above it; returns those that it made, inner ones first.

    Args:
        name: the argument that the folder was given as, for errors.
        path: the folder.

    Raises:
        ValueError: if it cannot be made; then none of those above is.
    """
    missing, folder = [], os.path.abspath(check_path(name, path))
    try:
        folder.encode("utf-8")
    except UnicodeEncodeError as error:  # TensorFlow takes no other names.
        raise ValueError(
            f"`{name}` must be UTF-8. Received: {name}={path!r}"
        ) from error
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        for folder in missing:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise ValueError(
            f"`{name}` must be a folder, or can be made one. Received: "
            f"{name}={path!r}: {error.strerror}"
        ) from error
    return missing


@contextlib.contextmanager
def atomic_folder(path: str, replace: bool = False) -> Iterator[str]:
    """Yields a path to write a folder to, which is renamed to `path` at the end.

    Parent folders are created. After an error, `path` is as it was. What is written may
    be a new file, too.

    Args:
        path: the folder to create, as `check_new_path` returns it.
        replace: whether a folder that is there gives way to the complete new one. A
            process that is killed between two renames leaves the old one whole, beside
            `path`, as `NAME.replaced-…`.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with _partial(path) as unfinished:
        yield unfinished
        _sync_below(unfinished)
        if replace and os.path.isdir(path):
            _exchange(unfinished, path)
        else:
            os.rename(unfinished, path)
        _sync(os.path.dirname(path))


def _exchange(new, path):
    """Two folders change names; after an error both have their own."""
    parent, name = os.path.split(path)
    # Not in the partial folder, which the next process would remove with what it has.
    old = tempfile.mkdtemp(prefix=f"{name}.replaced-", dir=parent)
    try:
        os.rename(path, old)
        os.rename(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.rename(old, path)  # An empty `old` takes no other folder's place.
        with contextlib.suppress(OSError):
            os.rmdir(old)
        raise
    os.rename(old, new)


@contextlib.contextmanager
def scratch_folder(path: str) -> Iterator[str]:
    """Yields a new folder beside `path`, which is removed at the end."""
    with _partial(path) as folder:
        os.mkdir(folder)
        yield folder


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
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def write_numbered(folder: str, write: Callable[[str], object]) -> str:
    """Writes a new folder whose name is the next number in `folder`; returns it.

    Behind `1` and `2` it is `3`. Parent folders are created. Several processes may
    write at once: each has a number of its own. After an error there is no new number.

    Args:
        folder: where the numbers are; it is made if it is missing.
        write: called with the path to write the new folder to.
    """
    os.makedirs(folder, exist_ok=True)
    with _partial(os.path.join(folder, "next")) as unfinished:
        write(unfinished)
        _sync_below(unfinished)
        while True:
            path = os.path.join(folder, str(max(numbers(folder), default=0) + 1))
            try:
                os.rename(unfinished, path)
                break
            except OSError as error:
                # Another process has taken the number in the meantime.
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
        _sync(folder)
    return path


def numbers(folder: str) -> list[int]:
    """The numbers among the names in a folder, in order; none if there is none."""
    if not os.path.isdir(folder):
        return []
    names = os.listdir(folder)
    return sorted(int(name) for name in names if re.fullmatch("0|[1-9][0-9]*", name))


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[str]:
    """Yields a path to write a file to, which replaces `path` at the end.

    The parent folder must exist. After an error, `path` is unchanged. The yielded path
    has the same file name, extension included.

    Args:
        path: the file to write; an existing file is replaced.

    Raises:
        OSError: if writing fails, for example on a full disk; it names `path`.
    """
    path = os.path.abspath(os.fspath(path))
    with _partial(path) as unfinished:
        yield unfinished
        _sync(unfinished)
        os.replace(unfinished, path)
        _sync(os.path.dirname(path))


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


def remove_partial(directory: str) -> None:
    """Removes the partial folders of killed processes in and below a folder."""
    for folder, names, _ in os.walk(directory):
        _remove_dead(folder, names)


@contextlib.contextmanager
def _partial(path):
    """A path with the file name of `path`, in a new locked folder beside it."""
    parent, name = os.path.split(os.path.abspath(path))
    # It has the same parent, so that the last step is one rename.
    with temporary_folder(parent) as temporary:
        try:
            yield os.path.join(temporary, name)
        except OSError as error:
            # On a full disk, h5py and `write` name no file, `open` the partial one.
            named = os.fspath(error.filename or temporary)
            if not named.startswith(temporary):
                raise
            reason = f"{error.strerror or error}, while writing {path}"
            number = [] if error.errno is None else [error.errno]
            raise OSError(*number, reason) from error
        except RuntimeError as error:
            # h5py raises it if the disk is full when it closes a file.
            number = re.search(r"errno = (\d+)", str(error))
            if number is None:
                raise
            reason = os.strerror(int(number[1]))
            raise OSError(int(number[1]), f"{reason}, while writing {path}") from error


def _locked_folder(parent):
    while True:
        folder = tempfile.mkdtemp(prefix=PARTIAL, dir=parent)
        lock = _lock(folder, os.O_CREAT)
        # Before it was locked, another process may have removed it as unlocked.
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
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _sync_below(path):
    """Flushes a folder with all that is in it."""
    for folder, _, names in os.walk(path):
        for name in names:
            _sync(os.path.join(folder, name))
        _sync(folder)


def _sync(path):
    """Flushes a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
