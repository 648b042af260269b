"""Run directories at URLs: one process at a time, published, gone on with elsewhere."""

import atexit
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import keras
import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

import tfeff
from tests.subjects.s3_run import make_dataset, make_model
from tests.subjects.stores import make_quick_store
from tests.subjects.streams import UNREADABLE, unreadable
from tfeff import storage
from tfeff.recipes import finetuning
from tfeff.storage import lease, remote_run
from tfeff.storage.lease import Lease
from tfeff.storage.manifest import NAME, UNFINISHED
from tfeff.storage.place import Place
from tfeff.storage.staging import staged
from tfeff.utils import files, job_output

URL = "store://bucket/run"


@pytest.fixture(name="store", autouse=True)
def _store(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "_RENEWALS", 150)
    return make_quick_store(tmp_path / "store", monkeypatch)


def place():
    return Place("directory", URL)


def test_one_has_a_lease_at_a_time():
    first = Lease(place())
    with pytest.raises(ValueError, match="`directory` must not be in use.*process "):
        Lease(place())
    first.check()
    first.release()
    second = Lease(place())
    second.check()
    second.release()


def test_of_many_that_start_at_once_one_has_the_lease():
    held, refused = [], []

    def start():
        try:
            held.append(Lease(place()))
        except ValueError:
            refused.append(1)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 5)
    held[0].release()


def test_without_conditional_writes_the_last_writer_has_the_lease(store, monkeypatch):
    monkeypatch.setattr(store, "conditional", False)
    threads, held, refused = [], [], []
    both = threading.Barrier(2)

    def fails(path):
        if path.endswith("1.json") and threading.current_thread() in threads:
            both.wait()  # Both have seen that there is none.

    def sleep(seconds):
        if seconds == lease._SETTLE:
            both.wait()  # Both have written.
        else:
            time.sleep(seconds)

    def start():
        try:
            held.append(Lease(place()))
        except ValueError:
            refused.append(1)

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    patched = types.SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    monkeypatch.setattr(lease, "time", patched)
    threads += [threading.Thread(target=start) for _ in range(both.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 1)
    held[0].check()
    held[0].release()


def test_a_lease_that_is_not_renewed_is_taken_over(capsys, monkeypatch):
    monkeypatch.setattr(lease, "SECONDS", 5.0)
    first = Lease(place())
    first._released.set()  # Its thread ends, as that of a process which was killed.
    first._thread.join()
    ages = iter([0.0, 0.0, 9.0])
    monkeypatch.setattr(Place, "age", lambda place, name: next(ages))
    second = Lease(place())
    told = capsys.readouterr().err
    assert "was left by process" in told and ",," not in told
    second.check()
    with pytest.raises(ValueError, match="`directory` has been taken over by process"):
        first.check()
    second.release()


def test_a_storage_that_refuses_writes_ends_no_lease(store, monkeypatch, capsys):
    monkeypatch.setattr(lease, "SECONDS", 0.3)
    monkeypatch.setattr(lease, "_RENEWALS", 6)
    refused = threading.Event()

    def fails(path):
        if mine._is_old():
            refused.set()
        raise ConnectionResetError("gone.")

    mine = Lease(place(), "here")
    with monkeypatch.context() as patch:
        patch.setattr(store, "fails", staticmethod(fails))
        while not refused.wait(1):
            assert mine._thread.is_alive()
        with pytest.raises(OSError, match="gone"):
            mine.check()
        assert not mine.is_lost
        told = ""
        while "cannot be renewed" not in told:
            time.sleep(0.01)
            told += capsys.readouterr().err
    mine.check()
    mine._released.set()
    mine._thread.join()
    told += capsys.readouterr().err
    assert told.count("cannot be renewed") == 1 and "gone.." not in told
    holder = {"id": "other", "pid": 7, "host": "far", "since": "now"}
    place().write("tfeff-lease/00000009.json", json.dumps(holder).encode())
    with pytest.raises(ValueError, match=r"process 7 on far \(since now\), .*in here$"):
        mine.check()


def train(url, steps=6, callbacks=()):
    with tfeff.training.RunDirectory(url, {"a": 1}) as run:
        model = run.fit(
            make_model,
            make_dataset,
            total_steps=6,
            steps_per_epoch=2,
            tokens_per_step=1,
            callbacks=callbacks,
        )
        run.finish()
    return model


class Stop(keras.callbacks.Callback):
    """Ends the training by an error in the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise RuntimeError("stopped")


@pytest.mark.quick("tfeff-unfinished.json")
@pytest.mark.parametrize("name", [NAME, UNFINISHED])
def test_an_uploaded_run_is_opened_by_its_url_alone(tmp_path, name):
    """By a path its checkpoints would not be found: it would begin anew in it."""
    url = (tmp_path / "run").as_uri()
    with pytest.raises(RuntimeError, match="stopped"):
        train(url, callbacks=[Stop()])
    os.rename(tmp_path / "run" / NAME, tmp_path / "run" / name)
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match=f"`directory` must be given by its.*{name}"):
        train(str(tmp_path / "run"))
    after = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    assert after == before
    (tmp_path / "run" / "preset").mkdir()
    with pytest.raises(ValueError, match="as tfeff has uploaded it: give its URL"):
        tfeff.tasks.load_pretrained(tmp_path / "run")
    (tmp_path / "run" / "preset").rmdir()
    os.rename(tmp_path / "run" / name, tmp_path / "run" / NAME)
    train(url)


def test_a_run_is_published_and_gone_on_with_elsewhere(
    store, tmp_path, monkeypatch, capsys
):
    whole = train(str(tmp_path / "whole"))
    with pytest.raises(RuntimeError, match="stopped"):
        train(URL, callbacks=[Stop()])
    remote = pathlib.Path(store.root, "bucket", "run")
    manifest = json.loads((remote / NAME).read_text())
    assert "checkpoints/step-00000002.keras" in manifest["files"]
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "elsewhere"))
    model = train(URL)
    for one, other in zip(whole.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    found = pathlib.Path(storage.fetch(URL))
    for name in ("metrics.csv", "config.json"):
        assert (found / name).read_text() == (tmp_path / "whole" / name).read_text()
    # Old versions of files are gone, and nothing is left unfinished.
    objects = {
        f.get("at", n)
        for n, f in json.loads((remote / NAME).read_text())["files"].items()
    }
    there = {str(p.relative_to(remote)) for p in remote.glob("**/*") if p.is_file()}
    assert {x for x in there if not x.startswith("tfeff-")} == objects
    # The machine that has the older copy takes the newer run.
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "copies"))
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        assert os.path.exists(run.path("checkpoints", "step-00000006.keras"))
    assert "aside" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_start_that_is_refused_names_the_url_and_leaves_the_digests():
    train(URL)
    before = (pathlib.Path(storage.fetch(URL)) / "SHA256SUMS").read_text()
    with pytest.raises(ValueError, match=f"`directory` {URL} belongs to"):
        tfeff.training.RunDirectory(URL, {"a": 2})
    with pytest.raises(KeyError), tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        (pathlib.Path(run.directory) / "new").touch()
        raise KeyError
    found = pathlib.Path(storage.fetch(URL))
    assert (found / "new").exists()
    assert (found / "SHA256SUMS").read_text() == before


@pytest.mark.slow
def test_a_start_that_was_killed_before_it_made_anything_is_forgotten():
    folder = pathlib.Path(staged("runs", URL))
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"a": 2}')
    train(URL)
    assert json.loads((folder / "config.json").read_text()) == {"a": 1}


def test_predictions_are_told_by_the_url(capsys):
    examples = tfeff.data.TextExamples(
        first=("a", "b"),
        second=None,
        labels=None,
        label_names=("0", "1"),
        ids=("0", "1"),
    )
    part = types.SimpleNamespace(
        examples=examples, predictions=lambda model: np.zeros(2, int)
    )
    dataset = tfeff.datasets.get("SST-2")
    task = types.SimpleNamespace(
        dataset=dataset, to_predict=part, predicted_baseline=None
    )
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        finetuning.predict_part(task, None, "test", run)
    told = f"predictions: {URL}/predictions/test/SST-2.tsv\n"
    assert capsys.readouterr().out == told
    found = pathlib.Path(storage.fetch(URL))
    assert (found / "predictions" / "test" / "SST-2.tsv").exists()


def test_work_that_was_not_published_is_not_lost(store, tmp_path, monkeypatch, capsys):
    train(URL)

    tried = threading.Event()

    def fails(path):
        inside = path.removeprefix(store.root)
        if "/run/" in inside and "tfeff" not in inside:
            tried.set()
            raise ConnectionResetError("gone")

    monkeypatch.setattr(remote_run, "_ATTEMPTS", 1)
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        pass
    monkeypatch.setattr(store, "fails", staticmethod(fails))
    with (
        pytest.raises(OSError, match="store://bucket/run lacks the newest .*gone"),
        tfeff.training.RunDirectory(URL, {"a": 1}) as run,
    ):
        pathlib.Path(run.path("note.txt")).write_text("new")
        tried.wait()  # The thread tries it, too.
    assert "Writing store://bucket/run failed" in capsys.readouterr().err
    monkeypatch.setattr(store, "fails", staticmethod(lambda path: None))
    # The same machine goes on from it ...
    shutil.copytree(tmp_path / "copies", tmp_path / "kept")
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        assert pathlib.Path(run.path("note.txt")).read_text() == "new"
    assert pathlib.Path(storage.fetch(f"{URL}/note.txt")).read_text() == "new"
    # ... unless another one has gone on before; then it is kept aside.
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "other"))
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        pathlib.Path(run.path("other.txt")).write_text("other")
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "kept"))
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        assert os.path.exists(run.path("other.txt"))
    told = capsys.readouterr().err
    assert "was gone on with elsewhere" in told
    (aside,) = (tmp_path / "kept").glob("runs/*/run.aside-1")
    assert (aside / "note.txt").read_text() == "new"


def test_a_run_of_other_settings_is_refused():
    train(URL)
    with pytest.raises(ValueError, match="belongs to a run of another configuration"):
        tfeff.training.RunDirectory(URL, {"a": 2})
    tfeff.training.RunDirectory(URL, {"a": 1}).close()  # The lease was given back.


def test_files_of_others_are_refused(store):
    path = pathlib.Path(store.root, "bucket", "run", "thesis.tex")
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ValueError, match="`directory` must be a run's.*thesis.tex"):
        tfeff.training.RunDirectory(URL, {"a": 1})
    assert path.read_text() == "mine"


def test_a_training_whose_run_was_taken_over_ends(store):
    class TakeOver(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                holder = {"id": "other", "pid": 7, "host": "far", "since": "now"}
                place().write("tfeff-lease/00000009.json", json.dumps(holder).encode())

    with pytest.raises(ValueError, match="has been taken over by process 7 on far"):
        train(URL, callbacks=[TakeOver()])


def test_a_run_may_be_opened_twice():
    with tfeff.training.RunDirectory(URL, {"a": 1}):
        with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
            pathlib.Path(run.path("note.txt")).write_text("new")
        with pytest.raises(ValueError, match="`directory` must not be in use"):
            Lease(place())
    assert pathlib.Path(storage.fetch(f"{URL}/note.txt")).read_text() == "new"


def test_nothing_is_left_of_a_start_that_made_nothing(store):
    with tfeff.training.RunDirectory(URL, {"a": 1}):
        time.sleep(0.2)
    names = {p.name for p in pathlib.Path(store.root).glob("**/*") if p.is_file()}
    assert NAME not in names and "config.json" not in names


def test_what_a_killed_process_did_not_delete_is_deleted(store, monkeypatch):
    def write(text):
        with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
            files.write_text(run.path("note.txt"), text)

    def killed(place, name):
        if name == "note.txt":
            raise OSError("killed")
        remove(place, name)

    remove = Place.remove
    write("one")
    monkeypatch.setattr(remote_run, "_ATTEMPTS", 1)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="killed"):
        patch.setattr(Place, "remove", killed)
        write("two")
    folder = pathlib.Path(store.root, "bucket", "run")
    assert len(list(folder.glob("note.txt*"))) == 2
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        assert pathlib.Path(run.path("note.txt")).read_text() == "two"
    (left,) = folder.glob("note.txt*")
    assert left.read_text() == "two"
    assert not (folder / UNFINISHED).exists()


@pytest.mark.parametrize("scheme", ["store://bucket", "file://{}/files"])
def test_what_was_published_is_read_by_its_names(scheme, tmp_path):
    url = f"{scheme.format(tmp_path)}/run"
    for text in ("one", "two"):
        with tfeff.training.RunDirectory(url, {"a": 1}) as run:
            os.makedirs(run.path("logs"), exist_ok=True)
            new = pathlib.Path(run.path("logs", "note.txt.new"))
            new.write_text(text)
            new.rename(run.path("logs", "note.txt"))
    for name, inside in (
        ("", "logs/note.txt"),
        ("/logs", "note.txt"),
        ("/logs/note.txt", ""),
    ):
        path = pathlib.Path(storage.fetch(url + name), inside)
        assert path.read_text() == "two", name
    with pytest.raises(ValueError, match="`url` must exist.*nothing"):
        storage.fetch(f"{url}/none.txt")


def test_files_of_a_local_url_are_read_where_they_are(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    url = f"file://{tmp_path}/a.txt"
    assert storage.fetch(url) == str(tmp_path / "a.txt")
    (tmp_path / UNFINISHED).write_text("{}")
    with pytest.raises(ValueError, match="`url` must be whole.*not ended"):
        storage.fetch(f"file://{tmp_path}")


@pytest.mark.slow
def test_kills_while_it_is_published_leave_no_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "SECONDS", 1.0)
    monkeypatch.setattr(lease, "_RENEWALS", 5)

    def killed(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def start(upload):
        process = os.fork()
        if process == 0:
            remote_run.upload = upload
            with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
                pathlib.Path(run.path("note.txt")).write_text("new")
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    for _ in range(2):
        assert start(killed) == -signal.SIGKILL
    assert len(list(tmp_path.glob("copies/runs/*/.partial-*"))) == 1
    assert start(remote_run.upload) == 0
    found = sorted(path.name for path in tmp_path.glob("copies/runs/*/*"))
    assert found == ["run", "run.published"]


def test_a_refused_write_is_told_and_tried_again(store, monkeypatch, capsys):
    """As where a token has expired, until it is renewed."""
    refusals, tried = [1], threading.Event()

    def refuses(path):
        if "/run/note" in path and refusals:
            refusals.pop()
            tried.set()
            raise PermissionError("The provided token has expired.")

    def waits_for(condition):
        while not condition():
            time.sleep(0.02)

    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        monkeypatch.setattr(store, "fails", staticmethod(refuses))
        pathlib.Path(run.path("note.txt")).write_text("one")
        tried.wait()
        waits_for(lambda: run._remote._published or not run._remote._thread.is_alive())
        assert "token has expired. It is tried again." in capsys.readouterr().err
        assert "note.txt" in run._remote._published.files
        # The state that is awaited is tried again, too.
        monkeypatch.setattr(remote_run.time, "sleep", lambda seconds: None)
        run._remote._closed.set()
        run._remote._thread.join()
        refusals.append(1)
        pathlib.Path(run.path("note2.txt")).write_text("two")
        run._remote.publish()
        assert "note2.txt" in run._remote._published.files


def _published(remote):
    return remote._published.files if remote._published else ()


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_standard_error_that_nobody_reads_ends_no_thread(kind, store, monkeypatch):
    monkeypatch.setattr(lease, "SECONDS", 0.3)
    monkeypatch.setattr(lease, "_RENEWALS", 6)

    def fails(path):
        raise ConnectionResetError("gone")

    def says(text):
        said.append(text)
        return job_output.say(text)

    def waits_for(condition, *threads):
        while not condition() and all(thread.is_alive() for thread in threads):
            time.sleep(0.02)

    said = []
    with unreadable(kind) as stream, tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        remote, held = run._remote, run._remote._lease
        threads = remote._thread, held._thread
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", stream)
            patch.setattr(store, "fails", staticmethod(fails))
            pathlib.Path(run.path("note.txt")).write_text("one")
            for module in (lease, remote_run):
                patch.setattr(module, "say", says)
            waits_for(lambda: {text.split()[1] for text in said} > {"lease"}, *threads)
        waits_for(lambda: not held._is_old(), *threads)
        waits_for(lambda: "note.txt" in _published(remote), *threads)
        assert all(thread.is_alive() for thread in threads)


def test_a_lease_that_cannot_be_seen_ends_no_training(monkeypatch):
    def refused(*_):
        raise ValueError("refused to these credentials")

    run = tfeff.training.RunDirectory(URL, {"a": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Place, "files_in", refused)
        run._remote.check()
        patch.setattr(run._remote._lease, "_lost", "process 7")
        with pytest.raises(ValueError, match="has been taken over by process 7"):
            run._remote.check()
    run.close()


class Killed(BaseException):
    pass


def stopped_run():
    """A run whose thread is at its end, so that a test publishes by itself."""
    run = remote_run.open_remote_run("directory", URL)
    run._closed.set()
    run._thread.join()
    pathlib.Path(run.folder).mkdir(parents=True, exist_ok=True)
    return run


def replace(run, **texts):
    for name, text in texts.items():
        new = pathlib.Path(run.folder, f"{name}.new")
        new.write_text(text)
        new.rename(pathlib.Path(run.folder, name))


def changed_run():
    """A stopped run that is published, and whose note has changed since."""
    run = stopped_run()
    replace(run, **{"config.json": "{}", "note": "one"})
    run._publish()
    replace(run, note="two")
    return run


def kill(run):
    """Leaves the run as a kill does, but for its lease."""
    atexit.unregister(run._close)
    run._lease.release()
    run.users = 0


def end(run):
    run.close()
    return {p.name: p.read_text() for p in pathlib.Path(storage.fetch(URL)).iterdir()}


def test_an_upload_that_failed_at_its_end_endangers_no_object(
    store, tmp_path, monkeypatch
):
    run = changed_run()

    def fails(*_):
        raise OSError("gone")

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(OSError, match="gone"):
        patch.setattr(Place, "remove", fails)
        run._publish()
    replace(run, note="three")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Place, "put", killed)
        run._publish()
    kill(run)
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "elsewhere"))
    run = stopped_run()
    assert pathlib.Path(run.folder, "note").read_text() == "two"
    # What a failed upload has left is removed though nothing has changed since.
    replace(run, note="four")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="gone"):
        patch.setattr(Place, "remove", fails)
        run._publish()
    run._publish()
    assert len(list(pathlib.Path(store.root, "bucket", "run").glob("note*"))) == 1
    assert end(run) == {"config.json": "{}", "note": "four"}


@pytest.mark.parametrize("name", ["checkpoints/step", "metrics.csv"])
def test_an_upload_that_ends_after_a_takeover_replaces_nothing(
    name, tmp_path, monkeypatch
):
    monkeypatch.setattr(lease, "SECONDS", 0.1)
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", 3600.0)
    runs = []

    def start(folder, **texts):
        monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / folder))
        run = remote_run.RemoteRun("directory", URL)
        runs.append(run)
        atexit.unregister(run._close)
        os.makedirs(os.path.join(run.folder, "checkpoints"), exist_ok=True)
        replace(run, **texts)
        return run

    first = start("one", **{"config.json": "{}", "metrics.csv": "0"})
    for text in ("1", "2"):
        replace(first, **{"metrics.csv": text})
        first._publish()
    first._lease._released.set()  # Its machine is cut off, in an upload.
    first._lease._thread.join()
    replace(first, **{name: "of the first"})
    put = first._place.put

    def ends_late(path, at):
        second = start("two", **{name: "of the second"})
        second._publish()
        second._lease.release()
        put(path, at)

    monkeypatch.setattr(first._place, "put", ends_late)
    with pytest.raises(ValueError, match="has been taken over"):
        first._publish()
    assert pathlib.Path(storage.fetch(f"{URL}/{name}")).read_text() == "of the second"
    for run in runs:
        run._closed.set()
        run._thread.join()


def test_a_damaged_run_is_named_at_its_start(store, tmp_path, monkeypatch):
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        files.write_text(run.path("note"), "one")
    pathlib.Path(store.root, "bucket", "run", "note").unlink()
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "elsewhere"))
    with pytest.raises(ValueError, match=f"`directory` must be whole.*{URL}.*note is"):
        tfeff.training.RunDirectory(URL, {"a": 1})


def test_a_file_that_grows_is_published_as_it_was(monkeypatch):
    """As that of Keras' CSVLogger."""
    run = stopped_run()
    replace(run, **{"config.json": "{}", "metrics.csv": "1"})
    with open(pathlib.Path(run.folder, "log.csv"), "w", buffering=1) as log:
        log.write("one\n")

        def grows(upload):
            def wrapper(*args, **kwargs):
                log.write("more\n")
                return upload(*args, **kwargs)

            return wrapper

        with monkeypatch.context() as patch:
            patch.setattr(remote_run, "_link", grows(remote_run._link))
            patch.setattr(Place, "put", grows(Place.put))
            run._publish()
    kill(run)
    found = pathlib.Path(storage.fetch(URL), "log.csv").read_text()
    assert found.startswith("one\n") and set(found.split()) == {"one", "more"}


@pytest.mark.parametrize("after", ["manifest", "upload"])
def test_a_kill_just_after_the_manifest_sets_nothing_aside(
    after, monkeypatch, capsys, tmp_path
):
    run = changed_run()

    def killed(*_):
        raise Killed

    def uploads(*args):
        upload(*args)
        raise Killed

    upload = remote_run.upload
    with monkeypatch.context() as patch, pytest.raises(Killed):
        if after == "manifest":
            patch.setattr(Place, "remove", killed)
        else:
            patch.setattr(remote_run, "upload", uploads)
        run._publish()
    replace(run, note="three")  # It was made while the upload went on.
    kill(run)
    run = stopped_run()
    assert pathlib.Path(run.folder, "note").read_text() == "three"
    assert end(run) == {"config.json": "{}", "note": "three"}
    assert "elsewhere" not in capsys.readouterr().err
    assert not list(tmp_path.glob("copies/runs/*/*.aside-*"))


def test_a_kill_within_the_manifest_is_mended_where_it_was(
    monkeypatch, tmp_path, capsys
):
    run = changed_run()

    def killed(place, name, content, **_):
        write(place, name, content[:40] if name == NAME else content)
        if name == NAME:
            raise Killed

    write = Place.write
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Place, "write", killed)
        run._publish()
    kill(run)
    with monkeypatch.context() as patch:
        patch.setenv("TFEFF_CACHE", str(tmp_path / "elsewhere"))
        with pytest.raises(ValueError, match=f"`directory` must have a whole {NAME}"):
            stopped_run()
    run = stopped_run()
    assert end(run) == {"config.json": "{}", "note": "two"}
    assert "elsewhere" not in capsys.readouterr().err


def test_files_that_can_be_renamed_are_written_beside(tmp_path, monkeypatch):
    def killed(self, path, value, **_):
        pathlib.Path(path).write_bytes(value[:1])
        raise Killed

    here = Place("directory", f"file://{tmp_path}")
    here.write(NAME, b"one")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(LocalFileSystem, "pipe_file", killed)
        here.write(NAME, b"two")
    assert here.read(NAME) == b"one"
    here.write(NAME, b"two")
    assert here.read(NAME) == b"two"


def test_a_kill_just_before_the_manifest_goes_on_from_the_older_one(
    monkeypatch, tmp_path
):
    run = changed_run()

    def killed(place, name, content, **_):
        if name == NAME:
            raise Killed
        write(place, name, content)

    write = Place.write
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Place, "write", killed)
        run._publish()
    kill(run)
    run = stopped_run()
    assert pathlib.Path(run.folder, "note").read_text() == "two"
    kill(run)
    with monkeypatch.context() as patch:
        patch.setenv("TFEFF_CACHE", str(tmp_path / "elsewhere"))
        run = stopped_run()
        replace(run, note="other")
        assert end(run)["note"] == "other"
    run = stopped_run()
    assert pathlib.Path(run.folder, "note").read_text() == "other"
    assert end(run)["note"] == "other"


def test_the_lock_of_a_grid_is_not_published():
    with tfeff.training.RunDirectory(URL, {"a": 1}) as run:
        grid = tfeff.training.Grid(run.path("cells"), {"rate": [1]}, [0], "score")

        def cell(folder, **_):
            assert os.path.exists(run.path("cells", "run.lock"))
            (pathlib.Path(folder) / "model").touch()
            run._remote.publish()
            assert not os.path.exists(storage.fetch(f"{URL}/cells") + "/run.lock")
            return {"score": 1.0}

        grid.run(cell)


ENDS = """
import pathlib, sys
import tfeff

(url,) = sys.argv[1:]
run = tfeff.training.RunDirectory(url, {"a": 1})
pathlib.Path(run.path("note.txt")).write_text("the last words")
"""


@pytest.mark.slow
def test_a_process_that_ends_publishes_what_it_leaves(tmp_path):
    """Python starts no threads any more when it does."""
    url = f"file://{tmp_path}/there"
    (tmp_path / "ends.py").write_text(ENDS)
    environment = os.environ | {"TFEFF_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "ends.py"), url]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    found = pathlib.Path(storage.fetch(url), "note.txt")
    assert found.read_text() == "the last words"


def test_an_interrupted_end_uploads_and_gives_back(store, monkeypatch):
    run = changed_run()
    run.users = 1
    interruptions, join = [KeyboardInterrupt], run._thread.join

    def interrupted():
        if interruptions:
            raise interruptions.pop()
        join()

    monkeypatch.setattr(run._thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.close()
    assert pathlib.Path(storage.fetch(f"{URL}/note")).read_text() == "two"
    # The lease is free: another start needs not wait.
    Lease(Place("directory", URL), run.folder).release()


def test_a_forked_process_gives_nothing_back(store, monkeypatch):
    run = changed_run()
    monkeypatch.setattr(run, "_process", os.getpid() + 1)
    run._close()
    assert pathlib.Path(storage.fetch(f"{URL}/note")).read_text() == "one"
    run._lease.check()
    atexit.unregister(run._close)
    run._lease.release()
