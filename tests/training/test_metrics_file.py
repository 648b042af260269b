"""The table of metrics is that of the checkpoint; another one is kept beside it."""

import os

import pytest

from tfeff.training.metrics_file import MetricsFile, restore, write_rows

HEADER = "epoch,loss,step\n"
SAVED = HEADER + "0,2.5,5\n1,2.25,10\n"
ALONE = ["metrics.csv"]
KEPT = ["metrics.csv", "metrics.csv.damaged-1"]


def restored(tmp_path, content, step=10, saved=SAVED):
    path = tmp_path / "metrics.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    text = restore(str(path), step, saved)
    assert (path.read_text() if path.exists() else "") == text
    return text, sorted(os.listdir(tmp_path))


@pytest.mark.parametrize(
    "added", ["", "2,", "2,2.1,15\n", "2,2.1,15\n3,", "2,2.1,15\n3,2.0,20\n"]
)
def test_rows_that_came_after_the_checkpoint_go(tmp_path, capsys, added):
    """Two, where the checkpoint of the first was not on the disk yet."""
    assert restored(tmp_path, SAVED + added) == (SAVED, ALONE)
    assert capsys.readouterr().err == ""


def test_before_the_first_checkpoint_there_is_no_row(tmp_path, capsys):
    for content in ("epoch,l", HEADER, HEADER + "0,2.5", SAVED):
        assert restored(tmp_path, content, 0, "") == ("", [])
    assert capsys.readouterr().err == ""


DAMAGED = {
    "header": "epoch,lOss,step\n" + SAVED.removeprefix(HEADER),
    "another header": "epoch,loss,accuracy,step\n0,2.5,0.5,5\n1,2.25,0.5,10\n",
    "no header": SAVED.removeprefix(HEADER),
    "short row": HEADER + "0,2.5\n1,2.25,10\n",
    "cut": HEADER + "0,2.5,5\n1,2.25,1",
    "duplicated step": HEADER + "0,2.5,5\n0,2.5,5\n1,2.25,10\n",
    "no integer": HEADER + "0,2.5,5.5\n1,2.25,10\n",
    "NUL": HEADER + "0,2.5,5\n1,2\0.25,10\n",
    "no UTF-8": SAVED.encode().replace(b"2.25", b"2.\xff5"),
    "quote": HEADER + '0,2.5,5\n1,"2.25,10\n',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_table_is_kept_and_the_checkpoints_goes_on(tmp_path, capsys, content):
    assert restored(tmp_path, content) == (SAVED, KEPT)
    content = content if isinstance(content, bytes) else content.encode()
    assert (tmp_path / "metrics.csv.damaged-1").read_bytes() == content
    text = capsys.readouterr().err
    assert "metrics.csv is not as the checkpoint of step 10 has it: it is kept" in text


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_checkpoint_without_the_table(tmp_path, content):
    """Of an earlier version: what is whole of the file goes on."""
    text, names = restored(tmp_path, content, saved=None)
    if text.startswith(HEADER) or not text:
        assert SAVED.startswith(text) and names[-1] == KEPT[1]
    else:
        assert names == ALONE  # Other names of columns cannot be told from right ones.


def test_a_whole_table_of_a_checkpoint_without_it(tmp_path, capsys):
    windows = SAVED.replace("\n", "\r\n")
    assert restored(tmp_path, windows, saved=None) == (SAVED, ALONE)
    assert restored(tmp_path, SAVED + "2,2.1,15\n", saved=None) == (SAVED, ALONE)
    assert capsys.readouterr().err == ""


def test_rows_of_checkpoints_that_were_deleted_are_kept(tmp_path, capsys):
    content = SAVED + "2,2.1,15\n3,2.0,20\n4,1.9,25\n"
    assert restored(tmp_path, content) == (SAVED, KEPT)
    assert restored(tmp_path, content, 0, "") == ("", [*KEPT[1:], f"{KEPT[1][:-1]}2"])
    assert capsys.readouterr().err.count("is kept as metrics.csv.damaged-") == 2


def test_a_table_that_is_gone_comes_back(tmp_path, capsys):
    assert restore(str(tmp_path / "metrics.csv"), 10, SAVED) == SAVED
    assert (tmp_path / "metrics.csv").read_text() == SAVED
    assert "it is missing" in capsys.readouterr().err


def test_every_flipped_byte_is_found(tmp_path, capsys):
    for place in range(len(SAVED)):
        for bit in range(8):
            content = bytearray(SAVED.encode())
            content[place] ^= 1 << bit
            assert restored(tmp_path, bytes(content)) == (SAVED, KEPT)
            os.remove(tmp_path / KEPT[1])
    assert capsys.readouterr().err.count("is kept as") == 8 * len(SAVED) == 272


def test_rows_are_added_to_those_of_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(SAVED)
    file = MetricsFile(str(path), SAVED)
    file.on_epoch_end(2, {"step": 15, "loss": 1 / 3})
    assert file.text() == path.read_text() == f"{SAVED}2,{1 / 3!r},15\n"
    file.on_epoch_end(3, {"step": 20, "loss": 0.25, "val_loss": 0.5})
    assert path.read_text().splitlines()[0] == "epoch,loss,step,val_loss"


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"No space left.*{tmp_path}/metrics.csv"):
        write_rows([{"step": 1}], tmp_path / "metrics.csv")
    assert os.listdir(tmp_path) == []
