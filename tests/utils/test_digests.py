"""Digests of a folder find every damaged byte."""

import subprocess

import pytest

from tfeff.utils.digests import (
    check_digests,
    check_file,
    sha256,
    write_digests,
    write_list,
)


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


@pytest.mark.parametrize("kind", ["empty", "a part", "a folder", "a link"])
@pytest.mark.parametrize("name", ["SHA256SUMS", "a.json.sha256"])
def test_damaged_digests_are_none_of_a_file(name, kind, folder):
    path = folder / name
    if name != "SHA256SUMS":
        write_list(str(path), {"a.json": sha256(str(folder / "a.json"))})
    check_file(str(folder / "a.json"))
    whole = path.read_text()
    path.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a link":
        path.symlink_to(folder / "gone")
    else:
        path.write_text("" if kind == "empty" else whole[:20])
    with pytest.raises(ValueError, match=f"Damaged since it was written: .*{name}. It"):
        check_file(str(folder / "a.json"))
