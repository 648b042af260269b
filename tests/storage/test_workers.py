"""One run directory at a URL for several workers: what the others copy, and errors."""

import json
import os
import pathlib
import shutil
import threading

import pytest

import tfeff
from tests.subjects.stores import make_quick_store
from tests.subjects.worker_threads import WorkerThreads
from tfeff.storage import remote_run, run_copy
from tfeff.storage.place import Place
from tfeff.training import agreement
from tfeff.utils.files import write_text

URL = "store://bucket/run"


@pytest.fixture(name="store", autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_run, "_ATTEMPTS", 1)
    return make_quick_store(tmp_path / "store", monkeypatch)


@pytest.fixture(autouse=True)
def _only_the_chief_writes(monkeypatch):
    def checked(write):
        def by_chief(*args, **kwargs):
            assert threading.current_thread().name not in ("worker 1", "worker 2")
            return write(*args, **kwargs)

        return by_chief

    for name in ("write", "put", "remove", "check_writable", "age"):
        monkeypatch.setattr(Place, name, checked(getattr(Place, name)))


@pytest.fixture(name="fetched")
def _fetched(monkeypatch):
    """The names of the files that are downloaded."""
    names, get = [], Place.get

    def noted(place, name, path):
        names.append(name)
        get(place, name, path)

    monkeypatch.setattr(Place, "get", noted)
    return names


@pytest.fixture(name="cluster")
def _cluster(monkeypatch):
    return WorkerThreads(monkeypatch)


def write(run, **files):
    for name, text in files.items():
        path = pathlib.Path(run.path(*name.split("__")))
        path.parent.mkdir(exist_ok=True)
        write_text(path, text)


def content(folder):
    found = (path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def open_run(url=URL):
    return tfeff.training.RunDirectory(url, {"a": 1})


def share(written, **arguments):
    """A worker that writes files as the chief, or reads its copy."""

    def work():
        with open_run() as run:
            return run.by_chief(
                lambda: write(run, **written),
                lambda: content(run.directory),
                **arguments,
            )

    return work


def test_the_others_copy_what_they_read(cluster, fetched):
    files = {"words": "a", "cache__1": "b", "cache__2": "c", "export__1": "d"}
    written = {**files, "checkpoints__step-00000002.keras": "e", "tensorboard__f": "f"}
    work = share(written, files=("cache", "words", "none"))
    expected = {"words": "a", "cache/1": "b", "cache/2": "c"}
    assert cluster.run(work, work) == [None, expected]
    assert sorted(fetched) == sorted(expected)
    fetched.clear()
    # What has not changed is there already; what is gone is gone.
    work = share({"words": "new"})
    told = [None, expected | {"words": "new", "export/1": "d"}]
    found = cluster.run(work, work)
    assert found[1].pop("config.json")
    assert found == told
    assert [name.partition("~")[0] for name in sorted(fetched)] == [
        "config.json",
        "export/1",
        "words",
    ]
    fetched.clear()
    assert cluster.run(*[share({"words": "new"}, files=())] * 2)[1]["words"] == "new"
    assert not fetched


def test_workers_of_one_machine_have_copies_of_their_own(monkeypatch):
    def work():
        with open_run() as run:
            run.by_chief(lambda: write(run, words="a"), lambda: None)
            assert run.shown(run.path("words")) == f"{URL}/words"
            with run.published():
                run.finish()
            return run.directory, content(run.directory).get("words")

    folders, words = zip(*WorkerThreads(monkeypatch, 3).run(work, work, work))
    assert words == ("a",) * 3 and len({*folders}) == 3
    alone = tfeff.storage.fetch(URL)
    assert content(alone)["words"] == "a" and "SHA256SUMS" in content(alone)


def test_the_newest_checkpoint_alone_is_copied(cluster, fetched):
    def save(run):
        steps = {f"checkpoints__step-0000000{n}.keras": str(n) for n in (2, 4)}
        write(run, metrics="m", **steps)

    def work():
        with open_run() as run:
            run.by_chief(lambda: save(run), lambda: None, files=())
            return agreement.agree_on_checkpoint(run)

    # These are no archives.
    first, second = cluster.run(work, work)
    assert [name.partition("~")[0] for name in fetched] == [
        "checkpoints/step-00000004.keras"
    ]
    assert "step-00000004.keras is truncated or corrupted" in str(first)
    assert str(first) == str(second)


def errors(cluster, *functions):
    results = cluster.run(*functions)
    assert all(isinstance(result, ValueError) for result in results), results
    return [str(result) for result in results]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("store://bucket/other", ""),
        ("memory://run", ""),
        ("folder", ""),
        ("nosuch://bucket/run", ": `directory` must be a path, or a URL of a scheme"),
        ("store://secret/run", ": `directory` must be a place that may be read"),
    ],
)
def test_a_worker_that_sees_another_place_is_named(
    other, reason, cluster, tmp_path, store, monkeypatch
):
    def refuses(files, path, **_):
        if "/secret/" in path:
            raise PermissionError("403")
        return read(files, path)

    read = store.cat_file
    monkeypatch.setattr(store, "cat_file", refuses)
    other = str(tmp_path / other) if other == "folder" else other
    for text in errors(cluster, open_run, lambda: open_run(other)):
        assert "`directory` must be one folder that all workers see" in text
        told = f"worker 1 does not see there that worker 0 has opened {URL} (it was "
        assert f"{told}given {other}){reason}" in text
    for text in errors(cluster, lambda: open_run(other), open_run):
        assert ("worker 1 does not see there" in text) == (not reason)
    open_run().close()  # The lease was given back.
    assert not os.path.lexists(tmp_path / "folder")


def test_a_worker_that_cannot_fetch_is_named(cluster, monkeypatch, store):
    def refuses(place, name, path):
        raise PermissionError("403")

    with monkeypatch.context() as patch:
        patch.setattr(store, "get_file", refuses)
        for text in errors(cluster, *[share({"words": "a"})] * 2):
            assert "All workers must be able to read what worker 0, the chief" in text
            assert f"in {URL}. Received: worker 1 cannot: " in text and "403" in text
    path = pathlib.Path(store.root, "bucket", "run", "words")
    path.write_text("b")
    for text in errors(cluster, *[share({"words": "a"})] * 2):
        assert "worker 1 cannot: " in text and "damaged: words has another" in text
    path.write_text("a")
    with monkeypatch.context() as patch:
        patch.setattr(run_copy, "read_manifest", lambda place: None)
        for text in errors(cluster, *[share({"words": "a"})] * 2):
            assert "worker 1 cannot: " in text and "has another manifest" in text
    assert cluster.run(*[share({}, files=["words"])] * 2)[1]["words"] == "a"


def test_a_chief_that_cannot_publish_ends_all(cluster, store, monkeypatch, capsys):
    def fails(path):
        if path.endswith("words"):
            raise ConnectionResetError("gone")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    first, second = cluster.run(*[share({"words": "a"})] * 2)
    assert isinstance(first, OSError) and isinstance(second, ValueError)
    assert "lacks the newest files of the run" in str(first)
    assert str(second).startswith("worker 0, the chief, has ended: store://bucket/run")
    assert "gone" in str(second)


def test_a_run_that_was_taken_over_ends_all(cluster):
    def work():
        with open_run() as run:
            run.by_chief(lambda: write(run, words="a"), lambda: None)
            if run.is_chief:
                holder = {"id": "other", "pid": 7, "host": "far", "since": "now"}
                place = Place("directory", URL)
                place.write("tfeff-lease/00000009.json", json.dumps(holder).encode())
            run.check_held()

    for text in errors(cluster, work, work):
        assert "has been taken over by process 7 on far" in text


def test_a_copy_follows_a_run_that_was_begun_anew(cluster, store):
    assert "words" in cluster.run(*[share({"words": "a"})] * 2)[1]
    shutil.rmtree(pathlib.Path(store.root, "bucket", "run"))

    def work():
        with open_run() as run:
            run.share("words")
            return content(run.directory)

    shutil.rmtree(os.path.join(os.environ["TFEFF_CACHE"], "runs"))
    assert cluster.run(work, work)[1] == {}
