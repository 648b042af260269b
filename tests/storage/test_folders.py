"""Folders are published with a manifest, and fetched whole or not at all."""

import hashlib
import json
import os
import pathlib

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.subjects.folders import read, remote, write
from tfeff import storage
from tfeff.storage import place
from tfeff.storage.local import local_run
from tfeff.storage.manifest import NAME, UNFINISHED
from tfeff.storage.staging import staged

URL = "store://bucket/folder"


@pytest.mark.parametrize("url", [URL, "memory://bucket/folder"])
def test_a_folder_is_published_and_fetched(url, store, folder):
    storage.publish(folder, url)
    copy = storage.fetch(url)
    assert read(copy) == {"a.txt": "one", "below/b.txt": "two"}
    assert os.path.basename(copy) == "folder"
    assert storage.fetch(url) == copy
    storage.publish(folder, url)  # The same again.
    assert pathlib.Path(storage.fetch(f"{url}/below")) == pathlib.Path(copy, "below")
    assert pathlib.Path(storage.fetch(f"{url}/a.txt")).read_text() == "one"


def test_a_folder_that_changes_while_it_is_fetched(store, folder, monkeypatch):
    """A run that goes on: all files are those of the new manifest."""
    storage.publish(folder, URL)
    get, changed = store.get_file, []

    def change_first(self, *args, **kwargs):
        if not changed:
            changed.append(remote(store, "a.txt"))
            changed[0].write_text("three")
            manifest = json.loads(remote(store, NAME).read_text())
            digest = hashlib.sha256(b"three").hexdigest()
            manifest["files"]["a.txt"].update(size=5, sha256=digest)
            remote(store, NAME).write_text(json.dumps(manifest))
        return get(self, *args, **kwargs)

    monkeypatch.setattr(store, "get_file", change_first)
    assert read(storage.fetch(URL))["a.txt"] == "three"


@pytest.mark.parametrize("inside", ["", "/a.txt"])
def test_a_folder_of_others_that_changes_while_it_is_fetched(
    inside, store, folder, monkeypatch
):
    monkeypatch.setattr(store, "lag", 0)
    write(remote(store), read(folder))
    get = store.get_file

    def change(self, *args, **kwargs):
        remote(store, "a.txt").write_text("three")
        return get(self, *args, **kwargs)

    monkeypatch.setattr(store, "get_file", change)
    with pytest.raises(OSError, match=f"{URL}{inside} changed while .*a.txt has"):
        storage.fetch(URL + inside)


def test_a_published_folder_is_not_replaced(store, folder):
    storage.publish(folder, URL)
    (folder / "a.txt").write_text("other")
    with pytest.raises(ValueError, match="`url` must be new, or hold the same"):
        storage.publish(folder, URL)
    assert remote(store, "a.txt").read_text() == "one"


def test_files_of_others_are_not_touched(store, folder):
    write(remote(store), {"a.txt": "theirs"})
    os.utime(remote(store, "a.txt"), (0, 0))
    with pytest.raises(ValueError, match="`url` must be new.*where there is a.txt"):
        storage.publish(folder, URL)
    assert read(remote(store)) == {"a.txt": "theirs"}


@pytest.mark.parametrize("fails_at", ["a.txt", "b.txt", NAME])
def test_an_upload_that_is_cut_off_is_gone_on_with(
    fails_at, store, folder, monkeypatch
):
    def fails(path):
        if path.endswith(fails_at):
            raise ConnectionResetError("gone")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with pytest.raises(OSError, match=f"Writing {URL} failed.*gone"):
        storage.publish(folder, URL)
    with pytest.raises(ValueError, match="upload has not ended or was cut off"):
        storage.fetch(URL)
    put = []
    monkeypatch.setattr(store, "fails", staticmethod(put.append))
    storage.publish(folder, URL)
    assert read(storage.fetch(URL)) == read(folder)
    if fails_at == NAME:  # All files were there already.
        assert not [path for path in put if path.endswith(".txt")]
    assert not remote(store, UNFINISHED).exists()


def test_what_another_upload_left_is_not_taken_for_the_same(store, folder, monkeypatch):
    def fails(path):
        if path.endswith(NAME):
            raise ConnectionResetError

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    for text in ("one", "six"):  # Of the same size.
        (folder / "a.txt").write_text(text)
        with pytest.raises(OSError):
            storage.publish(folder, URL)
    (folder / "below" / "b.txt").unlink()
    monkeypatch.setattr(store, "fails", staticmethod(lambda path: None))
    storage.publish(folder, URL)
    assert read(storage.fetch(URL)) == {"a.txt": "six"}
    assert set(read(remote(store))) == {"a.txt", NAME}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.unlink(), "a.txt is missing"),
        (lambda p: p.write_text("on"), "a.txt has another size"),
        (lambda p: p.write_text("eno"), "a.txt has another size or SHA-256"),
    ],
)
def test_damage_is_named(damage, message, store, folder):
    storage.publish(folder, URL)
    damage(remote(store, "a.txt"))
    with pytest.raises(ValueError, match=f"`url` must be whole.*{message}"):
        storage.fetch(URL)


def test_a_damaged_copy_is_replaced(store, folder):
    storage.publish(folder, URL)
    path = pathlib.Path(storage.fetch(URL), "a.txt")
    path.write_text("eno")
    assert pathlib.Path(storage.fetch(URL), "a.txt").read_text() == "one"


@pytest.mark.parametrize("name", ["../a.txt", "/a.txt", "a/./b", ""])
def test_manifests_name_nothing_outside(name, store):
    entry = {"size": 1, "sha256": "0" * 64}
    manifest = json.dumps({"format": 1, "files": {name: entry}})
    write(remote(store), {NAME: manifest})
    with pytest.raises(ValueError, match=f"whose {NAME} is damaged"):
        storage.fetch(URL)


def test_a_size_that_is_infinite_is_damage(store):
    entry = {"size": float("inf"), "sha256": "0" * 64}
    manifest = json.dumps({"format": 1, "files": {"a": entry}})
    write(remote(store), {NAME: manifest})
    with pytest.raises(ValueError, match=f"whose {NAME} is damaged.*infinity"):
        storage.fetch(URL)


def test_folders_of_others_are_fetched_by_version(store, folder):
    write(remote(store), read(folder))
    for path in (remote(store, "a.txt"), remote(store, "below/b.txt")):
        os.utime(path, (0, 0))
    copy = storage.fetch(URL)
    assert read(copy) == read(folder)
    remote(store, "a.txt").write_text("other")
    os.utime(remote(store, "a.txt"), (9, 9))
    assert read(storage.fetch(URL)) == {"a.txt": "other", "below/b.txt": "two"}
    assert read(copy) == read(folder)


@pytest.mark.parametrize("inside", ["", "/a.txt"])
def test_files_of_untold_sizes_are_fetched_anew(inside, store, folder, monkeypatch):
    """As those that a web server sends in chunks."""
    info = store.info

    def without_size(self, path, **kwargs):
        untold = {"size": None, "mtime": 0, "created": 0, "ino": 0}
        return {**info(self, path, **kwargs), **untold}

    monkeypatch.setattr(store, "lag", 0)
    monkeypatch.setattr(store, "info", without_size)
    for text in ("one", "other"):
        write(remote(store), {"a.txt": text})
        path = pathlib.Path(storage.fetch(URL + inside))
        assert (path if inside else path / "a.txt").read_text() == text


@pytest.mark.parametrize(
    "url", ["s3://b", "az://b/x", "abfs://b", "oss://b", "https://h/x", "file:///x"]
)
def test_pathlib_drops_a_slash(url):
    with pytest.raises(ValueError, match="`folder` must be .*pathlib drops a slash"):
        storage.publish(pathlib.Path(url), "memory://bucket")


def test_empty_folders_are_not_published(tmp_path):
    with pytest.raises(ValueError, match="`folder` must be a folder with files"):
        storage.publish(tmp_path, "memory://empty")


def test_linked_folders_are_published(store, folder, tmp_path):
    write(tmp_path / "elsewhere", {"c.txt": "three"})
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "d.txt").symlink_to(tmp_path / "elsewhere" / "c.txt")
    storage.publish(folder, URL)
    contents = {"a.txt": "one", "below/b.txt": "two", "link/c.txt": "three"}
    assert read(storage.fetch(URL)) == {**contents, "d.txt": "three"}


@pytest.mark.parametrize("target", ["nowhere", ".", "..", "link"])
def test_links_that_hold_no_content_are_named(store, folder, target):
    link = folder / "below" / "link"
    link.symlink_to(target)
    with pytest.raises(ValueError, match=f"`folder` must have files.*with {link}"):
        storage.publish(folder, URL)
    assert not remote(store).exists()


def test_a_folder_that_cannot_be_read_is_an_error(store, folder, monkeypatch):
    scandir = os.scandir

    def refuses(path):
        if str(path).endswith("below"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    with pytest.raises(PermissionError, match="below"):
        storage.publish(folder, URL)


@pytest.mark.parametrize("name", ["../../../../out.txt", "a//b.txt", "./a.txt"])
def test_a_server_writes_nothing_outside_its_copy(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "cache" / "tfeff"))
    files = MemoryFileSystem()
    files.pipe("/listed/folder/a.txt", b"one")
    entry = files.store["/listed/folder/a.txt"]
    monkeypatch.setitem(files.store, f"/listed/folder/{name}", entry)
    with pytest.raises(ValueError, match=rf"must list the files.*which lists '{name}'"):
        storage.fetch("memory://listed/folder")
    assert not list(tmp_path.glob("**/*.txt"))


def test_a_copy_has_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path))
    assert os.path.basename(staged("fetched", "https://host/..")) == "folder"


def test_of_a_run_comes_what_models_are_made_of(store, tmp_path):
    own = ["config.json", "preset/config.json", "preset/model.weights.h5"]
    steps = [f"checkpoints/step-{step:08d}.keras" for step in (2, 4)]
    others = ["cells/a/model.keras", "export/1/x", "predictions/test/x", "cache/x"]
    run = write(tmp_path / "run", dict.fromkeys([*own, *steps, *others], "x"))
    storage.publish(run, URL)
    copy = local_run("path", URL)
    assert sorted(read(copy)) == own
    assert sorted(read(local_run("path", URL, 2))) == sorted([*own, steps[0]])
    assert local_run("path", URL, newest=True) == copy
    assert sorted(read(copy)) == sorted([*own, *steps])
    # Of a run that is not finished, the newest checkpoint is what there is.
    os.remove(run / "preset" / "config.json")
    storage.publish(run, f"{URL}/unfinished")
    copy = local_run("path", f"{URL}/unfinished")
    assert steps[1] in read(copy) and steps[0] not in read(copy)


def test_two_publishers_at_once_are_told(tmp_path, monkeypatch):
    ours = write(tmp_path / "ours", {"a.txt": "one"})
    others = write(tmp_path / "others", {"a.txt": "other"})
    url, put = "memory://contested/folder", place.Place.put

    def late(self, path, name):
        monkeypatch.setattr(place.Place, "put", put)
        storage.publish(others, url)  # In the meantime.
        put(self, path, name)

    monkeypatch.setattr(place.Place, "put", late)
    with pytest.raises(ValueError, match="`url` must be written by one process at a t"):
        storage.publish(ours, url)


def test_a_folder_that_changes_while_it_is_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path))
    files = MemoryFileSystem()
    for name in ("a.txt", "b.txt"):
        files.pipe(f"/changing/folder/{name}", b"old")
    get = place.Place.get

    def changed(self, name, path):
        get(self, name, path)
        files.rm_file(f"/changing/folder/{name}")
        files.pipe(f"/changing/folder/{name}", b"new")

    monkeypatch.setattr(place.Place, "get", changed)
    with pytest.raises(OSError, match="changed while it was read: it has other files"):
        storage.fetch("memory://changing/folder")
    monkeypatch.setattr(place.Place, "get", get)
    found = pathlib.Path(storage.fetch("memory://changing/folder"))
    assert {path.read_text() for path in found.iterdir()} == {"new"}
