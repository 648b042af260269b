"""SHA-256 digests of files, in files that `sha256sum --check` reads.

`SHA256SUMS` is of the files of a folder and below, `tokenizer.spm.sha256` of one file.
"""

import hashlib
import os
import re
from collections.abc import Container, Iterable, Mapping
from typing import IO

import numpy as np

from tfeff.utils.files import write_text
from tfeff.utils.reading import is_there, walk

FILE_NAME = "SHA256SUMS"
SUFFIX = ".sha256"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\0]+)")


def write_digests(folder: str, names: Iterable[str] | None = None) -> None:
    """Writes `SHA256SUMS`.

    Args:
        folder: the folder.
        names: the files whose digests are written, as relative paths; other digests
            stay unchanged. `None` writes the digests of all files in and below the
            folder, and removes all others.

    Raises:
        ValueError: if `names` is given and an existing `SHA256SUMS` is damaged.
    """
    if names is None:
        digests, names = {}, files_below(folder)
    else:
        digests = known_digests(folder)
    digests |= {name: sha256(os.path.join(folder, name)) for name in names}
    write_list(os.path.join(folder, FILE_NAME), digests)


def check_digests(folder: str, names: Container[str] | None = None) -> None:
    """Compares the files that `SHA256SUMS` names with their digests.

    Args:
        folder: the folder.
        names: the files to compare; the others must only exist. `None` means all.

    Raises:
        FileNotFoundError: if the folder has no `SHA256SUMS`.
        ValueError: if files are missing or differ; it names them.
    """
    damaged = [
        name
        for name, digest in read_digests(folder).items()
        if not _is_file_below(folder, name)
        or (names is None or name in names)
        and sha256(os.path.join(folder, name)) != digest
    ]
    if damaged:
        raise ValueError(
            f"{folder} is damaged. These files are missing or differ from "
            f"{FILE_NAME}: {', '.join(damaged)}"
        )


def check_file(path: str, folder: str | None = None) -> None:
    """Compares a file with the digests that lie beside it, if there are any.

    Args:
        path: the file; it may be missing.
        folder: where its `SHA256SUMS` is; `None` means the file's folder.

    Raises:
        ValueError: if it differs, or the digests are damaged themselves.
    """
    for list_path in (
        path + SUFFIX,
        os.path.join(folder or os.path.dirname(path), FILE_NAME),
    ):
        if os.path.lexists(list_path):
            if _is_cut_off(list_path):
                raise _damage(list_path, [list_path])
            compare(list_path, os.path.relpath(path, os.path.dirname(list_path) or "."))


def compare(list_path: str, only: str | None = None) -> None:
    """Compares files with the digests that a file has of them.

    Files that are missing were deleted by somebody, which is no damage.

    Args:
        list_path: the file of digests, in the folder that its names start from.
        only: the name of the file to compare; `None` means all.

    Raises:
        ValueError: naming the files that differ.
    """
    digests = read_list(list_path)
    if only is None and not all(name for _, name in digests):
        raise _damage(list_path, [list_path])
    folder = os.path.dirname(list_path)
    damaged = [
        path
        for digest, name in digests
        if only in (None, name)
        and os.path.isfile(path := os.path.join(folder, name))
        and sha256(path) != digest
    ]
    if damaged:
        raise _damage(list_path, damaged)


def _is_cut_off(list_path):
    """Whether digests are no file, or one that is empty or ends within a digest.

    Those of somebody else may have lines of another form.
    """
    if not os.path.isfile(list_path):  # A folder, or a link to what is missing.
        return True
    with open(list_path, "rb") as file:
        content = file.read()
    return not content or bool(re.search(rb"(^|\n)[0-9a-f]{1,63}\Z", content))


def _damage(list_path, damaged):
    return ValueError(
        f"Damaged since it was written: {', '.join(damaged)}. It is not as "
        f"{os.path.basename(list_path)} has it, unless that file is the damaged "
        "one. Restore the file, or delete it where a run makes it again. If it was "
        f"changed on purpose, delete {list_path}."
    )


def write_list(list_path: str, digests: Mapping[str, str]) -> None:
    """Writes the digests of files by their names, which need not be UTF-8."""
    write_text(list_path, _text(digests), errors="surrogateescape")


def read_list(list_path: str) -> list[tuple[str, str]]:
    """The digests and names of a file of digests; no name where a line is damaged."""
    if not os.path.isfile(list_path):
        return [("", "")]
    with open(list_path, "rb") as file:
        text = file.read().decode("utf-8", "surrogateescape")
    lines = text.removesuffix("\n").split("\n")
    if not text.endswith("\n"):
        lines.append("")  # The end is missing.
    found = (_LINE.fullmatch(line) for line in lines)
    return [(line[1], line[2]) if line else ("", "") for line in found]


def read_digests(folder: str) -> dict[str, str]:
    """The digests in `SHA256SUMS` by the files' relative paths.

    Raises:
        FileNotFoundError: if the folder has no `SHA256SUMS`.
        ValueError: if it is damaged.
    """
    path = os.path.join(folder, FILE_NAME)
    with open(path, "rb") as file:
        content = file.read()
    try:
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        pairs = [line.split("  ", 1) for line in lines[:-1]]
        digests = {name: digest for digest, name in pairs}
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not content:
        raise ValueError(f"{path} is damaged: it is empty")
    if _text(digests).encode("utf-8", "surrogateescape") != content:
        raise ValueError(f"{path} is damaged: its lines are unsorted or incomplete")
    return digests


def known_digests(folder: str) -> dict[str, str]:
    """`read_digests`; none where the folder has no `SHA256SUMS`."""
    has_digests = is_there(os.path.join(folder, FILE_NAME))
    return read_digests(folder) if has_digests else {}


def files_below(folder: str) -> list[str]:
    """All files in and below the folder except `SHA256SUMS`, as relative paths.

    Those of linked folders, too.
    """
    names = sorted(
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, files in walk(folder, follow_links=True)
        for name in files
    )
    return [name for name in names if name != FILE_NAME]


def sha256(path: str) -> str:
    """The digest of a file, 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return sha256_of(file)


def sha256_of(file: IO[bytes]) -> str:
    """The digest of what is left to read of an open file."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def sha256_of_arrays(arrays: Iterable[np.ndarray]) -> str:
    """The digest of the bytes of arrays, in their order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _text(digests):
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def _is_file_below(folder, name):
    inside = not os.path.isabs(name) and ".." not in name.split(os.sep)
    return inside and os.path.isfile(os.path.join(folder, name))
