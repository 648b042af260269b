"""What is being written appears whole or not at all, whoever is killed."""

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
import tensorflow as tf
from safetensors import SafetensorError

from tfeff.storage.arguments import check_replaceable
from tfeff.training import RunDirectory
from tfeff.utils.files import (
    atomic_file,
    atomic_folder,
    make_folder,
    new_path,
    put_back,
    remove_with_replaced,
    write_text,
)
from tfeff.utils.partial import remove_partial

KILLED_AT = """
import os, sys
from tfeff.utils import files
calls, rename = [], os.rename
def counted(*names):
    calls.append(names)
    if len(calls) == {number}:
        os._exit(9)
    rename(*names)
os.rename = counted
with files.atomic_folder(sys.argv[1], replace=True) as new:
    os.mkdir(new)
    with open(os.path.join(new, "text"), "w") as file:
        file.write("new")
"""


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_of_a_folder_that_is_replaced_one_is_always_whole(number, tmp_path):
    path = tmp_path / "name"
    path.mkdir()
    (path / "text").write_text("old")
    script = KILLED_AT.format(number=number)
    subprocess.run([sys.executable, "-c", script, str(path)])
    remove_partial(str(tmp_path))
    (seen,) = [x for x in tmp_path.rglob("text") if x.parent == path] or [None]
    if number == 2:  # Between the two renames.
        assert seen is None
    else:
        assert seen.read_text() == ("old" if number == 1 else "new")
    beside = [x for x in tmp_path.glob("name.replaced-*") if any(x.iterdir())]
    assert [(x / "text").read_text() for x in beside] == ["old"] * (number in (2, 3))
    empty = tmp_path / "name.replaced-0"  # Newer, of a kill before the first rename.
    empty.mkdir()
    put_back(str(path))
    assert list(tmp_path.iterdir()) == [path]
    assert (path / "text").read_text() == ("old" if number < 3 else "new")
    remove_with_replaced(str(path))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    path = tmp_path / "name"
    path.mkdir()
    (path / "text").write_text("old")
    rename = os.rename

    def fails_once(one, other):
        if other == str(path):
            monkeypatch.setattr(os, "rename", rename)
            raise OSError(5, "Input/output error")
        rename(one, other)

    monkeypatch.setattr(os, "rename", fails_once)
    new = atomic_folder(str(path), replace=True)
    with pytest.raises(OSError, match="Input/output error"), new as unfinished:
        os.mkdir(unfinished)
    assert [x.name for x in tmp_path.iterdir()] == ["name"]
    assert (path / "text").read_text() == "old"


@pytest.mark.parametrize(
    "path",
    [
        "file/x",
        "file/x/y",
        "a/b/" + 300 * "x",
        "/proc/x",
        "/proc/x/y",
        "a\0b",
        "a\udcff",
    ],
)
def test_folders_that_cannot_be_made(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for name, make in (
        ("name", lambda: make_folder("name", path)),
        ("directory", lambda: RunDirectory(path, {})),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            make()
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "name"
    path.write_text("old")
    with pytest.raises(KeyError), atomic_file(path) as new:
        open(new, "w").close()
        raise KeyError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["name"]


def test_text_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "name"
    write_text(path, "ä\r\n", newline="")
    assert path.read_bytes() == b"\xc3\xa4\r\n"
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \udcff")
    assert path.read_bytes() == b"\xc3\xa4\r\n"
    write_text(path, "\udcff", errors="surrogateescape")
    assert path.read_bytes() == b"\xff"
    assert os.listdir(tmp_path) == ["name"]


def test_a_full_disk_names_the_path(tmp_path):
    with (
        pytest.raises(OSError, match=f"No space left.*{tmp_path / 'name'}"),
        atomic_file(tmp_path / "name"),
        open("/dev/full", "w") as file,
    ):
        file.write("more")
        file.flush()


def test_a_full_disk_names_the_path_of_hdf5(tmp_path):
    """What h5py raises when it closes a file on a full disk."""
    text = "Can't decrement id ref count (unable to extend file properly, errno = 28)"
    with (
        pytest.raises(OSError, match=f"No space left.*writing {tmp_path / 'name'}$"),
        atomic_file(tmp_path / "name"),
    ):
        raise RuntimeError(text)
    with pytest.raises(RuntimeError, match="other"), atomic_file(tmp_path / "name"):
        raise RuntimeError("other")


@pytest.mark.parametrize(
    "error",
    [
        OSError(
            "[Errno 28] Can't write data (file write failed: errno = 28, buf = 0x)"
        ),
        SafetensorError("Error while serializing: I/O error: No space (os error 28)"),
    ],
)
def test_a_full_disk_names_the_path_of_libraries_with_texts_of_their_own(
    error, tmp_path
):
    message = rf"^\[Errno 28\] No space left on device, while writing {tmp_path / 'x'}$"
    with pytest.raises(OSError, match=message), atomic_file(tmp_path / "x"):
        raise error


def test_a_file_is_written_through_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "file"
    (tmp_path / "link").symlink_to(target)
    with atomic_file(tmp_path / "link") as unfinished:  # Libraries ask for it.
        assert os.path.basename(unfinished) == "link"
        Path(unfinished).touch()
    message = f"writing {tmp_path / 'link'}$"
    with pytest.raises(OSError, match=message), atomic_file(tmp_path / "link"):
        raise OSError(errno.ENOSPC, "full")
    target.unlink()
    for text in ("new", "newer"):  # It need not be there.
        write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink() and target.read_text() == text


def test_a_folder_with_a_long_name_is_replaced(tmp_path):
    path = tmp_path / ("a" + 127 * "ä")  # 200 bytes end within a letter.
    for content in ("old", "new"):
        with atomic_folder(str(path), replace=True) as new:
            Path(new).mkdir()
            (Path(new) / content).touch()
    assert os.listdir(tmp_path) == [path.name] and os.listdir(path) == ["new"]


def test_a_full_disk_names_the_path_of_tensorflow(tmp_path):
    path = str(tmp_path / "name")
    for folder, where in ((None, ""), (tempfile.gettempdir(), " in .*")):
        with (
            pytest.raises(
                OSError,
                match=f"^.Errno 28. No space left on device{where}"
                f", while writing {path}$",
            ),
            atomic_folder(path) as new,
        ):
            file = f"{folder or new}/variables/x.tempstate1; {os.strerror(28)}"
            text = f"{{{{function_node x}}}} {file} [Op:SaveV2]"
            raise tf.errors.ResourceExhaustedError(None, None, text)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "OOM; of the device"),
        *(
            tf.errors.FailedPreconditionError(
                None, None, f"{tempfile.gettempdir()}/x; {os.strerror(number)}"
            )
            for number in (errno.ENOENT, errno.EISDIR, errno.EACCES)
        ),
    ],
)
def test_other_errors_of_tensorflow_stay(tmp_path, error):
    with pytest.raises(type(error)) as found, atomic_folder(str(tmp_path / "name")):
        raise error
    assert found.value is error


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("theirs", [None, "name", "name/text"])
@pytest.mark.parametrize("ours", ["", "text"])
def test_what_appears_meanwhile_is_not_replaced(
    tmp_path, monkeypatch, has_links, theirs, ours
):
    """A file or a folder with a file, theirs before ours is complete."""

    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if not has_links:  # As on some file systems.
        monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "name"
    match = "`place` must not exist yet. Received: place=.*/name'. Go$"
    taken = pytest.raises(ValueError, match=match) if theirs else nullcontext()
    with taken, new_path("place", path, "Go") as new:
        write(Path(new, ours), "ours")
        if theirs:
            write(tmp_path / theirs, "theirs")
    assert (tmp_path / (theirs or path / ours)).read_text() == (
        "theirs" if theirs else "ours"
    )
    assert os.listdir(tmp_path) == ["name"]


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "path, reason",
    [
        ("file/x", "Not a directory"),
        ("file/x/y", "Not a directory"),
        (300 * "x", "File name too long"),
        ("a\udcff", "UTF-8"),
    ],
)
def test_a_new_path_that_cannot_be_is_named(tmp_path, monkeypatch, path, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with (
        pytest.raises(ValueError, match=f"`place` must be .*{reason}"),
        new_path("place", path),
    ):
        raise AssertionError
    assert os.listdir(tmp_path) == ["file"]


def test_other_errors_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as error, atomic_folder(str(tmp_path / "a")):
        (tmp_path / "absent").read_text()
    assert error.value.filename == str(tmp_path / "absent")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe"])
def test_what_is_no_file_is_not_replaced_by_one(kind, tmp_path):
    path = tmp_path / "output"
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
        path = tmp_path / "pipe" if kind == "pipe" else path
    before = path.lstat().st_mode
    with pytest.raises(OSError, match="it is a") as found:
        write_text(path, "text")
    assert found.value.filename == str(path)
    assert path.lstat().st_mode == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    with pytest.raises(ValueError, match="`output` must be a file that can be written"):
        check_replaceable("output", str(path))
