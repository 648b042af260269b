"""What is being written appears whole or not at all, whoever is killed."""

import concurrent.futures
import errno
import os
import resource
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
from tfeff.utils import files
from tfeff.utils.digests import check_digests, write_digests
from tfeff.utils.files import (
    atomic_file,
    atomic_folder,
    make_folder,
    numbers,
    remove_partial,
    write_numbered,
)

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
    write_numbered(str(tmp_path), write_text("1"))
    remove_partial(str(tmp_path))
    for name in ("mine", "ours", "1/text", "1"):
        before.append(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == sorted(before)


def test_what_was_killed_before_it_had_a_lock_is_removed(tmp_path):
    (tmp_path / ".partial-12345678").mkdir()
    remove_partial(str(tmp_path))
    assert os.listdir(tmp_path) == []


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
    files.write_text(path, "ä\r\n", newline="")
    assert path.read_bytes() == b"\xc3\xa4\r\n"
    with pytest.raises(UnicodeEncodeError):
        files.write_text(path, "new \udcff")
    assert path.read_bytes() == b"\xc3\xa4\r\n"
    files.write_text(path, "\udcff", errors="surrogateescape")
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


def test_a_full_disk_of_temporary_files_is_named(monkeypatch):
    for error in (OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "bad")):
        with pytest.raises(OSError) as raised, files.system_folder() as folder:
            assert os.path.isdir(folder)
            raise error
        is_full = error.errno == errno.ENOSPC
        named = tempfile.gettempdir() if is_full else None
        assert (raised.value.filename, raised.value.errno) == (named, error.errno)
        assert ("TMPDIR" in str(raised.value)) == is_full


needs_fallocate = pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room"
)


@needs_fallocate
def test_room_on_a_disk(tmp_path):
    files.reserve(tmp_path, 1000)
    files.reserve(tmp_path, -1)
    files.reserve(tmp_path / "missing", 1)  # What comes next tells it.
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        files.reserve(tmp_path, 10_000)
        with pytest.raises(OSError, match="File too large"):
            files.reserve(tmp_path, 10_001)
        files.reserve(tmp_path, 25_000, largest=10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert os.listdir(tmp_path) == []


def test_what_a_failing_disk_hides_is_not_taken_for_missing(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert files.is_there(tmp_path / "file")
    for missing in ("other", "file/below"):
        assert not files.is_there(tmp_path / missing)

    def failing(path, *args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(OSError, match="Input/output error.*file"):
        files.is_there(tmp_path / "file")


def test_a_file_is_written_through_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "file"
    (tmp_path / "link").symlink_to(target)
    with files.atomic_file(tmp_path / "link") as unfinished:  # Libraries ask for it.
        assert os.path.basename(unfinished) == "link"
        Path(unfinished).touch()
    message = f"writing {tmp_path / 'link'}$"
    with pytest.raises(OSError, match=message), files.atomic_file(tmp_path / "link"):
        raise OSError(errno.ENOSPC, "full")
    target.unlink()
    for text in ("new", "newer"):  # It need not be there.
        files.write_text(tmp_path / "link", text)
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
    with taken, files.new_path("place", path, "Go") as new:
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
        files.new_path("place", path),
    ):
        raise AssertionError
    assert os.listdir(tmp_path) == ["file"]


def test_other_errors_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as error, atomic_folder(str(tmp_path / "a")):
        (tmp_path / "absent").read_text()
    assert error.value.filename == str(tmp_path / "absent")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "below" / "weights.h5").write_bytes(bytes(range(20)))
    write_digests(str(tmp_path))
    return tmp_path


def test_every_flipped_byte_is_found(folder):
    check_digests(str(folder))
    count = 0
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(
                whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
            )
            with pytest.raises(ValueError, match="damaged"):
                check_digests(str(folder))
            count += 1
        path.write_bytes(whole)
    check_digests(str(folder))
    assert count > 150


def test_the_damaged_file_is_named(folder):
    (folder / "a.json").write_text("[]")
    with pytest.raises(ValueError, match="damaged. These files .*: a.json$"):
        check_digests(str(folder))
    (folder / "below" / "weights.h5").unlink()
    with pytest.raises(ValueError, match="below/weights.h5"):
        check_digests(str(folder))


def test_sha256sum_reads_the_digests(folder):
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    result = subprocess.run(check, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "a.json: OK\nbelow/weights.h5: OK\n"


def write_text(text):
    def write(path):
        os.makedirs(path)
        Path(path, "text").write_text(text)

    return write


def test_numbers_go_on(tmp_path):
    base = tmp_path / "new" / "export"
    assert numbers(str(base)) == []
    for name in ("1", "2"):
        assert write_numbered(str(base), write_text(name)) == str(base / name)
    for other in ("9x", "-3", ".partial", "٣", str(2**63), "99" * 20):
        (base / other).mkdir()
    (base / "11").mkdir()
    assert write_numbered(str(base), write_text("12")) == str(base / "12")
    assert numbers(str(base)) == ["1", "2", "11", "12"]
    assert (base / "2" / "text").read_text() == "2"


def test_numbers_with_zeros_count(tmp_path):
    """TensorFlow Serving reads them so, and serves the highest."""
    for name in ("00000007", "3", "010"):
        (tmp_path / name).mkdir()
    assert numbers(str(tmp_path)) == ["3", "00000007", "010"]
    assert write_numbered(str(tmp_path), write_text("x")) == str(tmp_path / "11")


def test_writers_at_once_have_numbers_of_their_own(tmp_path):
    texts = [str(i) for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        paths = pool.map(lambda t: write_numbered(tmp_path, write_text(t)), texts)
    found = {path: Path(path, "text").read_text() for path in paths}
    assert sorted(found.values()) == sorted(texts)
    assert sorted(os.listdir(tmp_path)) == sorted(str(i) for i in range(1, 41))


def test_a_number_that_another_process_takes_is_left_to_it(tmp_path, monkeypatch):
    write_numbered(tmp_path, write_text("theirs"))
    before = iter([[], ["1"]])  # The first look was before they wrote.
    monkeypatch.setattr(files, "numbers", lambda _: next(before))
    assert write_numbered(tmp_path, write_text("ours")) == str(tmp_path / "2")
    assert (tmp_path / "1" / "text").read_text() == "theirs"


def test_an_error_makes_no_number(tmp_path):
    def write(path):
        write_text("half")(path)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_numbered(tmp_path, write)
    assert not os.listdir(tmp_path)


def test_the_digests_of_a_folder_are_of_linked_folders_too(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "weights").write_text("one")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "elsewhere")
    write_digests(str(tmp_path / "folder"))
    check_digests(str(tmp_path / "folder"))
    (tmp_path / "elsewhere" / "weights").write_text("two")
    with pytest.raises(ValueError, match="link/weights"):
        check_digests(str(tmp_path / "folder"))


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
        files.write_text(path, "text")
    assert found.value.filename == str(path)
    assert path.lstat().st_mode == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    with pytest.raises(ValueError, match="`output` must be a file that can be written"):
        check_replaceable("output", str(path))


@pytest.mark.parametrize("step", ["folder", "lock"])
def test_no_room_for_the_partial_folder_names_the_path(step, tmp_path, monkeypatch):
    """As where a quota of files is used up."""

    def refused(*args, **kwargs):
        name = str(tmp_path / ".partial-abcdefgh")
        raise OSError(errno.EDQUOT, "Disk quota exceeded", name)

    name = "tempfile.mkdtemp" if step == "folder" else "tfeff.utils.files.fcntl.flock"
    monkeypatch.setattr(name, refused)
    with pytest.raises(OSError, match=r"while writing .*/output") as found:
        files.write_text(tmp_path / "output", "text")
    assert found.value.errno == errno.EDQUOT
    assert not os.listdir(tmp_path)


def test_the_lock_of_a_folder_goes_last(tmp_path, monkeypatch):
    """A kill between the two would leave a folder that counts as somebody else's."""
    left, rmtree = [], files.shutil.rmtree

    def removed(path, **options):
        if os.path.dirname(path) == str(tmp_path):
            left.append(os.listdir(path))
        rmtree(path, **options)

    monkeypatch.setattr(files.shutil, "rmtree", removed)
    with files.temporary_folder(str(tmp_path)) as folder:
        os.makedirs(os.path.join(folder, "below"))
        Path(folder, "below", "file").touch()
        Path(folder, "file").touch()
    assert left == [[".lock"]] and os.listdir(tmp_path) == []
