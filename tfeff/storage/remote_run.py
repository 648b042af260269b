"""A run directory at a URL: a local copy that a process works on, and publishes."""

import atexit
import contextlib
import os
import re
import shutil
import threading
import time
import weakref
from collections.abc import Iterator

from tfeff.storage.fetching import fill_whole
from tfeff.storage.lease import FOLDER, Lease
from tfeff.storage.manifest import (
    NAME,
    UNFINISHED,
    Manifest,
    local_files,
    manifest_of,
    read_manifest,
    same_digests,
)
from tfeff.storage.place import SCRATCH, Place
from tfeff.storage.publishing import clear_unfinished, upload
from tfeff.storage.staging import staged
from tfeff.utils.files import set_aside, write_bytes
from tfeff.utils.job_output import say
from tfeff.utils.partial import temporary_folder
from tfeff.utils.run_files import (
    CACHE,
    CELLS,
    CHECKPOINTS,
    CONFIG,
    EXPORT,
    INTERRUPTED,
    INTERRUPTED_LAYERS,
    LOCK,
    MODEL,
    PRESET,
    TENSORBOARD,
)

WATCH_SECONDS = 5.0  # between looks for files that have changed
_ATTEMPTS = 4
_OWN = (LOCK,)
# Large files that tfeff replaces and never changes. Any other file may be one that a
# callback writes to while it is published.
_REPLACED = re.compile(
    f"({CACHE}|{CHECKPOINTS}|{EXPORT}|{PRESET})/"
    f"|({CELLS}/[^/]+/)?({re.escape(MODEL)}$|({INTERRUPTED}|{INTERRUPTED_LAYERS})/)"
)
# A process that stood still in an upload may end it when another one has the run.
_CONTESTED = (f"{CHECKPOINTS}/",)
# Files that grow while they are open, and tell nothing that a run resumes from.
_GROWING = f"{TENSORBOARD}/"

# The runs of this process by URL: it may open one several times.
_runs: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class RemoteRun:
    """The local copy of a remote run directory, which this process alone writes.

    A thread looks for files that have changed, as they do with each checkpoint, and
    publishes them: the manifest names them when all are there. What it publishes is at
    each time what a killed run would have left, so that another process resumes from
    it. Uploads that fail are told on standard error and tried again.

    Args:
        name: the argument that the URL was given as, for errors.
        url: the run directory.

    Attributes:
        folder: the local copy.
        users: how many have opened it in this process.

    Raises:
        ValueError: if nothing can be written there, another process is at work in it,
            it has files that are not a run's, or the run there is damaged.
    """

    def __init__(self, name: str, url: str):
        self._place = Place(name, url)
        self._place.check_writable()
        self.folder = staged("runs", self._place.url)
        # The manifest that the local copy resumes from, and one that is being written.
        self._note = f"{self.folder}.published"
        self._next = f"{self.folder}.publishing"
        self._lease = Lease(self._place, self.folder)
        try:
            self._published = self._fetch()
        except BaseException:
            self._lease.release()
            raise
        # It is unknown whether an upload that failed has written its manifest.
        self._is_known = True
        self._seen: object = None
        self._at_work = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()
        self.users = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        atexit.register(self._close)

    @property
    def lease(self) -> str:
        """The object of the lease, which other workers look for."""
        return self._lease.object

    def check(self) -> None:
        """Raises if another process has taken the run over, as far as can be seen."""
        try:
            self._lease.check()
        except (OSError, ValueError):
            if self._lease.is_lost:
                raise
            # It could not be seen; the thread that publishes tells of it.

    def publish(self) -> None:
        """Uploads what has changed, and tries again where that fails.

        Raises:
            ValueError: if another process has taken the run over.
            OSError: if it fails again and again; what is on this machine stays.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return self._publish()
            except (OSError, ValueError) as error:
                if self._is_taken(error):
                    raise
                if attempt + 1 == _ATTEMPTS:
                    raise OSError(
                        f"{self._place.url} lacks the newest files of the run, which "
                        f"are in {self.folder}. A start with the same settings on this "
                        f"machine goes on from them. {error}"
                    ) from error
                _tell_failure(error)
                time.sleep(2.0**attempt)

    @contextlib.contextmanager
    def held(self) -> Iterator[str | None]:
        """Publishes what has changed, and then nothing until the end of the block.

        Returns:
            The context manager, of the `version` of the manifest; None without one.

        Raises:
            ValueError, OSError: see `publish`.
        """
        self.publish()
        with self._at_work:
            yield self._published.version if self._published else None

    def close(self) -> None:
        """Publishes what has changed, and gives the run back where no other uses it."""
        self.users -= 1
        if self.users == 0:
            self._close()

    def _close(self):
        if os.getpid() != self._process:
            return  # It is its parent's, from which this process was forked.
        self._closed.set()
        try:
            try:
                self._thread.join()
            finally:  # Also when the wait for the upload at hand was interrupted.
                self._thread.join()
                self.publish()
        finally:
            self._lease.release()
            atexit.unregister(self._close)

    def _fetch(self) -> Manifest | None:
        """Makes the local copy that of the remote run; returns its manifest."""
        there = self._read_manifest()
        clear_unfinished(self._place, _objects(there), None)
        self._place.remove(UNFINISHED)
        if there is None:
            others = [
                name
                for name in self._place.files()
                if not name.startswith((f"{FOLDER}/", SCRATCH, UNFINISHED))
            ]
            if others:
                raise ValueError(
                    f"`{self._place.name}` must be a run's, empty, or not there yet. "
                    f"Received: {self._place.url}, which has {', '.join(others[:5])} "
                    f"and no {NAME}"
                )
        # A configuration alone is of a start that has not made anything.
        if there is None and set(local_files(self.folder, _OWN)) == {CONFIG}:
            os.remove(os.path.join(self.folder, CONFIG))
        now = b"" if there is None else there.to_bytes()
        noted = _content(self._note)
        if noted == now and (there is None or os.path.isdir(self.folder)):
            return there  # What is here continues what is there.
        if noted is not None and os.path.isdir(self.folder):
            paths = local_files(self.folder, _OWN)
            try:
                before = Manifest.parse(noted).files if noted else {}
            except ValueError:
                before = {}
            if not same_digests(manifest_of(paths).files, before):
                self._set_aside()
        if noted is not None:
            os.remove(self._note)
        files = {} if there is None else there.files
        for name, path in local_files(self.folder, _OWN).items():
            if name not in files:
                os.remove(path)
        if there is not None:
            fill_whole(self._place, files, self.folder)
        os.makedirs(os.path.dirname(self._note), exist_ok=True)
        write_bytes(self._note, now)
        return there

    def _read_manifest(self):
        """The manifest that is there, noted if it is the last one of this machine.

        It may have been written, whole or in part, though the upload failed or was
        killed.
        """
        last = _content(self._next)
        if last is not None:
            there = self._place.read(NAME)
            if there is not None and there != last and last.startswith(there):
                # Its files are there if it is of the last upload to the run.
                unfinished = read_manifest(self._place, UNFINISHED)
                if _objects(Manifest.parse(last)) <= _objects(unfinished):
                    self._place.write(NAME, last)
                    there = last
            if there == last:
                os.replace(self._next, self._note)
        return read_manifest(self._place)

    def _set_aside(self):
        kept = set_aside(self.folder, "aside")
        say(
            f"{self._place.url} was gone on with elsewhere. What this machine had not "
            f"published of it is kept in {kept}."
        )

    def _watch(self):
        while not self._closed.wait(WATCH_SECONDS):
            try:
                if self._state(local_files(self.folder, _OWN)) != self._seen:
                    self._publish()
            except (OSError, ValueError) as error:
                if self._is_taken(error):
                    say(error)  # `check` raises it in the training.
                    return
                _tell_failure(error)

    def _is_taken(self, error):
        """Whether an error says that another process has taken the run over.

        Storages refuse writes with a ValueError, too, as when credentials expire.
        """
        return isinstance(error, ValueError) and self._lease.is_lost

    def _publish(self):
        above = os.path.dirname(self.folder)
        with self._at_work, temporary_folder(above) as parent:
            state, paths = self._snapshot(os.path.join(parent, "snapshot"))
            if CONFIG not in paths or len(paths) == 1:
                return
            manifest, old = manifest_of(paths), self._published
            if not (self._is_known and old and manifest.same_content(old)):
                self._lease.check()
                if not self._is_known:
                    old = self._read_manifest()
                self._is_known = False
                new = upload(
                    self._place, manifest, paths, old, self._announce, _CONTESTED
                )
                os.replace(self._next, self._note)
                self._published, self._is_known = new, True
            self._seen = state

    def _announce(self, new):
        """Notes a manifest just before it is written."""
        write_bytes(self._next, new.to_bytes())
        self._lease.check()

    def _snapshot(self, folder):
        """The files at one moment: their state, and what they have, in a folder.

        A link keeps what a file has that is replaced, not changed; of others there are
        copies. One that grows meanwhile is no reason to look again.
        """
        while True:
            os.mkdir(folder)
            found = local_files(self.folder, _OWN)
            state, paths = self._state(found), {}
            try:
                for name, path in found.items():
                    paths[name] = os.path.join(folder, name)
                    os.makedirs(os.path.dirname(paths[name]), exist_ok=True)
                    _link(path, paths[name], copy=not _REPLACED.match(name))
                now = self._state(local_files(self.folder, _OWN))
                if _inodes(now) == _inodes(state):
                    return state, paths
            except FileNotFoundError:
                pass  # It was deleted in the meantime.
            shutil.rmtree(folder)

    def _state(self, paths):
        """A state of the files that changes with them, but for those that grow."""
        found = {}
        for name, path in paths.items():
            if name.startswith(_GROWING):
                continue
            with contextlib.suppress(FileNotFoundError):  # Deleted in the meantime.
                status = os.stat(path)
                found[name] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return found


def open_remote_run(name: str, url: str) -> RemoteRun:
    """The remote run of a URL, which this process may have opened already."""
    key = (os.getpid(), url.rstrip("/"))
    run = _runs.get(key)
    if run is None or not run.users:
        run = _runs[key] = RemoteRun(name, url)
    run.users += 1
    return run


def _tell_failure(error):
    say(f"{str(error).rstrip('.')}. It is tried again.")


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _objects(manifest):
    return set() if manifest is None else {file.at for file in manifest.files.values()}


def _inodes(state):
    return {name: inode for name, (inode, *_) in state.items()}


def _link(path, new, copy):
    try:
        if not copy:
            return os.link(path, new)
    except FileNotFoundError:
        raise
    except OSError:  # A file system without links.
        pass
    shutil.copyfile(path, new)
