"""Remote files and folders to local copies."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from tfeff.storage.manifest import (
    NAME,
    UNFINISHED,
    File,
    Manifest,
    digest,
    find_manifest,
    read_manifest,
)
from tfeff.storage.place import Place
from tfeff.storage.staging import staged, staging_dir
from tfeff.storage.threads import in_threads
from tfeff.utils.files import atomic_file, remove_folder
from tfeff.utils.partial import temporary_folder

_ATTEMPTS = 5
# Stands for the size that some web servers do not tell: the file is fetched each time.
_UNTOLD = -1
# Entries of fsspec's information that differ once a file is replaced.
_VERSION = (
    *("ETag", "etag", "md5Hash", "generation", "LastModified", "last_modified"),
    *("updated", "mtime", "modified", "created", "size"),
)
Select = Callable[[Iterable[str]], Iterable[str]]


def fetch_folder(
    name: str, url: str, whole: bool = False, select: Select | None = None
) -> str:
    """As `tfeff.storage.fetch`, of a URL alone.

    Args:
        name: the argument, for errors.
        url: the URL.
        whole: whether it must be a folder that was published with a manifest.
        select: takes the names of the files, returns those that are needed; by default
            all.
    """
    place = Place(name, url)
    for _ in range(_ATTEMPTS):
        found = find_manifest(place)
        if found is None:
            return _fetch_foreign(place, whole, select)
        folder, manifest, inside = found
        copy = _copy(folder, manifest)
        files = _selected(manifest.below(inside), select, inside)
        try:
            fill(folder, files, copy)
            return os.path.join(copy, *inside.split("/")) if inside else copy
        except Changed as error:
            # A run that is at work may have replaced the files since.
            if read_manifest(folder) == manifest:
                raise ValueError(
                    f"`{name}` must be whole. Received: {name}={url!r}, which is "
                    f"damaged: {error}"
                ) from error
    raise OSError(f"{url} changed {_ATTEMPTS} times while it was read")


def is_uploaded(name: str, url: str) -> bool:
    """Whether what is at the URL is of a folder that tfeff uploads, or has uploaded.

    Args:
        name: the argument, for errors.
        url: the URL.
    """
    place = Place(name, url)
    return find_manifest(place) is not None or place.info(UNFINISHED) is not None


def is_published(url: str) -> bool:
    """Whether there is a whole folder at the URL."""
    return read_manifest(Place("path", url)) is not None


def published_files(name: str, url: str) -> list[str]:
    """Names of the files at a URL that are whole: published there, above or in it.

    Args:
        name: the argument, for errors.
        url: the URL of a folder.
    """
    place = Place(name, url)
    found = find_manifest(place)
    if found is not None:
        _, manifest, inside = found
        return [x[len(inside) :].strip("/") for x in manifest.below(inside)]
    names = list(place.files())
    whole = {x.removesuffix(NAME) for x in names if x.count("/") == 1}
    return [x for x in names if f"{x.partition('/')[0]}/" in whole]


@contextlib.contextmanager
def fresh_folder(name: str, url: str) -> Iterator[str]:
    """A copy of a published folder as it is now, which is removed at the end.

    Raises:
        ValueError: if there is none, or a file is missing or damaged.
    """
    found = find_manifest(Place(name, url))
    if found is None:
        yield fetch_folder(name, url, whole=True)  # It says what there is.
        return
    folder, manifest, inside = found
    parent = os.path.join(staging_dir(), "checked")
    os.makedirs(parent, exist_ok=True)
    with temporary_folder(parent) as copy:
        fill_whole(folder, manifest.below(inside), copy)
        yield os.path.join(copy, *inside.split("/")) if inside else copy


def matching_folders(name: str, pattern: str) -> list[str]:
    """URLs of the published folders that a glob of a URL matches, by their names.

    Args:
        name: the argument, for errors.
        pattern: the glob; a URL that something has, or nothing matches, is itself.
    """
    place = Place(name, f"{pattern.rstrip('/')}/{NAME}")
    if place.is_file():
        return [pattern]
    found = place.glob()
    return [url.rpartition("/")[0] for url in found] or [pattern]


def keep_copy(place: Place, manifest: Manifest, path: str) -> None:
    """Moves a folder that was published to where `fetch` looks for its copy."""
    copy = _copy(place, manifest)
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with contextlib.suppress(OSError):  # Another process may have fetched it.
        os.rename(path, copy)


def _copy(place, manifest):
    return staged("fetched", place.url, manifest.version[:16])


class Changed(Exception):
    """A file is missing or not as the manifest has it."""


def fill(place: Place, files: Mapping[str, File], folder: str) -> bool:
    """Downloads those files that a local folder does not have, each atomically.

    Returns:
        Whether there were any.

    Raises:
        Changed: if a file is missing there, or has another size or digest.
    """
    missing = [x for x in files if not is_same(os.path.join(folder, x), files[x])]

    def download(name):
        file, path = files[name], os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with atomic_file(path) as new:
            try:
                place.get(file.at, new)
            except FileNotFoundError:
                raise Changed(f"{file.at or place.url} is missing") from None
            is_told = file.sha256 or file.size != _UNTOLD
            if is_told and not is_same(new, file):
                raise Changed(
                    f"{file.at or place.url} has another size or SHA-256 than expected"
                )

    os.makedirs(folder, exist_ok=True)
    in_threads(download, missing, place.threads)
    return bool(missing)


def fill_whole(place: Place, files: Mapping[str, File], folder: str) -> None:
    """As `fill`, of files that nobody replaces in the meantime.

    Raises:
        ValueError: if a file is missing there, or has another size or digest.
    """
    try:
        fill(place, files, folder)
    except Changed as error:
        raise ValueError(
            f"`{place.name}` must be whole. Received: {place.name}={place.url!r}, "
            f"which is damaged: {error}"
        ) from error


def is_same(path: str, file: File) -> bool:
    """Whether a local file has the size and, where it is known, the digest."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if status.st_size != file.size or not file.sha256:
        return status.st_size == file.size
    return digest(path) == file.sha256


def _fetch_foreign(place, whole, select):
    """A file, or a folder that others have put there, by the versions of its files."""
    if place.info(UNFINISHED) is not None:
        raise ValueError(
            f"`{place.name}` must be whole. Received: {place.name}={place.url!r}, "
            "whose upload has not ended or was cut off: writing it again goes on"
        )
    info = place.info()
    if info is not None and info["type"] == "file":
        found = {"": info}
    else:
        found = place.files()
    if not found:
        raise ValueError(
            f"`{place.name}` must exist. Received: {place.name}={place.url!r}, where "
            "there is nothing"
        )
    if whole and "" not in found:
        raise ValueError(
            f"`{place.name}` must be a folder that tfeff has published. Received: "
            f"{place.name}={place.url!r}, which has no {NAME}. "
            "tfeff.storage.publish(folder, url) uploads a local folder with one"
        )
    files = {name: File(_size(info), "", name) for name, info in found.items()}
    version = _version(found)
    copy = staged("fetched", place.url, version[:16])
    try:
        if "" in files:  # It is a file itself.
            folder, last = os.path.split(copy)
            fill(place, {last: File(files[""].size, "", "")}, folder)
        elif (
            fill(place, _selected(files, select, ""), copy)
            and _version(place.files()) != version
        ):
            remove_folder(copy)
            raise Changed("it has other files now")
    except Changed as error:
        raise OSError(f"{place.url} changed while it was read: {error}") from error
    return copy


def _version(found):
    """A digest of fsspec's information that differs once a file is replaced."""
    told = {n: [str(i[k]) for k in _VERSION if k in i] for n, i in found.items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _size(info):
    return _UNTOLD if info["size"] is None else int(info["size"])


def _selected(files, select, inside):
    if select is None or inside in files:
        return files
    start = inside and f"{inside}/"
    kept = {start + name for name in select([x.removeprefix(start) for x in files])}
    return {name: file for name, file in files.items() if name in kept}
