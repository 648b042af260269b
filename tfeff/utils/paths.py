"""Paths, before anything is read or written there."""

import glob
import os

from tfeff.utils.checks import check_path


def check_new_path(name: str, path: object, advice: str = "") -> str:
    """Returns `path` as an absolute path if it does not exist yet, else raises.

    Args:
        name: the argument, for errors.
        path: its value.
        advice: what to do where it exists, a sentence without its full stop.
    """
    given = check_path(name, path)
    absolute = os.path.abspath(given)
    if exists(name, given):
        raise ValueError(
            f"`{name}` must not exist yet. Received: {name}={given!r}"
            f"{advice and f'. {advice}'}"
        )
    return absolute


def exists(name: str, path: str) -> bool:
    """Whether something has a path; an error that names the argument if none can."""
    try:
        os.lstat(os.path.abspath(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ValueError(
            f"`{name}` must be a path that can be made. Received: "
            f"{name}={path!r}: {error.strerror}"
        ) from error
    return True


def is_name(value: object) -> bool:
    """Whether a value is a name in a folder, not a path that may lead out of it."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        return False
    return os.path.basename(value) == value and "\0" not in value


def matches(pattern: str) -> list[str]:
    """The path itself where something has it, else the paths that it matches as a glob.

    Names of files may have the characters of globs, such as `runs/rate[1e-4]`, and so
    may those of folders: the part of a pattern that is a folder stands for itself.
    """
    if os.path.lexists(pattern):
        return [pattern]
    folder, rest = os.path.split(pattern)
    while rest and not os.path.isdir(folder or os.curdir):
        folder, name = os.path.split(folder)
        rest = os.path.join(name, rest) if name else ""
    if rest:
        pattern = os.path.join(glob.escape(folder), rest)
    return sorted(glob.glob(pattern, recursive=True))


def check_utf8(name: str, path: str) -> None:
    """Raises unless a path is UTF-8: TensorFlow takes no others."""
    try:
        os.path.abspath(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be UTF-8. Received: {name}={path!r}"
        ) from error


def check_model_path(name: str, path: str) -> None:
    """Raises where TensorFlow could not read SavedModels and checkpoints.

    It takes the path of their variables for a pattern, in which `[` and a backslash do
    not stand for themselves.
    """
    if not {"[", "\\"}.isdisjoint(path):
        raise ValueError(
            f"`{name}` must have no '[' and no backslash: TensorFlow reads no "
            f"SavedModel or checkpoint of such a path. Received: {name}={path!r}"
        )
