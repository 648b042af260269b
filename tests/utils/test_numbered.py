"""Folders named by numbers: each writer has its own, and none is lost."""

import concurrent.futures
import os
from pathlib import Path

import pytest

from tfeff.utils import numbered
from tfeff.utils.numbered import numbers, write_numbered


def writing(text):
    def write(path):
        os.makedirs(path)
        Path(path, "text").write_text(text)

    return write


def test_numbers_go_on(tmp_path):
    base = tmp_path / "new" / "export"
    assert numbers(str(base)) == []
    for name in ("1", "2"):
        assert write_numbered(str(base), writing(name)) == str(base / name)
    for other in ("9x", "-3", ".partial", "٣", str(2**63), "99" * 20):
        (base / other).mkdir()
    (base / "11").mkdir()
    assert write_numbered(str(base), writing("12")) == str(base / "12")
    assert numbers(str(base)) == ["1", "2", "11", "12"]
    assert (base / "2" / "text").read_text() == "2"


def test_numbers_with_zeros_count(tmp_path):
    """TensorFlow Serving reads them so, and serves the highest."""
    for name in ("00000007", "3", "010"):
        (tmp_path / name).mkdir()
    assert numbers(str(tmp_path)) == ["3", "00000007", "010"]
    assert write_numbered(str(tmp_path), writing("x")) == str(tmp_path / "11")


def test_writers_at_once_have_numbers_of_their_own(tmp_path):
    texts = [str(i) for i in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        paths = pool.map(lambda t: write_numbered(tmp_path, writing(t)), texts)
    found = {path: Path(path, "text").read_text() for path in paths}
    assert sorted(found.values()) == sorted(texts)
    assert sorted(os.listdir(tmp_path)) == sorted(str(i) for i in range(1, 41))


def test_a_number_that_another_process_takes_is_left_to_it(tmp_path, monkeypatch):
    write_numbered(tmp_path, writing("theirs"))
    before = iter([[], ["1"]])  # The first look was before they wrote.
    monkeypatch.setattr(numbered, "numbers", lambda _: next(before))
    assert write_numbered(tmp_path, writing("ours")) == str(tmp_path / "2")
    assert (tmp_path / "1" / "text").read_text() == "theirs"


def test_an_error_makes_no_number(tmp_path):
    def write(path):
        writing("half")(path)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_numbered(tmp_path, write)
    assert not os.listdir(tmp_path)
