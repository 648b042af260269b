"""What all corpora are made of: documents that can be read again, and files."""

import glob
import os
from collections.abc import Callable, Iterator, Sequence

from tfeff.storage.streams import matching_urls, open_stream
from tfeff.utils.checks import check_iterable, check_path, is_url


class Corpus:
    """Documents that can be read more than once: `read` starts each reading."""

    def __init__(self, read: Callable[[], Iterator[str]]):
        self._read = read

    def __iter__(self) -> Iterator[str]:
        return self._read()


def matching_files(patterns: str | os.PathLike | Sequence) -> list[str]:
    """Paths of the readable files that a path or glob, or a list of them, matches.

    In the order of the patterns, those of one pattern by their names, each file once.

    Raises:
        ValueError: naming `patterns`, if one matches no file, or a file is empty or
            cannot be read.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    check_iterable("patterns", patterns, "a path or a list of paths")
    paths = list(dict.fromkeys(p for pattern in patterns for p in _match(pattern)))
    if not paths:
        raise ValueError(f"`patterns` must not be empty. Received: {patterns=}")
    for path in paths:
        try:
            with open_stream("patterns", path) as file:
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
    return paths


def _match(pattern: str | os.PathLike) -> list[str]:
    if is_url(pattern):
        return matching_urls("patterns", str(pattern))
    pattern = check_path("patterns", pattern)
    found = [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)
    files = sorted(path for path in found if os.path.isfile(path))
    if not files:
        raise ValueError(
            f"`patterns` must match files. Received: {pattern!r}, which matches none "
            f"(relative to {os.getcwd()})"
        )
    return files
