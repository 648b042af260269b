"""The base of all corpora: documents that can be read again, and files."""

import contextlib
import functools
import glob
import gzip
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tfeff.storage.streams import matching_urls, open_stream
from tfeff.utils.checks import check_ordered
from tfeff.utils.paths import check_path, is_url, matches


class Part(NamedTuple):
    """Consecutive documents of a corpus, which other processes can read, too."""

    name: str  # of the file, for messages
    read: Callable[[], Iterator[str]]  # starts a reading; it can be pickled
    file: str | None = None  # its absolute path or URL, if they are all of one file


class Corpus:
    """Documents that can be read more than once: those of its parts, in order."""

    def __init__(self, parts: Iterable[Part]):
        self.parts = tuple(parts)

    def __repr__(self) -> str:
        names = [part.name for part in self.parts]
        first = ", ".join(map(repr, names[:3])) + ", …" * (len(names) > 3)
        return f"<Corpus of {len(names):,} parts: {first}>"

    def __iter__(self) -> Iterator[str]:
        return (document for part in self.parts for document in part.read())


def parts_of(documents: Iterable[str]) -> tuple[Part, ...]:
    """The parts of a corpus; documents of any other kind are one part."""
    if isinstance(documents, Corpus):
        return documents.parts
    return (Part("documents", functools.partial(iter, documents)),)


def matching_files(patterns: str | os.PathLike | Sequence) -> list[str]:
    """Paths of the readable files that a path or glob, or a list of them, matches.

    In the order of the patterns, those of one pattern by their names, each file once,
    at its first place.

    Raises:
        ValueError: naming `patterns`, if one matches no file, or a file is empty or
            cannot be read.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    check_ordered("patterns", patterns, "a path or a list of paths")
    found: dict[str, str] = {}
    others: list[str] = []
    for pattern in patterns:
        files, of_pattern = _match(pattern)
        for path in files:
            found.setdefault(absolute(path), path)
        others += of_pattern
    paths = list(found.values())
    if not paths:
        raise ValueError(f"`patterns` must not be empty. Received: {patterns=!r:.80}")
    for path in paths:
        try:
            with open_stream(path) as file:
                if not file.read(1):
                    raise ValueError(
                        f"`patterns` must match files that hold text. Received: {path} "
                        "is empty"
                    )
        except OSError as error:
            raise ValueError(
                f"`patterns` must match readable files. Received: {path}: "
                f"{error.strerror or error}"
            ) from error
    if left_out := _left_out(others, found):
        warnings.warn(
            f"`patterns` match {len(left_out)} paths that are no files, such as "
            f"{left_out[0]}: they are left out. '**' matches files in folders",
            stacklevel=3,
        )
    return paths


def read_lines(absolute_path: str, path: str) -> Iterator[bytes]:
    """The lines of a file, decompressed if its name ends in `.gz`.

    In a file without a line feed, carriage returns end lines.

    Args:
        absolute_path: the file.
        path: its name in messages.

    Raises:
        ValueError: at the line behind which a compressed file is damaged.
    """
    number = 0
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open_stream(absolute_path))
        if path.lower().endswith(".gz"):
            file = stack.enter_context(gzip.open(file))
        try:
            for line in file:
                is_whole_file = not number and not line.endswith(b"\n")
                for part in line.splitlines(True) if is_whole_file else [line]:
                    number += 1
                    yield part
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"The file {path} is damaged behind line {number}: {error}"
            ) from error


def absolute(path: str) -> str:
    """The path or URL of the same file in every working directory."""
    return path if is_url(path) else os.path.abspath(path)


def _match(pattern: str | os.PathLike) -> tuple[list[str], list[str]]:
    """The files that a pattern matches, and what else it matches."""
    if is_url(pattern):
        return matching_urls(str(pattern)), []
    pattern = check_path("patterns", pattern)
    found = matches(pattern)
    files = [path for path in found if os.path.isfile(path)]
    if not files:
        what = f"which matches none (relative to {os.getcwd()})"
        if os.path.exists(pattern):
            what = "which is a pipe or a device: texts are read more than once"
        if os.path.isdir(pattern):
            inside = os.path.join(glob.escape(pattern), "*")
            what = f"a folder: its files are {inside!r}"
        raise ValueError(f"`patterns` must match files. Received: {pattern!r}, {what}")
    return files, sorted(set(found).difference(files))


def _left_out(others, files):
    """Of paths that are no files, those that hold something, of which nothing is read.

    Args:
        others: the paths.
        files: the absolute paths of the files that are read.
    """
    read = set()
    for path in files:
        while (path := os.path.dirname(path)) and path not in read:
            read.add(path)
    left_out = [path for path in others if absolute(path) not in read]
    return [path for path in left_out if not os.path.isdir(path) or os.listdir(path)]
