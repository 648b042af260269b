"""Paths, before anything is read or written there."""

import glob
import os
import re
from typing import Any

# A URL, of one of fsspec's schemes, from which `pathlib` has removed a slash.
_URL_OF_ONE_SLASH = re.compile(
    r"(abfss?|adl|az|dbfs|file|ftp|gcs|gs|hdfs|hf|https?|local|memory|oci|oss|s3a?|sftp"
    r"|smb|ssh|tos|webdav|webhdfs):/[^/]",
    re.IGNORECASE,
)


def check_path(name: str, value: Any) -> str:
    """Returns `value` as the string of a local path, or raises.

    Functions that take URLs, too, have replaced them by local paths before
    (`tfeff.storage.arguments`).
    """
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"`{name}` must be a path. Received: {name}={value!r:.80}")
    path = os.fspath(value)
    if "\0" in os.fsdecode(path):
        raise ValueError(
            f"`{name}` must be a path, without NUL. Received: {name}={path!r}"
        )
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be a path that the system can name. "
            f"Received: {name}={path!r}"
        ) from error
    if os.fsdecode(path).partition("/")[0] == "~":
        raise ValueError(
            f"`{name}` must be a path without ~, which shells alone replace, and not "
            f'in --flag=~/…. Give the folder or "$HOME/…". Received: {name}={path!r}'
        )
    if is_url(path):
        advice = ""
        if path.startswith("hf://"):
            hub_name = path.removeprefix("hf://")
            advice = f". `hf download {hub_name} --local-dir FOLDER` fetches it"
        raise ValueError(
            f"`{name}` must be a path on this machine. Received: {name}={path!r}"
            + advice
        )
    if _URL_OF_ONE_SLASH.match(path):
        raise ValueError(
            f"`{name}` must be a string with two slashes where it is a URL: pathlib "
            f"drops a slash. Received: {name}={value!r}"
        )
    return path


def is_url(value: Any) -> bool:
    """Whether a path is a URL, such as `"s3://bucket/run"`."""
    return isinstance(value, str) and bool(re.match(r"[A-Za-z][\w+.-]*://", value))


def is_hub_name(text: str) -> bool:
    """Whether a text can be a name on the Hugging Face hub, such as `"user/model"`."""
    return bool(re.fullmatch(r"(?!\.)[\w.-]+(/[\w.-]+)?", text))


def is_hub_address(text: str) -> bool:
    """Whether a text is the address of a model's page on the Hugging Face hub."""
    name = r"(?!datasets/|spaces/)[\w.-]+/[\w.-]+"
    return bool(re.fullmatch(rf"https://(huggingface\.co|hf\.co)/{name}/?", text))


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
