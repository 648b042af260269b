"""Digests of files that are finished, to find what was damaged since.

`tokenizer.spm.sha256` has the digest of one file, `SHA256SUMS` those of all files in a
folder and below. While the files may change again, the latter is `SHA256SUMS.earlier`.
"""

import contextlib
import os

from tfeff.utils.digests import (
    FILE_NAME,
    SUFFIX,
    compare,
    files_below,
    read_list,
    sha256,
    write_list,
)
from tfeff.utils.partial import PARTIAL
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import LOCK

_EARLIER = f"{FILE_NAME}.earlier"


def seal_file(path: str) -> None:
    """Notes the digest of a file beside it, or compares it with the one noted."""
    if is_there(path + SUFFIX):
        compare(path + SUFFIX)
    else:
        write_list(path + SUFFIX, {os.path.basename(path): sha256(path)})


def seal_folder(folder: str) -> None:
    """Notes the digests of all files of a folder and below, see `sealed_names`."""
    digests = {
        name: sha256(os.path.join(folder, name)) for name in sealed_names(folder)
    }
    write_list(os.path.join(folder, FILE_NAME), digests)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, _EARLIER))


def sealed_names(folder: str) -> list[str]:
    """The files of a folder and below whose digests are noted.

    They are all but what is unfinished, is not a file, or has a line break in its name.
    """
    return [
        name
        for name in files_below(folder)
        if os.path.basename(name) not in (LOCK, _EARLIER)
        and not (PARTIAL in name or "\n" in name)
        and os.path.isfile(os.path.join(folder, name))
    ]


def seal_folder_once(folder: str) -> None:
    """Notes the digests of all files, or compares them with those noted."""
    if is_there(os.path.join(folder, FILE_NAME)):
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


def unseal_folder(folder: str) -> None:
    """Sets the digests of all files aside, which may change from now on."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(os.path.join(folder, FILE_NAME), os.path.join(folder, _EARLIER))


def deleted_files(folder: str) -> list[str]:
    """The files that were deleted since their digests were noted and set aside."""
    earlier = os.path.join(folder, _EARLIER)
    noted = read_list(earlier) if is_there(earlier) else []
    names = [name for _, name in noted if name]
    return [n for n in names if not os.path.isfile(os.path.join(folder, n))]


def reseal_folder(folder: str) -> list[str]:
    """Notes the digests that were set aside, but those of files that have changed.

    Those of files that were deleted stay, for `deleted_files`.

    Returns:
        The names of the files that have changed.
    """
    path, earlier = os.path.join(folder, FILE_NAME), os.path.join(folder, _EARLIER)
    if not is_there(earlier):
        return []
    unchanged, changed = {}, []
    # A process that was killed may have noted newer ones.
    if not is_there(path):
        for digest, name in read_list(earlier):
            file = os.path.join(folder, name)
            # Of what is missing it stays known that it was deleted.
            if not os.path.isfile(file) or sha256(file) == digest:
                unchanged[name] = digest
            else:
                changed.append(name)
        if unchanged:
            write_list(path, unchanged)
    os.remove(earlier)
    return changed
