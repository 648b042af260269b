"""One process at a time in a run directory."""

import errno
import fcntl
import json
import os
import re
import signal
import socket

import pytest

from tfeff.training import Grid, RunDirectory
from tfeff.utils import files


def in_another_process(action):
    """The exit status of a process that does it; 9 after an error, with its text."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            os.write(write, str(error).encode())
            os._exit(9)
    os.close(write)
    with open(read, encoding="utf-8") as file:
        text = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text


def test_a_second_process_is_told_who_is_at_work(tmp_path):
    run = RunDirectory(tmp_path / "run", {"seed": 0})
    (tmp_path / "run" / "cache").mkdir()
    before = sorted(os.listdir(run.directory))
    status, text = in_another_process(
        lambda: RunDirectory(tmp_path / "run", {"seed": 0})
    )
    assert status == 9
    assert re.search(
        f"`directory` must not be in use. Received: {re.escape(str(tmp_path))}/run, in "
        rf"which process {os.getpid()} on {socket.gethostname()} \(since 2",
        text,
    )
    assert sorted(os.listdir(run.directory)) == before
    holder = json.loads((tmp_path / "run" / "run.lock").read_text())
    assert holder["pid"] == os.getpid()
    run.close()
    assert (
        in_another_process(lambda: RunDirectory(tmp_path / "run", {"seed": 0}))[0] == 0
    )
    assert os.listdir(run.path("cache")) == []


def test_a_lock_of_a_dead_process_is_taken_over(tmp_path):
    def die():
        run = RunDirectory(tmp_path / "run", {"seed": 0})
        (tmp_path / "run" / "cache").mkdir()
        assert run is not None
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_another_process(die)[0] == -signal.SIGKILL
    assert (tmp_path / "run" / "run.lock").exists()
    (tmp_path / "run" / "run.lock").write_bytes(b"\0damaged")
    with RunDirectory(tmp_path / "run", {"seed": 0}):
        pass
    assert sorted(os.listdir(tmp_path / "run")) == ["cache", "config.json"]


def test_who_is_at_work_may_be_unknown(tmp_path):
    run = RunDirectory(tmp_path / "run", {})
    (tmp_path / "run" / "run.lock").write_bytes(b"\xff{")
    status, text = in_another_process(lambda: RunDirectory(run.directory, {}))
    assert status == 9 and "in which another process is at work" in text


def test_a_process_may_open_a_run_again(tmp_path, monkeypatch):
    first = RunDirectory(tmp_path / "run", {})
    monkeypatch.chdir(tmp_path)
    second = RunDirectory("run", {})
    first.close()
    assert in_another_process(lambda: RunDirectory(tmp_path / "run", {}))[0] == 9
    second.close()
    second.close()
    assert in_another_process(lambda: RunDirectory(tmp_path / "run", {}))[0] == 0


def test_a_run_in_which_nothing_was_made_leaves_nothing(tmp_path):
    with RunDirectory(tmp_path / "new" / "run", {}):
        pass
    assert os.listdir(tmp_path) == []
    with RunDirectory(tmp_path / "new" / "run", {}) as run:
        (tmp_path / "new" / "run" / "notes").touch()
    assert sorted(os.listdir(run.directory)) == ["config.json", "notes"]
    (tmp_path / "mine").mkdir()
    with RunDirectory(tmp_path / "mine", {}):
        pass
    assert os.listdir(tmp_path / "mine") == []


def test_a_start_that_was_killed_does_not_spend_the_folder(tmp_path, monkeypatch):
    """Killed while the first `config.json` is written, or just before it appears."""

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    for place, name in ((files, "sync"), (os, "replace")):
        monkeypatch.setattr(place, name, die)
        status, text = in_another_process(
            lambda: RunDirectory(tmp_path / "run", {"seed": 0})
        )
        monkeypatch.undo()
        assert status == -signal.SIGKILL, text
        assert len(os.listdir(tmp_path / "run")) == 2  # The lock and a part of a file.
    with RunDirectory(tmp_path / "run", {"seed": 1}):
        pass
    assert os.listdir(tmp_path / "run") == []


def test_what_killed_processes_left_is_removed_everywhere(tmp_path):
    run = RunDirectory(tmp_path / "run", {})
    for parent in (run.directory, run.path("cells", "seed=0"), run.path("checkpoints")):
        os.makedirs(os.path.join(parent, ".partial-12345678"))
        for name in (".lock", "model.keras"):
            with open(os.path.join(parent, ".partial-12345678", name), "w") as file:
                file.write("half")
    with RunDirectory(tmp_path / "run", {}):
        left = [name for _, names, files in os.walk(run.directory) for name in names]
    assert sorted(left) == ["cells", "checkpoints", "seed=0"]


def test_the_first_of_two_uses_that_ends_leaves_the_run_to_the_other(tmp_path):
    first = RunDirectory(tmp_path / "new" / "run", {})
    second = RunDirectory(tmp_path / "new" / "run", {})
    first.close()
    first.close()
    assert sorted(os.listdir(first.directory)) == ["config.json", "run.lock"]
    second.close()
    assert os.listdir(tmp_path) == []


def test_digests_are_noted_again_after_the_last_of_several_uses(tmp_path):
    with RunDirectory(tmp_path / "run", {}) as run:
        for name in ("report", "table"):
            (tmp_path / "run" / name).write_text("one")
        run.finish()
    first = RunDirectory(tmp_path / "run", {})
    second = RunDirectory(tmp_path / "run", {})
    first.close()
    (tmp_path / "run" / "report").write_text("two")
    second.close()
    digests = (tmp_path / "run" / "SHA256SUMS").read_text()
    assert "table\n" in digests and "report" not in digests
    RunDirectory(tmp_path / "run", {})  # Deleted without being closed.
    assert (tmp_path / "run" / "SHA256SUMS").read_text() == digests


def test_digests_outlast_a_process_that_is_killed(tmp_path, capsys):
    folder = tmp_path / "run"
    with RunDirectory(folder, {}) as run:
        for name in ("model", "table"):
            (folder / name).write_text("one")
        run.finish()

    def die():
        run = RunDirectory(folder, {})
        (folder / "table").write_text("two")
        assert run is not None
        os.kill(os.getpid(), signal.SIGKILL)

    for told in (1, 0):  # What has changed is told once.
        assert in_another_process(die)[0] == -signal.SIGKILL
        RunDirectory(folder, {}).close()
        text = capsys.readouterr().err
        assert text.count("It has changed table, unless that is damage") == told
        assert sorted(os.listdir(folder)) == [
            *("SHA256SUMS", "config.json", "model", "table")
        ]
    (folder / "model").write_text("three")
    with pytest.raises(ValueError, match="Damaged since it was written: .*run/model"):
        RunDirectory(folder, {})
    (folder / "model").write_text("one")
    with RunDirectory(folder, {}) as run:
        run.finish()
        assert not (folder / "SHA256SUMS.earlier").exists()
    assert "earlier" not in (folder / "SHA256SUMS").read_text()


def test_a_forked_process_that_ends_tidies_nothing_up(tmp_path):
    with RunDirectory(tmp_path / "run", {}) as run:
        run.finish()
    run = RunDirectory(tmp_path / "run", {})
    assert in_another_process(run.close) == (0, "")
    names = ["SHA256SUMS.earlier", "config.json", "run.lock"]
    assert sorted(os.listdir(run.directory)) == names
    run.close()
    assert sorted(os.listdir(run.directory)) == ["SHA256SUMS", "config.json"]


def test_a_run_of_a_relative_path_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RunDirectory("run/", {}) as run:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        path = run.path("report.txt")
        assert path == str(tmp_path / "run" / "report.txt")
        assert run.shown(path) == "run/report.txt"
        run.finish()
    assert sorted(os.listdir(tmp_path / "run")) == ["SHA256SUMS", "config.json"]
    assert os.listdir(tmp_path / "other") == []


@pytest.mark.parametrize(
    ("module", "name", "code"),
    [(os, "pwrite", errno.ENOSPC), (fcntl, "flock", errno.ENOLCK)],
    ids=["full", "without locks"],
)
def test_a_disk_that_refuses_leaves_neither_a_lock_nor_a_folder(
    module, name, code, tmp_path, monkeypatch
):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    (tmp_path / "there").mkdir()
    message = f"`directory` must be .*{os.strerror(code)}"
    with monkeypatch.context() as patch:
        patch.setattr(module, name, refuse)
        for name in ("there", "new/run"):
            with pytest.raises(ValueError, match=message):
                RunDirectory(tmp_path / name, {"seed": 0})
    assert os.listdir(tmp_path) == ["there"] and os.listdir(tmp_path / "there") == []
    for name in ("there", "new/run"):
        with RunDirectory(tmp_path / name, {"seed": 0}) as run:
            assert os.path.exists(run.path("run.lock"))


def test_one_process_at_a_time_runs_cells_of_a_grid(tmp_path):
    grid = Grid(tmp_path / "grid", {"rate": [1]}, [0], "score")

    def other(folder, **_):
        return {"score": 0.0}

    def cell(folder, **_):
        with open(os.path.join(folder, "model"), "w", encoding="utf-8"):
            pass
        status, text = in_another_process(lambda: grid.run(other))
        assert status == 9 and "`directory` must not be in use. Received: " in text
        assert os.listdir(folder) == ["model"]
        return {"score": 1.0}

    assert grid.run(cell)["best"]["mean"] == {"score": 1.0}
    assert os.listdir(grid.directory) == ["rate=1,seed=0"]
    # A finished grid can be summed up while another one of the directory is run.
    more = Grid(grid.directory, {"rate": [2]}, [0], "score")

    def summing(folder, **_):
        assert in_another_process(lambda: grid.run(other)) == (0, "")
        return {"score": 2.0}

    more.run(summing)


def test_the_lock_of_a_grid_in_a_run_has_no_digest(tmp_path):
    with RunDirectory(tmp_path / "run", {}) as run:
        grid = Grid(run.path("cells"), {"rate": [1]}, [0], "score")

        def cell(folder, **_):
            assert sorted(os.listdir(grid.directory)) == ["rate=1,seed=0", "run.lock"]
            run.finish()
            return {"score": 1.0}

        grid.run(cell)
    assert "run.lock" not in (tmp_path / "run" / "SHA256SUMS").read_text()
