"""Digests of files that are finished, to find what was damaged since.

Both kinds are as `sha256sum --check` reads them: `tokenizer.spm.sha256` is of one file,
`SHA256SUMS` of all files of a folder and below.
"""

import os

from tfeff.training import run_lock
from tfeff.utils.digests import FILE_NAME, sha256
from tfeff.utils.files import PARTIAL, atomic_file

_SUFFIX = ".sha256"


def seal_file(path: str) -> None:
    """Notes the digest of a file beside it, or compares it with the one noted."""
    if os.path.exists(path + _SUFFIX):
        _compare(path + _SUFFIX)
    else:
        _write(path + _SUFFIX, [path])


def seal_folder(folder: str) -> None:
    """Notes the digests of all files of a folder and below."""
    paths = [
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if PARTIAL not in parent
    ]
    own = {os.path.join(folder, name) for name in (FILE_NAME, run_lock.NAME)}
    _write(os.path.join(folder, FILE_NAME), sorted({*paths} - own))


def seal_folder_once(folder: str) -> None:
    """Notes the digests of all files, or compares them with those noted."""
    if os.path.exists(os.path.join(folder, FILE_NAME)):
        check_folder(folder)
    else:
        seal_folder(folder)


def check_folder(folder: str) -> None:
    """Compares the files of a folder with the digests that it has of them.

    Files that are missing were deleted by somebody, which is no damage.

    Raises:
        ValueError: naming the files that differ.
    """
    for name in sorted(os.listdir(folder)):
        if name == FILE_NAME or name.endswith(_SUFFIX):
            _compare(os.path.join(folder, name))


def unseal_folder(folder: str) -> None:
    """Forgets the digests of all files, which may change from now on."""
    if os.path.exists(os.path.join(folder, FILE_NAME)):
        os.remove(os.path.join(folder, FILE_NAME))


def _write(list_path, paths):
    folder = os.path.dirname(list_path)
    lines = [f"{sha256(path)}  {os.path.relpath(path, folder)}\n" for path in paths]
    with atomic_file(list_path) as new, open(new, "w", encoding="utf-8") as file:
        file.writelines(lines)


def _compare(list_path):
    folder = os.path.dirname(list_path)
    with open(list_path, encoding="utf-8", errors="surrogateescape") as file:
        lines = file.read().splitlines()
    damaged = []
    for line in lines:
        digest, _, name = line.partition("  ")
        path = os.path.join(folder, name)
        if not name or "\0" in name:
            damaged.append(list_path)
        elif os.path.isfile(path) and sha256(path) != digest:
            damaged.append(path)
    if damaged:
        raise ValueError(
            f"Damaged since it was written: {', '.join(damaged)}. It is not as "
            f"{os.path.basename(list_path)} has it, unless that file is the damaged "
            "one. Restore the file, or delete it to have it made again."
        )
