"""Unfinished content ends with its process, and other people's folders stay."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfeff.utils.files import atomic_file, atomic_folder, write_text
from tfeff.utils.numbered import write_numbered
from tfeff.utils.partial import remove_partial, temporary_folder

KILLED = """
import os, signal, sys
from tfeff.utils.files import atomic_file, atomic_folder
with {kind}(sys.argv[1]) as new:
    {write}
    print(os.path.dirname(new), flush=True)
    {then}
"""


def start(kind, write, then, path):
    script = KILLED.format(kind=kind, write=write, then=then)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "kind, write",
    [
        ("atomic_file", "open(new, 'w').write('half')"),
        ("atomic_folder", "os.mkdir(new)"),
    ],
)
def test_what_a_killed_process_left_is_removed(kind, write, tmp_path):
    path = tmp_path / "name"
    process = start(kind, write, "os.kill(os.getpid(), signal.SIGKILL)", path)
    partial = process.communicate()[0].strip()
    assert os.listdir(tmp_path) == [os.path.basename(partial)]
    remove_partial(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_what_another_process_writes_is_left_alone(tmp_path):
    path = tmp_path / "name"
    process = start("atomic_file", "open(new, 'w').write('whole')", "input()", path)
    partial = process.stdout.readline().strip()
    remove_partial(str(tmp_path))
    with atomic_file(tmp_path / "other") as new, open(new, "w") as file:
        file.write("mine")
    assert os.path.isdir(partial)
    process.communicate("\n")
    assert path.read_text() == "whole"
    assert sorted(os.listdir(tmp_path)) == ["name", "other"]


def test_what_cannot_be_locked_is_left_alone(tmp_path, monkeypatch):
    """As what other users write, who may not lock it either."""
    partial = tmp_path / ".partial-12345678"
    partial.mkdir()
    (partial / ".lock").touch()

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", denied)
        remove_partial(str(tmp_path))
    assert os.listdir(tmp_path) == [partial.name]
    with atomic_file(tmp_path / "mine") as new, open(new, "w") as file:
        file.write("whole")
    assert os.listdir(tmp_path) == ["mine"]


def test_folders_of_such_a_name_that_others_made_stay(tmp_path):
    for name in (".partial-download", ".partial-x", ".partial-"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("text")
    (tmp_path / ".partial-x" / ".lock").touch()
    before = sorted(tmp_path.rglob("*"))
    with atomic_file(tmp_path / "mine") as new, open(new, "w") as file:
        file.write("whole")
    with atomic_folder(str(tmp_path / "ours")) as new:
        os.mkdir(new)
    write_numbered(str(tmp_path), os.mkdir)
    remove_partial(str(tmp_path))
    for name in ("mine", "ours", "1"):
        before.append(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == sorted(before)


def test_what_was_killed_before_it_had_a_lock_is_removed(tmp_path):
    (tmp_path / ".partial-12345678").mkdir()
    remove_partial(str(tmp_path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["folder", "lock"])
def test_no_room_for_the_partial_folder_names_the_path(step, tmp_path, monkeypatch):
    """As where a quota of files is used up."""

    def refused(*args, **kwargs):
        name = str(tmp_path / ".partial-abcdefgh")
        raise OSError(errno.EDQUOT, "Disk quota exceeded", name)

    name = "tempfile.mkdtemp" if step == "folder" else "tfeff.utils.partial.fcntl.flock"
    monkeypatch.setattr(name, refused)
    with pytest.raises(OSError, match=r"while writing .*/output") as found:
        write_text(tmp_path / "output", "text")
    assert found.value.errno == errno.EDQUOT
    assert not os.listdir(tmp_path)


def test_the_lock_of_a_folder_goes_last(tmp_path, monkeypatch):
    """A kill between the two would leave a folder that counts as somebody else's."""
    left, rmtree = [], shutil.rmtree

    def removed(path, **options):
        if os.path.dirname(path) == str(tmp_path):
            left.append(os.listdir(path))
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", removed)
    with temporary_folder(str(tmp_path)) as folder:
        os.makedirs(os.path.join(folder, "below"))
        Path(folder, "below", "file").touch()
        Path(folder, "file").touch()
    assert left == [[".lock"]] and os.listdir(tmp_path) == []
