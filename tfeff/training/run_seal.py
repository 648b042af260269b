"""Digests of files that are finished, to find what was damaged since.

`tokenizer.spm.sha256` has the digest of one file, `SHA256SUMS` those of all files in a
folder and below.
"""

import os
from collections.abc import Mapping

from tfeff.training import run_lock
from tfeff.utils.digests import (
    FILE_NAME,
    SUFFIX,
    compare,
    files_below,
    read_list,
    sha256,
)
from tfeff.utils.files import PARTIAL, write_text


def seal_file(path: str) -> None:
    """Notes the digest of a file beside it, or compares it with the one noted."""
    if os.path.exists(path + SUFFIX):
        compare(path + SUFFIX)
    else:
        _write(path + SUFFIX, {os.path.basename(path): sha256(path)})


def seal_folder(folder: str) -> None:
    """Notes the digests of all files of a folder and below.

    It leaves out what is unfinished, is not a file, or has a line break in its name.
    """
    digests = {
        name: sha256(os.path.join(folder, name))
        for name in files_below(folder)
        if os.path.basename(name) != run_lock.NAME
        and not (PARTIAL in name or "\n" in name)
        and os.path.isfile(os.path.join(folder, name))
    }
    _write(os.path.join(folder, FILE_NAME), digests)


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
        if name == FILE_NAME or name.endswith(SUFFIX):
            compare(os.path.join(folder, name))


def unseal_folder(folder: str) -> dict[str, str]:
    """Forgets the digests of all files, which may change from now on; returns them."""
    path = os.path.join(folder, FILE_NAME)
    if not os.path.exists(path):
        return {}
    digests = {name: digest for digest, name in read_list(path)}
    os.remove(path)
    return digests


def reseal_folder(folder: str, digests: Mapping[str, str]) -> None:
    """Notes digests again that were forgotten, of the files that did not change."""
    if not digests or os.path.exists(os.path.join(folder, FILE_NAME)):
        return
    unchanged = {}
    for name, digest in digests.items():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and sha256(path) == digest:
            unchanged[name] = digest
    _write(os.path.join(folder, FILE_NAME), unchanged)


def _write(list_path, digests):
    lines = [f"{digest}  {name}\n" for name, digest in digests.items()]
    # Names of files need not be UTF-8.
    write_text(list_path, "".join(lines), errors="surrogateescape")
