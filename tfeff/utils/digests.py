"""SHA-256 digests of a folder's files, in a file that `sha256sum --check` reads."""

import hashlib
import os
from collections.abc import Container, Iterable

from tfeff.utils.files import atomic_file

FILE_NAME = "SHA256SUMS"


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
    path = os.path.join(folder, FILE_NAME)
    if names is None:
        digests, names = {}, files_below(folder)
    else:
        digests = read_digests(folder) if os.path.exists(path) else {}
    digests |= {name: sha256(os.path.join(folder, name)) for name in names}
    with atomic_file(path) as new, open(new, "w", encoding="utf-8") as file:
        file.write(_text(digests))


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
        lines = content.decode("utf-8").split("\n")
        pairs = [line.split("  ", 1) for line in lines[:-1]]
        digests = {name: digest for digest, name in pairs}
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if _text(digests).encode("utf-8") != content:
        raise ValueError(f"{path} is damaged: its lines are unsorted or incomplete")
    return digests


def files_below(folder: str) -> list[str]:
    """All files in and below the folder except `SHA256SUMS`, as relative paths."""
    names = sorted(
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, files in os.walk(folder)
        for name in files
    )
    return [name for name in names if name != FILE_NAME]


def sha256(path: str) -> str:
    """The digest of a file, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _text(digests):
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def _is_file_below(folder, name):
    inside = not os.path.isabs(name) and ".." not in name.split(os.sep)
    return inside and os.path.isfile(os.path.join(folder, name))
