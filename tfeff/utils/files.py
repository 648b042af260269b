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
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

from tfeff.utils.checks import check_path
from tfeff.utils.paths import check_new_path, check_utf8

# Exceptions that Keras raises for a complete file, or folder, with damaged content.
DAMAGE = (
    *(AttributeError, KeyError, OSError, OverflowError),
    *(RuntimeError, TypeError, ValueError),
)
# Libraries' own errors have no number, and a damaged file may send its reader to before
# its beginning.
_NOT_REFUSED = (None, errno.ENOENT, errno.ENOTDIR, errno.EINVAL)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
PARTIAL = ".partial-"
_MADE = re.compile(re.escape(PARTIAL) + "[a-z0-9_]{8}")  # As `tempfile` names folders.
_LOCK = ".lock"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


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


def make_folder(name: str, path: str) -> list[str]:
    """Makes a folder and those above it; returns those that it made, inner ones first.

    Args:
        name: the argument that the folder was given as, for errors.
        path: the folder.

    Raises:
        ValueError: if it cannot be made; then none of those above is.
    """
    missing, folder = [], os.path.abspath(check_path(name, path))
    check_utf8(name, path)
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
def new_path(name: str, path: object, advice: str = "") -> Iterator[str]:
    """As `atomic_folder`, of a path that nothing has, neither before nor at the end.

    Args:
        name, path, advice: as of `check_new_path`.

    Raises:
        ValueError: if the path exists, also where it appears meanwhile, cannot be
            made, or is not UTF-8.
    """
    absolute = check_new_path(name, path, advice)
    check_utf8(name, absolute)
    try:
        with atomic_folder(absolute) as unfinished:
            yield unfinished
    except OSError as error:
        if error.errno in (*_TAKEN, errno.ENOTDIR):  # a file where a folder is to be
            check_new_path(name, path, advice)
        raise


@contextlib.contextmanager
def atomic_folder(path: str, replace: bool = False) -> Iterator[str]:
    """Yields a path to write a folder to, which is renamed to `path` at the end.

    Parent folders are created. After an error, `path` is as it was. What is written may
    be a new file, too, which replaces no other.

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
        elif os.path.isdir(unfinished):
            os.rename(unfinished, path)
        else:
            _add_file(unfinished, path)
        _sync(os.path.dirname(path))


def _add_file(new, path):
    """Gives a new file a path that nothing has: `os.rename` would replace a file."""
    _sync(new)
    try:
        os.link(new, path)
        return
    except FileExistsError:
        raise
    except OSError:  # The file system has no links.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    try:
        os.rename(new, path)
    except BaseException:
        os.unlink(path)
        raise


def _exchange(new, path):
    """Exchanges the names of two folders; after an error both have their own."""
    parent, name = os.path.split(path)
    # Not in the partial folder, which the next process would remove with its content.
    # Names have 255 bytes at most.
    short = os.fsencode(name)[:200].decode("utf-8", "ignore")
    old = tempfile.mkdtemp(prefix=f"{short}.replaced-", dir=parent)
    try:
        os.rename(path, old)
        os.rename(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.rename(old, path)  # Fails, rightly, if `old` is empty.
        with contextlib.suppress(OSError):
            os.rmdir(old)
        raise
    os.rename(old, new)


def remove_folder(path: str) -> None:
    """Removes a folder with all that is in it, if it is there.

    Raises:
        OSError: if it cannot be removed; it names the folder.
    """
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        reason = error.strerror or error
        raise OSError(error.errno, f"{reason}, while removing {path}") from error


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
        _remove_locked(folder)
        os.close(lock)


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
        if error.errno not in _FULL:
            raise
        reason = f"{error.strerror}, for temporary files; TMPDIR names another place"
        raise OSError(error.errno, reason, tempfile.gettempdir()) from error


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
            last = max(map(int, numbers(folder)), default=0)
            path = os.path.join(folder, str(last + 1))
            try:
                os.rename(unfinished, path)
                break
            except OSError as error:
                # Another process has taken the number in the meantime.
                if error.errno not in _TAKEN:
                    raise
        _sync(folder)
    return path


def numbers(folder: str) -> list[str]:
    """The names in a folder that are numbers, in their order; none if there is none."""
    return in_order(os.listdir(folder)) if os.path.isdir(folder) else []


def in_order(names: Iterable[str]) -> list[str]:
    """The names that TensorFlow Serving reads as numbers, in their order.

    It takes zeros before them, as in `00000007`, and 63 bits.
    """
    found = (name for name in names if re.fullmatch("[0-9]+", name))
    return sorted((name for name in found if int(name) < 2**63), key=int)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike) -> Iterator[str]:
    """Yields a path to write a file to, which replaces `path` at the end.

    The parent folder must exist. After an error, `path` is unchanged. The yielded path
    has the same file name, extension included.

    Args:
        path: the file to write; an existing file is replaced, that behind a link, too.

    Raises:
        OSError: if `path` is something other than a file, such as a device, or writing
            fails, for example on a full disk; it names `path`.
    """
    path = os.path.abspath(os.fspath(path))
    check_regular(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    with _partial(os.path.join(folder, os.path.basename(path)), path) as unfinished:
        yield unfinished
        _sync(unfinished)
        os.replace(unfinished, target)
        _sync(folder)


def check_regular(path: str) -> None:
    """Raises an OSError where something other than a file would be replaced by one."""
    if os.path.exists(path) and not os.path.isfile(path):
        is_folder = os.path.isdir(path)
        number = errno.EISDIR if is_folder else errno.EINVAL
        what = "a folder" if is_folder else "a device, a pipe or a socket"
        raise OSError(number, f"it is {what}", path)


def write_text(path: str | os.PathLike, text: str, **open_options: Any) -> None:
    """Writes text to a file, in UTF-8, as `atomic_file` writes one.

    Args:
        path: the file to write; an existing file is replaced.
        text: its content.
        **open_options: further arguments of `open`, such as `newline=""`.

    Raises:
        OSError: if writing fails.
    """
    with (
        atomic_file(path) as unfinished,
        open(unfinished, "w", encoding="utf-8", **open_options) as file,
    ):
        file.write(text)


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Writes a file as `atomic_file` writes one; an existing file is replaced.

    Raises:
        OSError: if writing fails.
    """
    with atomic_file(path) as unfinished, open(unfinished, "wb") as file:
        file.write(content)


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
        if error.errno in _FULL:
            raise


def set_aside(path: str, mark: str) -> str:
    """Renames a file or folder to the first free `PATH.MARK-N`, which is returned."""
    number = 1
    while os.path.lexists(kept := f"{path}.{mark}-{number}"):
        number += 1
    os.rename(path, kept)
    return kept


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
def _partial(path, shown=None):
    """A path with the file name of `path`, in a new locked folder beside it.

    Errors name `shown`, by default `path`.
    """
    parent, name = os.path.split(os.path.abspath(path))
    try:
        # It has the same parent, so that the last step is one rename.
        with temporary_folder(parent) as temporary:
            yield os.path.join(temporary, name)
    except Exception as error:
        found = _failure(error, os.path.join(parent, PARTIAL))
        if found is None:
            raise
        number, reason = found
        given = [] if number is None else [number]
        raise OSError(*given, f"{reason}, while writing {shown or path}") from error


def _failure(error, temporary):
    """The number and reason of a system's error in writing; None of other errors.

    `temporary` is what the names of folders for unfinished files begin with.
    """
    # HDF5's errors, and those of safetensors, which are no OSErrors.
    found = re.search(r"(?:errno =|\(os error) (\d+)", str(error))
    if found:
        return int(found[1]), os.strerror(int(found[1]))
    if isinstance(error, OSError):
        # On a full disk, `write` names no file, `open` the partial one.
        named = os.fspath(error.filename or temporary)
        if not named.startswith(temporary):
            return None
        return error.errno, error.strerror or str(error)
    if not hasattr(error, "error_code"):
        return None
    # TensorFlow's have the file and the reason, as "FILE; No space left on device". Its
    # converters write to the system's folder for temporary files, too.
    for folder in (temporary, tempfile.gettempdir()):
        found = re.search(rf"{re.escape(folder)}[^;]*; ([^\[\n]+)", str(error))
        number = found and _NUMBERS.get(found[1].strip())
        # A file of the other folder, or one that is missing, may be one that is read.
        if folder != temporary and number in _FULL:
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
        # Before it was locked, another process may have taken it for dead and removed
        # it.
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
