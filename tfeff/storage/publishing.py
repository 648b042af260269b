"""Local folders to remote ones: files first, their manifest last."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

from tfeff.storage.manifest import (
    NAME,
    UNFINISHED,
    File,
    Manifest,
    local_files,
    manifest_of,
    read_manifest,
)
from tfeff.storage.place import SCRATCH, Place
from tfeff.storage.shared_folder import PARTS
from tfeff.storage.threads import in_threads
from tfeff.utils.paths import check_path, is_url


def publish(folder: str | os.PathLike, url: str) -> None:
    """Uploads a local folder, with a `tfeff-manifest.json` that is written last.

    The manifest has the names, sizes and SHA-256 digests of all files. Without it the
    folder is not whole to those who read it: object stores cannot rename folders. An
    upload that was cut off is completed by the same call, which uploads what is
    missing.

    Args:
        folder: the local folder. Files and folders that it has links to are uploaded
            as its own.
        url: where to; nothing may be there, or the same, or what such a call has left.

    Raises:
        ValueError: if there is another published folder, or files of others; if
            nothing can be written there; if `folder` has no file, or a link that leads
            nowhere or to a folder that it is in.
        OSError: if a file or folder cannot be read, or an upload fails.

    Example:

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(os.path.join(folder, "a.txt"), "w") as file:
    ...     _ = file.write("A document.")
    >>> tfeff.storage.publish(folder, "memory://published")
    >>> os.listdir(tfeff.storage.fetch("memory://published"))
    ['a.txt']
    """
    paths = local_files(check_path("folder", folder), follow_links=True)
    if not is_url(url):
        raise ValueError(f"`url` must be a URL. Received: url={url!r}")
    place = Place("url", url)
    if not paths:
        raise ValueError(
            f"`folder` must be a folder with files. Received: folder={folder!r}"
        )
    for path in paths.values():
        if not os.path.isfile(path):
            raise ValueError(
                "`folder` must have files, folders, and links to such that it is not "
                f"in. Received: folder={folder!r}, with {path}"
            )
    check_publishable(place)
    publish_folder(place, paths)


def check_publishable(place: Place) -> None:
    """Raises unless the place can be written to and has no files of others.

    Raises:
        ValueError: naming the argument.
    """
    if read_manifest(place) is None and place.info(UNFINISHED) is None:
        names = (name for name in place.files() if not name.startswith(SCRATCH))
        found = ["a file"] if place.is_file() else sorted(names)
        if found:
            shown = ", ".join(found[:5])
            raise ValueError(
                f"`{place.name}` must be new, or a folder that tfeff has published. "
                f"Received: {place.name}={place.url!r}, where there is {shown}"
            )
    place.check_writable()


def check_new(place: Place) -> None:
    """Raises unless nothing whole is there and the place can be written to."""
    if read_manifest(place) is not None:
        raise ValueError(
            f"`{place.name}` must not exist yet. Received: {place.name}={place.url!r}"
        )
    check_publishable(place)


def publish_folder(place: Place, paths: Mapping[str, str]) -> Manifest:
    """Uploads named files to a place that `check_publishable` takes, see `publish`."""
    manifest, old = manifest_of(paths), read_manifest(place)
    if old is not None:
        if not manifest.same_content(old):
            raise ValueError(
                f"`{place.name}` must be new, or hold the same. Received: "
                f"{place.name}={place.url!r}, where there is another published folder"
            )
        return old
    return upload(place, manifest, paths)


@contextlib.contextmanager
def claimed(name: str, url: str, what: str) -> Iterator[bool]:
    """Claims something in a folder at a URL, in which several processes may write.

    Yields whether it is this process's until the end. The claim of a process that was
    killed stays.
    """
    place, claim = Place(name, url), f"{SCRATCH}{what}"
    try:
        place.write(claim, b"", create=True)
    except FileExistsError:
        yield False
        return
    try:
        yield True
    finally:
        place.remove(claim)


def begin(place: Place) -> None:
    """Marks a place that `check_publishable` takes as one that is being written.

    Until `complete` ends it, what is there is not whole to those who read it.
    """
    clear_unfinished(place, set(), None)
    place.write(UNFINISHED, Manifest({}).to_bytes())


def complete(place: Place, manifest: Manifest) -> None:
    """Makes a whole folder of files that are in it already, in a folder of `PARTS`.

    Of several processes that do so at once, the first one does; the files of others
    are removed.

    Args:
        place: the folder, which `begin` has marked.
        manifest: the files.

    Raises:
        ValueError: if another process has written other files in the meantime.
    """
    try:
        place.write(NAME, manifest.to_bytes(), create=True)
        there = manifest
    except FileExistsError:
        there = read_manifest(place) or manifest
    kept = {file.at for file in there.files.values()}
    for name in place.files():
        if PARTS.match(name) and name not in kept:
            place.remove(name)
    place.remove(UNFINISHED)
    if not manifest.same_content(there):
        raise ValueError(
            f"`{place.name}` must be written by one process at a time. Received: "
            f"{place.name}={place.url!r}, where another one has written other files"
        )


def upload(
    place: Place,
    manifest: Manifest,
    paths: Mapping[str, str],
    old: Manifest | None = None,
    announce: Callable[[Manifest], None] = lambda new: None,
    contested: tuple[str, ...] = (),
) -> Manifest:
    """Makes a place hold the files of a manifest.

    Args:
        place: the place.
        manifest: the files.
        paths: where they are on this machine.
        old: the manifest that is there now; its files stay as they are until the new
            one is written.
        announce: called with the new manifest before it is written; raises if it must
            not be.
        contested: how the names of files begin that a process which takes the folder
            over may make otherwise: their first versions, too, have digests in the
            names of their objects.

    Returns:
        The manifest that was written.

    Raises:
        ValueError: if another process uploads to the place at the same time.
    """
    kept = set() if old is None else {file.at for file in old.files.values()}
    files = {
        name: _placed(
            name,
            file,
            None if old is None else old.files.get(name),
            name in kept or name.startswith(contested),
        )
        for name, file in manifest.files.items()
    }
    new = Manifest(files)
    left = clear_unfinished(place, kept, new)
    # It names objects: the new ones, and those that are then not needed any more.
    both = [*({} if old is None else old.files).values(), *files.values()]
    mark = Manifest({file.at: file for file in both}).to_bytes()
    place.write(UNFINISHED, mark)

    def put(name):
        file = files[name]
        if file.at in kept or (file.at in left and _size(place, file.at) == file.size):
            return
        place.put(paths[name], file.at)

    # A server that polls a folder of SavedModels loads one once it has its program.
    last = [name for name in files if os.path.basename(name) == "saved_model.pb"]
    in_threads(put, [name for name in files if name not in last], place.threads)
    in_threads(put, last, place.threads)
    announce(new)
    content = new.to_bytes()
    # Another process that uploads other files has put its own mark, or taken this one,
    # or it was done before.
    is_taken = old is None and place.read(NAME) not in (None, content)
    if is_taken or place.read(UNFINISHED) != mark:
        raise ValueError(
            f"`{place.name}` must be written by one process at a time. Received: "
            f"{place.name}={place.url!r}, where another one writes, too: what is there "
            "may be damaged. Choose another URL"
        )
    place.write(NAME, content)
    for at in kept - {file.at for file in files.values()}:
        place.remove(at)
    place.remove(UNFINISHED)
    return new


def clear_unfinished(place: Place, kept: set[str], new: Manifest | None) -> set[str]:
    """Removes what an upload that was cut off has left, but what is wanted again.

    Args:
        place: the place.
        kept: objects that are part of what is whole there.
        new: what is to be uploaded; None for nothing.

    Returns:
        The objects that the upload may have left and that are wanted again.
    """
    try:
        unfinished = read_manifest(place, UNFINISHED)
    except ValueError:  # It was cut off itself, before any file.
        unfinished = None
    if unfinished is None:
        return set()
    wanted = {} if new is None else {f.at: f.sha256 for f in new.files.values()}
    left = {f.at: f.sha256 for f in unfinished.files.values() if f.at not in kept}
    again = {at for at, digest in left.items() if wanted.get(at) == digest}
    for at in left.keys() - again:
        place.remove(at)
    return again


def _placed(name: str, file: File, old: File | None, is_taken: bool) -> File:
    """The file with the name of its object: a new one, unless it is there already.

    Only the first version has the file's own name. Of later ones another process, which
    has taken the folder over, may have others by then.
    """
    if old is None and not is_taken:
        return file
    if old is not None and old.sha256 == file.sha256:
        return old
    return File(file.size, file.sha256, f"{name}~{file.sha256[:12]}")


def _size(place, at):
    with contextlib.suppress(KeyError, TypeError):
        return int(place.info(at)["size"])
    return None
