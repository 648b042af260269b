"""The list of a published folder's files, which is written last."""

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping

from tfeff.storage.place import Place, Refused, is_inside
from tfeff.utils.digests import sha256
from tfeff.utils.partial import PARTIAL
from tfeff.utils.reading import walk

NAME = "tfeff-manifest.json"
# A list of all objects, while files are being uploaded or deleted.
UNFINISHED = "tfeff-unfinished.json"
# Files of a folder that tfeff has uploaded.
OF_UPLOADS = (NAME, UNFINISHED)
_FORMAT = 1
# Digests that this process has computed, by the file's device, inode, size and time.
_known: dict[tuple, str] = {}
_MOST_KNOWN = 100_000
_SETTLED = 2_000_000_000  # Nanoseconds; FAT has the coarsest times of files.


@dataclasses.dataclass(frozen=True)
class File:
    """A file of a published folder.

    Attributes:
        size: its bytes.
        sha256: its digest.
        at: the name of the object that holds it. A new version of a file is a new
            object: what a manifest names does not change while the manifest is there.
    """

    size: int
    sha256: str
    at: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The files of a published folder by name."""

    files: Mapping[str, File]

    def to_bytes(self) -> bytes:
        """The content of `tfeff-manifest.json`."""
        files = {}
        for name, file in sorted(self.files.items()):
            files[name] = {"size": file.size, "sha256": file.sha256}
            if file.at != name:
                files[name]["at"] = file.at
        return json.dumps({"format": _FORMAT, "files": files}, indent=1).encode()

    @classmethod
    def parse(cls, content: bytes) -> "Manifest":
        """The manifest that `to_bytes` gave.

        Raises:
            ValueError: if it is damaged, or names files outside of the folder.
        """
        try:
            record = json.loads(content)
            if record["format"] != _FORMAT:
                raise ValueError(f"its format is {record['format']!r}, not {_FORMAT}")
            files = {
                _checked(name): File(
                    int(file["size"]),
                    str(file["sha256"]),
                    _checked(file.get("at", name)),
                )
                for name, file in record["files"].items()
            }
        except (
            AttributeError,
            KeyError,
            OverflowError,  # The size is infinite.
            RecursionError,
            TypeError,
        ) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        return cls(files)

    @property
    def version(self) -> str:
        """The digest of the manifest, which identifies it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def same_content(self, other: "Manifest") -> bool:
        """Whether the files are the same, wherever they lie."""
        return same_digests(self.files, other.files)

    def below(self, folder: str) -> dict[str, File]:
        """The files of a folder in it, by their names in the whole; or one file."""
        start = folder and f"{folder}/"
        return {
            name: file
            for name, file in self.files.items()
            if name == folder or name.startswith(start)
        }


def read_manifest(place: Place, name: str = NAME) -> Manifest | None:
    """The manifest of the folder, or None.

    Raises:
        ValueError: if it is damaged, or names files outside of the folder.
    """
    content = place.read(name)
    if content is None:
        return None
    try:
        return Manifest.parse(content)
    except ValueError as error:
        raise ValueError(
            f"`{place.name}` must have a whole {name}. Received: "
            f"{place.name}={place.url!r}, whose {name} is damaged: {error}"
        ) from error


def find_manifest(place: Place) -> tuple[Place, Manifest, str] | None:
    """The manifest of the place or of a folder above it that has the place.

    Returns:
        The folder of the manifest, the manifest, and the place's name in it; or None.
    """
    folder: Place | None = place
    while folder is not None:
        inside = place.url[len(folder.url) :].strip("/")
        try:
            manifest = read_manifest(folder)
        except Refused:
            if not inside:
                raise
            return None  # The user's rights end below: nobody asked for what is above.
        if manifest is not None and (not inside or manifest.below(inside)):
            return folder, manifest, inside
        folder = folder.parent
    return None


def local_files(
    folder: str, skip: Iterable[str] = (), follow_links: bool = False
) -> dict[str, str]:
    """Paths of a folder's files by name, without what is unfinished or tfeff's own.

    Args:
        folder: the folder, which may be missing.
        skip: names of files to leave out, in folders below, too.
        follow_links: whether links to folders are followed; links that lead nowhere
            are then among the files, and else left out.

    Raises:
        OSError: if a folder cannot be read.
    """
    found = {}
    for parent, folders, names in walk(folder, follow_links):
        folders[:] = [name for name in folders if not name.startswith(PARTIAL)]
        for name in names:
            path = os.path.join(parent, name)
            inside = os.path.relpath(path, folder)
            is_own = inside in (NAME, UNFINISHED) or name in skip
            if not is_own and (follow_links or os.path.exists(path)):
                found[inside] = path
    return found


def manifest_of(paths: Mapping[str, str]) -> Manifest:
    """The manifest of local files by name."""
    return Manifest(
        {
            name: File(os.path.getsize(path), digest(path), name)
            for name, path in paths.items()
        }
    )


def same_digests(files: Mapping[str, File], others: Mapping[str, File]) -> bool:
    """Whether there are the same files with the same digests."""
    return {name: file.sha256 for name, file in files.items()} == {
        name: file.sha256 for name, file in others.items()
    }


def digest(path: str) -> str:
    """The SHA-256 of a file, computed once for each version of it."""
    status = os.stat(path)
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if key in _known:
        return _known[key]
    now = time.time_ns()
    found = sha256(path)
    # Another version may come within a tick of the system's clock, with an equal time.
    if now - status.st_mtime_ns > _SETTLED:
        if len(_known) == _MOST_KNOWN:  # Most are of copies, read once.
            _known.clear()
        _known[key] = found
    return found


def _checked(name):
    if not isinstance(name, str) or not is_inside(name):
        raise ValueError(f"{name!r} is no name within the folder")
    return name
