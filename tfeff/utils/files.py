"""Atomic writing: files and folders appear when they are complete, or not at all."""

import contextlib
import errno
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from tfeff.utils.disks import sync, sync_below
from tfeff.utils.partial import partial_path
from tfeff.utils.paths import check_new_path, check_path, check_utf8

TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


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
        if error.errno in (*TAKEN, errno.ENOTDIR):  # a file where a folder is to be
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
    with partial_path(path) as unfinished:
        yield unfinished
        sync_below(unfinished)
        if replace and os.path.isdir(path):
            _exchange(unfinished, path)
        elif os.path.isdir(unfinished):
            os.rename(unfinished, path)
        else:
            _add_file(unfinished, path)
        sync(os.path.dirname(path))


def _replaced_mark(name):
    """The beginning of the name that a replaced folder gets until it is deleted."""
    # Names have 255 bytes at most.
    return f"{os.fsencode(name)[:200].decode('utf-8', 'ignore')}.replaced-"


def _add_file(new, path):
    """Gives a new file a path that nothing has: `os.rename` would replace a file."""
    sync(new)
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
    old = tempfile.mkdtemp(prefix=_replaced_mark(name), dir=parent)
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
    with partial_path(os.path.join(folder, os.path.basename(path)), path) as unfinished:
        yield unfinished
        sync(unfinished)
        os.replace(unfinished, target)
        sync(folder)


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


def put_back(path: str) -> None:
    """Gives a folder back its path, which a process that was killed has taken.

    `atomic_folder` then leaves it whole as `NAME.replaced-…`, between two renames.
    Older ones, and those that a kill behind the second rename leaves, are removed.
    """
    left = _replaced(path)
    # A kill before the first rename leaves an empty one.
    whole = [name for name in left if os.listdir(name)]
    if not os.path.lexists(path) and whole:
        newest = max(whole, key=os.path.getmtime)
        os.rename(newest, path)
        left.remove(newest)
    for name in left:
        remove_folder(name)


def remove_with_replaced(path: str) -> None:
    """Removes a folder, unless it is a link, and what killed processes left of it."""
    if os.path.isdir(path) and not os.path.islink(path):
        remove_folder(path)
    for name in _replaced(path):
        remove_folder(name)


def _replaced(path):
    """The folders that `atomic_folder` has left beside the one that it replaced."""
    parent, name = os.path.split(path)
    found = glob.glob(glob.escape(os.path.join(parent, _replaced_mark(name))) + "*")
    return [x for x in found if os.path.isdir(x) and not os.path.islink(x)]


def set_aside(path: str, mark: str) -> str:
    """Renames a file or folder to the first free `PATH.MARK-N`, which is returned."""
    number = 1
    while os.path.lexists(kept := f"{path}.{mark}-{number}"):
        number += 1
    os.rename(path, kept)
    return kept


def copy_file(source: str, path: str) -> None:
    """Copies a file, whole or not at all."""
    with atomic_file(path) as new:
        shutil.copyfile(source, new)
