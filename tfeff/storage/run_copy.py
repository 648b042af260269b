"""The copy of a run directory at a URL that workers other than the chief have."""

import os
from collections.abc import Iterable

from tfeff.storage.fetching import fill_whole, is_same
from tfeff.storage.manifest import local_files, read_manifest
from tfeff.storage.place import Place
from tfeff.storage.staging import staged
from tfeff.utils.partial import remove_partial
from tfeff.utils.run_files import CHECKPOINTS, TENSORBOARD, is_in

# Files that a process does not read to resume a run: it asks for one checkpoint.
_NOT_READ = (CHECKPOINTS, TENSORBOARD)


class RunCopy:
    """A copy on this machine, of one worker alone, which never writes to the URL.

    The next start finds it again: a file that has not changed is not fetched twice.

    Args:
        name: the argument that the URL was given as, for errors.
        url: the run directory.
        worker: the worker's name. Several may be at work on this machine.

    Attributes:
        folder: the copy.
    """

    def __init__(self, name: str, url: str, worker: str):
        self._name, self._url = name, url
        self.folder = staged("workers", url, worker.replace(" ", "-"))

    def fetch(self, version: str | None, names: Iterable[str] | None) -> None:
        """Makes the copy one of the state that the chief has published.

        Args:
            version: the `version` of the chief's manifest; None where it has none.
            names: files and folders that are needed; None for all but checkpoints and
                TensorBoard's. Of others, old versions are deleted.

        Raises:
            ValueError: if this worker sees another state there, or a damaged file.
            OSError: if it cannot be read.
        """
        place = Place(self._name, self._url)
        manifest = read_manifest(place)
        if (manifest.version if manifest else None) != version:
            raise ValueError(
                f"`{self._name}` must be one for all workers. Received: "
                f"{self._name}={self._url!r}, which has another manifest than the "
                "chief has published, or none"
            )
        files = {} if manifest is None else manifest.files
        os.makedirs(self.folder, exist_ok=True)
        remove_partial(self.folder)
        for name, path in local_files(self.folder).items():
            if name not in files or not is_same(path, files[name]):
                os.remove(path)
        if manifest is None:
            return
        if names is None:
            needed = {n: f for n, f in files.items() if not is_in(n, *_NOT_READ)}
        else:
            needed = {n: f for x in names for n, f in manifest.below(x).items()}
        fill_whole(place, needed, self.folder)
