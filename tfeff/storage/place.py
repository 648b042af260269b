"""A place at a URL: the file system that fsspec has for its scheme, errors by name."""

import contextlib
import os
import re
import uuid
from collections.abc import Iterator

import fsspec

from tfeff.storage.threads import THREADS
from tfeff.utils.near_misses import near_miss
from tfeff.utils.paths import is_name

# Schemes whose first name is a bucket, which is there or not and is never made here.
_BUCKETS = {"abfs", "abfss", "az", "gcs", "gs", "oss", "s3", "s3a"}
# Schemes in which a name below another one makes no folder.
_FLAT = {"gcs", "gs", "oss", "s3", "s3a"}
# Schemes whose writing can be cut off within a file, and whose renaming replaces a file
# at once: that of hdfs:// deletes the file first, when another process sees none.
_RENAMES = {"file", "local"}
# Schemes whose library has one connection, which threads cannot share.
_ONE_CONNECTION = {"ftp", "sftp", "smb", "ssh"}
# The extra of tfeff, or the package, that brings a scheme.
_INSTALL = {
    "s3": "'tfeff[s3]'",
    "s3a": "'tfeff[s3]'",
    "gs": "'tfeff[gcs]'",
    "gcs": "'tfeff[gcs]'",
    "hdfs": "pyarrow, with Hadoop's libhdfs",
    "abfs": "adlfs",
    "az": "adlfs",
}
# How the names of files begin that are there for a moment, or were left by a kill.
SCRATCH = ".tfeff-"
_CREDENTIALS = re.compile(r"Credential|NoAuthToken|TokenRetrieval|RefreshError")


def is_inside(name: str) -> bool:
    """Whether a name with slashes is of something within a folder, not beside it."""
    return all(map(is_name, name.split("/")))


class Refused(ValueError):
    """The credentials do not have the right to read or write."""


class Place:
    """A file or folder at a URL. Names within it are relative, with slashes.

    Args:
        name: the argument that the URL was given as, for errors.
        url: the URL.

    Raises:
        ValueError: if no library knows its scheme, or it cannot be opened; it names
            what to install.
    """

    def __init__(self, name: str, url: str):
        self.name, self.url = name, url.rstrip("/")
        self.scheme = url.partition("://")[0].lower()
        self._files, self.path = _file_system(name, url, self.scheme)
        if not self.path.strip("/"):
            raise ValueError(
                f"`{name}` must name a file or folder in it. Received: {name}={url!r}"
            )

    @property
    def threads(self) -> int:
        """How many files may be moved at the same time."""
        return 1 if self.scheme in _ONE_CONNECTION else THREADS

    @property
    def one_url(self) -> str:
        """The URL as fsspec spells it: the same for all ways to write it."""
        return self._files.unstrip_protocol(self.path)

    @property
    def parent(self) -> "Place | None":
        """The folder above; None above a bucket."""
        head, _, last = self.url.rpartition("/")
        path = self.path.rstrip("/").rpartition("/")[0]
        if not last or not path.strip("/") or head.endswith(":/"):
            return None
        return Place(self.name, head)

    def read(self, name: str) -> bytes | None:
        """A small file's content; None if there is none."""
        with self.errors_named():
            try:
                return self._files.cat_file(self._inside(name))
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def write(self, name: str, content: bytes, create: bool = False) -> None:
        """Writes a small file.

        Raises:
            FileExistsError: with `create`, if the file exists: of several that write at
                once, one succeeds, where the scheme can tell.
        """
        with self.errors_named(writing=True):
            path = self._inside(name)
            self._make_folder_of(path)
            if create or self.scheme not in _RENAMES:
                mode = "create" if create else "overwrite"
                self._files.pipe_file(path, content, mode=mode)
                return
            # Not in place: a kill would leave a part of it.
            folder = os.path.dirname(path)
            new = f"{folder}/{SCRATCH}new-{uuid.uuid4().hex}"
            try:
                self._files.pipe_file(new, content)
                self._files.mv(new, path)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._files.rm_file(new)
                raise

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""
        with self.errors_named(writing=True), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._inside(name))

    def get(self, name: str, path: str) -> None:
        """Downloads a file, or the place itself where `name` is empty.

        Raises:
            FileNotFoundError: if there is none.
        """
        with self.errors_named():
            self._files.get_file(self._inside(name), path)

    def put(self, path: str, name: str) -> None:
        """Uploads a file."""
        with self.errors_named(writing=True):
            self._make_folder_of(self._inside(name))
            self._files.put_file(path, self._inside(name))

    def open(self):
        """The file as a stream of bytes."""
        with self.errors_named():
            return self._files.open(self.path, "rb")

    def files(self) -> dict[str, dict]:
        """fsspec's information about each file in and below the folder, by name.

        Raises:
            ValueError: if the server lists what is not in the folder: copies of such
                files would be written anywhere on this machine.
        """
        with self.errors_named():
            self._files.invalidate_cache()
            try:
                found = self._files.find(self.path, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return {}
            except Exception as error:  # From any library.
                if self.scheme not in _FLAT or not _is_refusal(error):
                    raise
                # Where it lists nothing, s3fs asks for an object of the folder's own
                # name, to which there may be no right; `ls` does not.
                with contextlib.suppress(FileNotFoundError):
                    if self._files.ls(self.path, detail=False):
                        raise
                return {}
        start = self.path.strip("/")
        names = [path.strip("/").removeprefix(start).strip("/") for path in found]
        for name in names:
            if name and not is_inside(name):  # The place itself is without a name.
                raise ValueError(
                    f"`{self.name}` must list the files that are in it. "
                    f"Received: {self.name}={self.url!r}, which lists {name!r}"
                )
        return dict(zip(names, found.values(), strict=True))

    def files_in(self, folder: str) -> list[str]:
        """Names of the files that are in a folder in it, with the folder's."""
        with self.errors_named():
            self._files.invalidate_cache()
            try:
                found = self._files.ls(self._inside(folder), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [f"{folder}/{path.rstrip('/').rpartition('/')[2]}" for path in found]

    def info(self, name: str = "") -> dict | None:
        """fsspec's information about a file or folder; None if there is none."""
        with self.errors_named():
            self._files.invalidate_cache()
            try:
                return self._files.info(self._inside(name))
            except (FileNotFoundError, NotADirectoryError):
                return None
            except Exception as error:  # From any library.
                # Rights may be to what is below the place alone: it is no file then.
                if name or self.scheme not in _FLAT or not _is_refusal(error):
                    raise
        return {"name": self.path, "type": "directory"} if self.files() else None

    def is_file(self) -> bool:
        """Whether there is a file, not a folder or nothing."""
        info = self.info()
        return info is not None and info["type"] == "file"

    def is_folder(self) -> bool:
        """Whether there is a folder of files in place of a file, or of nothing."""
        info = self.info()
        if info is None or info["type"] != "directory":
            return False
        # Object stores report a folder where a process that was killed left its probe.
        names = self.files() if self.scheme in _FLAT else None
        return not names or not all(name.startswith(SCRATCH) for name in names)

    def age(self, name: str) -> float:
        """Seconds since a file was written, by the storage's own clock."""
        probe = f"{SCRATCH}clock-{uuid.uuid4().hex}"
        self.write(probe, b"")
        try:
            with self.errors_named():
                self._files.invalidate_cache()
                now = self._files.modified(self._inside(probe))
                then = self._files.modified(self._inside(name))
            return (now - then).total_seconds()
        finally:
            self.remove(probe)

    def glob(self) -> list[str]:
        """URLs of the files that the place matches as a pattern, by their names."""
        with self.errors_named():
            self._files.invalidate_cache()
            found = sorted(self._files.glob(self.path, detail=True).items())
        files = [path for path, info in found if info["type"] == "file"]
        return [self._files.unstrip_protocol(path) for path in files]

    def check_writable(self) -> None:
        """Writes and deletes a small file.

        Raises:
            ValueError: if there is no such bucket, it is read-only, or credentials are
                missing.
        """
        # Rights may end at the folder. But what is a file, or may become one, must not
        # become a folder by a name within it; and a bucket has nothing beside it.
        path, within = (
            self.path.rstrip("/"),
            self.scheme in _FLAT and not self.is_file(),
        )
        with self.errors_named(writing=True):
            if within or "/" not in path.strip("/") or self._files.isdir(path):
                path += "/"
            path += f"{SCRATCH}probe-{uuid.uuid4().hex}"
            self._make_folder_of(path)
            self._files.pipe_file(path, b"")
            self._files.rm_file(path)

    @contextlib.contextmanager
    def errors_named(self, writing: bool = False) -> Iterator[None]:
        """Names the argument, the URL and the cause in errors of fsspec's libraries."""
        received = f"Received: {self.name}={self.url!r}"
        try:
            yield
        except FileNotFoundError as error:
            if not writing:
                raise
            raise ValueError(
                f"`{self.name}` must be in a bucket or folder that exists. {received}, "
                f"where writing found none: {error}"
            ) from error
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            raise
        except Exception as error:  # From any library; each has its own kinds.
            if _is_refusal(error):
                what = "written to" if writing else "read"
                raise Refused(
                    f"`{self.name}` must be a place that may be {what}. {received}, "
                    f"which is refused to these credentials: {error}"
                ) from error
            if any(_CREDENTIALS.search(kind.__name__) for kind in type(error).__mro__):
                raise ValueError(
                    f"`{self.name}` needs credentials for {self.scheme}://, which are "
                    f"missing or have expired. {received}: {error}"
                ) from error
            raise OSError(
                f"{'Writing' if writing else 'Reading'} {self.url} failed: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _inside(self, name):
        return f"{self.path.rstrip('/')}/{name}" if name else self.path

    def _make_folder_of(self, path):
        if self.scheme not in _BUCKETS:
            self._files.makedirs(os.path.dirname(path), exist_ok=True)


def _is_refusal(error):
    """Whether an error of any library says that the credentials have no right."""
    # The libraries have the status of a web server's answer under one of these names;
    # gcsfs has some of them in the text alone.
    names = ("status", "status_code", "code")
    return (
        isinstance(error, PermissionError)
        or any(str(getattr(error, name, None)) in ("401", "403") for name in names)
        or (isinstance(error, OSError) and str(error).startswith("Forbidden"))
    )


def _file_system(name, url, scheme):
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise ValueError(
            f"`{name}` needs a library for {scheme}://. Received: {name}={url!r}. "
            f"pip install {_INSTALL.get(scheme, 'one that fsspec finds')} ({error})"
        ) from error
    except ValueError as error:
        known = {*fsspec.available_protocols(), *fsspec.registry}
        raise ValueError(
            f"`{name}` must be a path, or a URL of a scheme that fsspec knows. "
            f"Received: {name}={url!r}.{near_miss(scheme, known)}"
        ) from error
    try:
        return _without_cache(f"{scheme}://{url.partition('://')[2]}")
    except Exception as error:  # From any library.
        needs = f"; {scheme}:// needs {_INSTALL[scheme]}" if scheme in _INSTALL else ""
        raise ValueError(
            f"`{name}` must be a URL that can be opened{needs}. Received: "
            f"{name}={url!r}: {type(error).__name__}: {error}"
        ) from error


def _without_cache(url):
    """The path, and its file system without a cache of what others may change."""
    try:
        return fsspec.core.url_to_fs(url, use_listings_cache=False)
    except TypeError:  # As that of sftp://, which has no cache and no such option.
        return fsspec.core.url_to_fs(url)
