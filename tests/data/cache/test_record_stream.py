"""The order of raw records: of files, within windows, by epoch."""

import itertools

import pytest
import tensorflow as tf

from tfeff.data.cache import record_stream


def write(folder, sizes):
    """Files whose records are the numbers 0, 1, 2, … in turn."""
    numbers, paths = itertools.count(), []
    for index, size in enumerate(sizes):
        paths.append(str(folder / f"{index:03d}"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(size):
                writer.write(str(next(numbers)).encode())
    return paths


def epochs(paths, total, count, **settings):
    settings = {"seed": 0, "first": 0, "repeat": True, "multiple": 1} | settings
    stream = record_stream.raw_records(paths, total, **settings).as_numpy_iterator()
    return [[int(r) for r in itertools.islice(stream, total)] for _ in range(count)]


def test_windows_are_permuted_each_in_its_own_way(tmp_path, monkeypatch):
    """With one file, only the windows shuffle."""
    monkeypatch.setattr(record_stream, "_WINDOW", 20)
    orders = []
    for epoch in epochs(write(tmp_path, [50]), 50, 3):
        for start, end in [(0, 20), (20, 40), (40, 50)]:
            window = epoch[start:end]
            assert sorted(window) == list(range(start, end))
            orders.append(tuple(number - start for number in window))
    assert len(set(orders)) == 9


def test_files_are_permuted_in_each_epoch(tmp_path, monkeypatch):
    """With windows of one record, only the order of the files changes."""
    monkeypatch.setattr(record_stream, "_WINDOW", 1)
    found = epochs(write(tmp_path, [1] * 12), 12, 3)
    assert all(sorted(epoch) == list(range(12)) for epoch in found)
    assert len({tuple(epoch) for epoch in [range(12), *found]}) == 4


def test_files_are_read_in_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(record_stream, "_WINDOW", 1)
    monkeypatch.setattr(record_stream, "_FILES_IN_TURN", 3)
    (epoch,) = epochs(write(tmp_path, [4, 4, 4]), 12, 1)
    assert [{n // 4 for n in epoch[i : i + 3]} for i in range(0, 12, 3)] == [
        {0, 1, 2}
    ] * 4


def test_a_window_that_holds_all_is_a_full_permutation(tmp_path):
    """Every record is equally likely at the first place: within 5 sigma."""
    paths = write(tmp_path, [1, 3])
    first = [e[0] for seed in range(10) for e in epochs(paths, 4, 10, seed=seed)]
    for number in range(4):
        assert abs(first.count(number) - 25) < 5 * (100 * 3 / 16) ** 0.5


@pytest.mark.parametrize("seed", [None, 4])
def test_starting_anywhere(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(record_stream, "_WINDOW", 4)
    paths = write(tmp_path, [3, 0, 6, 1])
    whole = sum(epochs(paths, 10, 6, seed=seed), [])
    for first in (0, 1, 9, 10, 11, 20, 35):
        (part,) = epochs(paths, 10, 1, seed=seed, first=first)
        assert part == whole[first : first + 10], first


def test_a_single_epoch_is_filled_up(tmp_path):
    paths = write(tmp_path, [3, 2])
    for first in (0, 4, 5, 8):
        stream = record_stream.raw_records(
            paths, 5, seed=None, first=first, repeat=False, multiple=4
        )
        expected = [b"0", b"1", b"2", b"3", b"4", b"", b"", b""][first:]
        assert list(stream.as_numpy_iterator()) == expected
