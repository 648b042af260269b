"""Reading of text and JSON files. Errors name the file, the line and the value."""

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

from tfeff.utils.checks import has_surrogate, shortened
from tfeff.utils.near_misses import closest
from tfeff.utils.paths import check_path

AS_BY_PANDAS = (
    "as by pandas' to_csv(path, sep='\\t', quoting=3, index=False) of texts without "
    "tabs and line breaks, which table['text'].str.split().str.join(' ') makes spaces"
)
_KINDS = {str: "a string", int: "an integer", list: "a list", dict: "an object"}


def check_existing(name: str, value: Any) -> str:
    """Returns the path of what exists, or raises."""
    path = check_path(name, value)
    if not os.path.exists(path):
        raise ValueError(f"`{name}` must exist. Received: {name}={path!r}")
    return path


def first_file(folder: str, *names: str) -> str:
    """The path of the first of the files that exists."""
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if os.path.isfile(path):
            return path
    tables = [path.removesuffix(".tsv") + ".csv" for path in paths]
    found = next(filter(os.path.isfile, tables), None)
    parent, advice = os.path.dirname(paths[0]), ""
    if found:
        table = os.path.relpath(found, folder)
        advice = f". {table} must be written anew with tabs, {AS_BY_PANDAS}."
    elif os.path.isdir(parent) and (there := sorted(os.listdir(parent))):
        within = os.path.relpath(parent, folder)
        which = "which" if within == "." else f"whose folder {within}"
        advice = f", {which} has {', '.join(there[:9])}"
    raise ValueError(
        f"`folder` must hold {' or '.join(names)}. Received: {folder!r}{advice}"
    )


def lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """Yields the number, from 1, and the text of each line that is not blank.

    Only a line feed, or carriage return and line feed, ends a line, or in a file
    without a line feed a carriage return; other characters that Unicode counts as line
    breaks are text. `.gz` files are decompressed.
    """
    return ((number, line) for number, line in numbered_lines(path) if line.strip())


def numbered_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """As `lines`, with blank lines; a file of nothing else is an error."""
    found = False
    content = _bytes(path)
    end = b"\n" if b"\n" in content else b"\r"
    for number, raw in enumerate(content.split(end), start=1):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise malformed(path, number, "must be UTF-8 text", str(error)) from error
        if number == 1:
            line = line.removeprefix("\ufeff")  # a byte-order mark
        found = found or bool(line.strip())
        yield number, line
    if not found:
        raise ValueError(f"{os.fspath(path)} must hold text. Received: an empty file")


def json_lines(path: str | os.PathLike) -> Iterator[tuple[str, dict]]:
    """Yields each line's file and number, for error messages, and its object."""
    for number, line in lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise malformed(path, number, "must be JSON", str(error)) from error
        where = f"{os.fspath(path)}, line {number}"
        yield where, checked(record, dict, where)


def json_file(path: str | os.PathLike) -> dict:
    """The object that a whole file holds."""
    raw = _bytes(path)
    if not raw.strip():
        raise ValueError(f"{os.fspath(path)} must hold text. Received: an empty file")
    try:
        record = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise malformed(path, number, "must be UTF-8 text", str(error)) from error
    except json.JSONDecodeError as error:
        expected = "must be JSON, an object that is the whole file"
        raise malformed(path, error.lineno, expected, error.msg) from error
    except (ValueError, RecursionError) as error:
        raise malformed(path, 1, "must be JSON", str(error)) from error
    return checked(record, dict, os.fspath(path))


def field(record: dict, key: str, kind: type, where: str):
    """The value of a required key, which must be of type `kind`."""
    if key not in record:
        near = closest(key, record)
        raise ValueError(
            f"{where}: must have {key!r}. Received: {shortened(sorted(record))}"
            + (f". Write {key!r} for {near!r}." if near else "")
        )
    return checked(record[key], kind, f"{where}, {key!r}")


def checked(value: Any, kind: type[Any], where: str) -> Any:
    """Returns `value` if it is of type `kind`, else raises."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{where}: must be {_KINDS[kind]}. Received: {value!r:.80}")
    if kind is str and has_surrogate(value):
        raise ValueError(f"{where}: must be Unicode text. Received: {value!a:.80}")
    return value


def malformed(path, number: int, expected: str, received: str) -> ValueError:
    """The error of a malformed line."""
    return ValueError(
        f"{os.fspath(path)}, line {number}: {expected}. Received: {shortened(received)}"
    )


def _bytes(path):
    path = os.fspath(path)
    try:
        with (
            gzip.open(path)
            if path.lower().endswith(".gz")
            else open(path, "rb") as file
        ):
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot read {path!r}: {error}") from error
