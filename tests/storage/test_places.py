"""Places that cannot be read or written, and what is beside and above them."""

import importlib
import os
import pathlib
import sys

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tests.subjects.folders import read, remote, write
from tfeff import storage
from tfeff.storage import place

URL = "store://bucket/folder"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("store://bucket/nothing", "where there is nothing"),
        ("strore://bucket", "a scheme that fsspec knows.*Did you mean 'store'"),
        ("memory://", "must name a file or folder"),
    ],
)
def test_bad_urls(url, message, store):
    with pytest.raises(ValueError, match=f"`url` .*{message}"):
        storage.fetch(url)


def test_a_scheme_without_its_library(monkeypatch):
    loaded = importlib.import_module("fsspec.registry")._registry
    for name, scheme in (("s3fs", "s3"), ("gcsfs", "gs")):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(loaded, scheme, raising=False)
    with pytest.raises(ValueError, match=r"`url` needs .* pip install 'tfeff\[s3\]'"):
        storage.fetch("s3://bucket/a")
    with pytest.raises(ValueError, match=r"`url` needs .* pip install 'tfeff\[gcs\]'"):
        storage.fetch("gs://bucket/a")


class Picky(MemoryFileSystem):
    """`picky://`: takes no options but a host, as sftp://."""

    protocol = "picky"
    cachable = False

    def __init__(self, host):
        super().__init__()
        if host != "there":
            raise OSError(f"no route to {host}")

    @staticmethod
    def _get_kwargs_from_urls(path):
        return {"host": path.removeprefix("picky://").partition("/")[0]}


def test_what_cannot_be_opened_is_named(folder, monkeypatch):
    fsspec.register_implementation("picky", Picky, clobber=True)
    monkeypatch.setitem(place._INSTALL, "picky", "a library")
    with pytest.raises(
        ValueError, match="`url` must be .*picky:// needs a library.*no"
    ):
        storage.fetch("picky://nowhere/a")
    storage.publish(folder, "picky://there/folder")


class Answer(Exception):
    """An error of gcsfs or aiohttp, which has the status of a web server's answer."""

    def __init__(self, **status):
        super().__init__("Access Denied")
        vars(self).update(status)


REFUSALS = [
    PermissionError("Access Denied"),
    OSError("Forbidden: https://host/b/folder\nAccess Denied"),
    *(
        Answer(status=401),
        Answer(status_code=403),
        Answer(code=401),
        Answer(code="403"),
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=repr)
def test_a_place_that_is_read_only(refusal, store, folder, monkeypatch):
    def fails(path):
        raise refusal

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(ValueError, match="(?s)may be written to.*Access Denied"):
        storage.publish(folder, URL)


@pytest.mark.parametrize("failure", [OSError("No route"), Answer(status=503)], ids=repr)
def test_a_place_that_cannot_be_reached(failure, store, folder, monkeypatch):
    def fails(path):
        raise failure

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(OSError, match=f"Writing {URL} failed"):
        storage.publish(folder, URL)


def refuse_above(store, monkeypatch, refusal=REFUSALS[0]):
    """Gives credentials for `store://bucket/folder/` alone, and to list the bucket."""
    own = f"{store.root}/bucket/folder"
    listings = []

    def refusing(method):
        def wrapper(self, path, *args, **kwargs):
            if not listings:
                path = self._strip_protocol(path)
                if not path.startswith(f"{own}/"):
                    raise refusal
            return method(self, path, *args, **kwargs)

        return wrapper

    def listing(method):
        def wrapper(self, path, *args, **kwargs):
            if method.__name__ == "find" and not os.path.exists(own):
                raise refusal  # As of s3fs, which asks for an object of that name.
            listings.append(path)
            try:
                return method(self, path, *args, **kwargs)
            finally:
                listings.pop()

        return wrapper

    for name in ("cat_file", "pipe_file", "info"):
        monkeypatch.setattr(store, name, refusing(getattr(store, name)))
    for name in ("find", "ls"):
        monkeypatch.setattr(store, name, listing(getattr(store, name)))


@pytest.mark.parametrize("refusal", REFUSALS[:3], ids=repr)
def test_what_is_above_a_place_need_not_be_readable(
    refusal, store, folder, monkeypatch
):
    write(remote(store), {"below/b.txt": "theirs"})
    os.utime(remote(store, "below/b.txt"), (0, 0))
    refuse_above(store, monkeypatch, refusal)
    for inside in ("below", "below/b.txt"):
        path = pathlib.Path(storage.fetch(f"{URL}/{inside}"))
        assert (path / "b.txt" if inside == "below" else path).read_text() == "theirs"
    with pytest.raises(ValueError, match="`url` must be a place that may be read"):
        storage.fetch("store://bucket/other")


@pytest.mark.parametrize("refusal", REFUSALS[:2], ids=repr)
def test_what_is_beside_a_folder_need_not_be_writable(
    refusal, store, folder, monkeypatch
):
    monkeypatch.setattr(place, "_FLAT", {"store"})
    refuse_above(store, monkeypatch, refusal)
    storage.publish(folder, URL)
    assert read(storage.fetch(URL)) == read(folder)
    storage.publish(folder, URL)  # The same again.
    write(remote(store, "other"), {"theirs.txt": "three"})
    monkeypatch.setattr(store, "lag", 0)
    with pytest.raises(ValueError, match="`url` must be new, or .* is theirs.txt"):
        storage.publish(folder, f"{URL}/other")


def test_a_folder_that_is_there_is_probed_within(store, monkeypatch):
    probes = []
    monkeypatch.setattr(store, "fails", staticmethod(probes.append))
    place.Place("url", URL).check_writable()
    remote(store).mkdir(parents=True)
    place.Place("url", URL).check_writable()
    above, within = map(os.path.dirname, probes)
    assert (above, within) == (str(remote(store).parent), str(remote(store)))


def test_a_place_that_may_not_be_listed(store, folder, monkeypatch):
    """What is there cannot be seen, and is not written over."""
    monkeypatch.setattr(place, "_FLAT", {"store"})
    refuse_above(store, monkeypatch)

    def refuses(self, path, **kwargs):
        raise PermissionError("Access Denied")

    for name in ("find", "ls"):
        monkeypatch.setattr(store, name, refuses)
    with pytest.raises(ValueError, match="`url` must be a place that may be read"):
        storage.publish(folder, URL)


def test_what_a_probe_has_left_makes_no_folder(store, monkeypatch):
    monkeypatch.setattr(place, "_FLAT", {"store"})
    monkeypatch.setattr(store, "lag", 0)
    write(remote(store), {f"{place.SCRATCH}probe-1": ""})
    there = place.Place("path", URL)
    assert not there.is_folder()
    there.check_writable()
    write(remote(store), {"a.txt": "one"})
    assert there.is_folder()
    assert not place.Place("path", f"{URL}/a.txt").is_folder()
    os.makedirs(remote(store) / "empty")  # As an empty bucket.
    assert place.Place("path", f"{URL}/empty").is_folder()


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    there = place.Place("path", f"file://{tmp_path}/folder")
    there.write("a.json", b"1")
    with monkeypatch.context() as patch:

        def full(self, path, value, **_):
            pathlib.Path(path).write_bytes(value[:1])
            raise OSError(28, "No space left on device")

        patch.setattr(LocalFileSystem, "pipe_file", full)
        with pytest.raises(OSError, match="No space left"):
            there.write("a.json", b"23")
    assert read(tmp_path / "folder") == {"a.json": "1"}


def test_missing_credentials(store, folder, monkeypatch):
    class NoCredentialsError(Exception):
        pass

    def fails(path):
        raise NoCredentialsError("Unable to locate credentials")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(ValueError, match="`url` needs credentials for store://"):
        storage.publish(folder, URL)
