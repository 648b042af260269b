"""A folder that several processes write files to, at a path or at a URL."""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator

from tfeff.storage.place import SCRATCH, Place
from tfeff.storage.threads import in_threads
from tfeff.utils.files import atomic_file
from tfeff.utils.partial import scratch_folder
from tfeff.utils.paths import is_url

PARTS = re.compile("parts-[0-9a-f]{16}/")


def new_parts() -> str:
    """The name of a folder for the files of one pipeline, as `PARTS` matches it.

    A worker of an earlier pipeline that still writes does not meet the files of a later
    one.
    """
    return f"parts-{secrets.token_hex(8)}"


class SharedFolder:
    """Files that any process writes whole, and others read. It can be pickled.

    Args:
        name: the argument that the folder was given as, for errors.
        path: the folder, or a URL.
    """

    def __init__(self, name: str, path: str):
        self.name, self.path = name, path

    @contextlib.contextmanager
    def written(self, file: str) -> Iterator[str]:
        """A local path to write a file to, which then replaces the one of that name."""
        if not is_url(self.path):
            with atomic_file(os.path.join(self.path, file)) as new:
                yield new
            return
        with tempfile.TemporaryDirectory() as folder:
            new = os.path.join(folder, os.path.basename(file))
            yield new
            Place(self.name, self.path).put(new, file)

    @contextlib.contextmanager
    def read(self, file: str) -> Iterator[str]:
        """The local path of a file, or of a copy of it for the block."""
        if not is_url(self.path):
            yield os.path.join(self.path, file)
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, os.path.basename(file))
            Place(self.name, self.path).get(file, copy)
            yield copy

    def remove(self, files: Iterable[str]) -> None:
        """Removes files, if they are there."""
        if not is_url(self.path):
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(self.path, file))
            return
        place = Place(self.name, self.path)
        in_threads(place.remove, files, place.threads)


@contextlib.contextmanager
def shared_scratch(
    name: str, path: str, files: Iterable[str]
) -> Iterator[SharedFolder]:
    """A new folder beside a path, or in a folder at a URL, removed at the end.

    Args:
        name: the argument, for errors.
        path: the path beside which it is made; or the URL.
        files: the names that files in it may have.
    """
    if not is_url(path):
        with scratch_folder(path) as folder:
            yield SharedFolder(name, folder)
        return
    url = f"{path.rstrip('/')}/{SCRATCH}scratch-{secrets.token_hex(8)}"
    scratch = SharedFolder(name, url)
    try:
        yield scratch
    finally:
        scratch.remove(files)
