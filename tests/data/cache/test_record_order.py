"""The order of records: of files, within windows, by epoch."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import record_stream
from tfeff.data.cache import record_order


def set_sizes(patch, window=None, files_in_turn=None):
    """Sizes of windows and numbers of files, here and in the reference."""
    for module in (record_order, record_stream):
        if window:
            patch.setattr(module, "WINDOW", window)
        if files_in_turn:
            patch.setattr(module, "FILES_IN_TURN", files_in_turn)


def numbers(sizes, count=None, **settings):
    """The first numbers of the order, all if `count` is not given."""
    settings = {"seed": 0, "first": 0, "repeat": True} | settings
    arrays = record_order.record_numbers(sizes, **settings)
    found = itertools.chain.from_iterable(array.tolist() for array in arrays)
    return list(itertools.islice(found, count))


def epochs(sizes, count, **settings):
    found = numbers(sizes, count * sum(sizes), **settings)
    return [list(epoch) for epoch in zip(*[iter(found)] * sum(sizes))]


def test_windows_are_permuted_each_in_its_own_way(monkeypatch):
    """With one file, only the windows shuffle."""
    set_sizes(monkeypatch, window=20)
    orders = []
    for epoch in epochs([50], 3):
        for start, end in [(0, 20), (20, 40), (40, 50)]:
            window = epoch[start:end]
            assert sorted(window) == list(range(start, end))
            orders.append(tuple(number - start for number in window))
    assert len(set(orders)) == 9


def test_files_are_permuted_in_each_epoch(monkeypatch):
    """With windows of one record, only the order of the files changes."""
    set_sizes(monkeypatch, window=1)
    found = epochs([1] * 12, 3)
    assert all(sorted(epoch) == list(range(12)) for epoch in found)
    assert len({tuple(epoch) for epoch in [range(12), *found]}) == 4


def test_files_are_read_in_turn(monkeypatch):
    set_sizes(monkeypatch, window=1, files_in_turn=3)
    (epoch,) = epochs([4, 4, 4], 1)
    assert [{n // 4 for n in epoch[i : i + 3]} for i in range(0, 12, 3)] == [
        {0, 1, 2}
    ] * 4


def test_a_window_that_holds_all_is_a_full_permutation():
    """Every record is equally likely at the first place: within 5 sigma."""
    first = [e[0] for seed in range(10) for e in epochs([1, 3], 10, seed=seed)]
    for number in range(4):
        assert abs(first.count(number) - 25) < 5 * (100 * 3 / 16) ** 0.5


@pytest.mark.parametrize("seed", [None, 4])
def test_starting_anywhere(monkeypatch, seed):
    set_sizes(monkeypatch, window=4)
    whole = numbers([3, 6, 1], 60, seed=seed)
    for first in (0, 1, 9, 10, 11, 20, 35):
        assert numbers([3, 6, 1], 10, seed=seed, first=first) == whole[first:][:10]


def test_a_single_epoch_ends():
    assert numbers([3, 2], seed=None, repeat=False, first=1) == [1, 2, 3, 4]
    assert sorted(numbers([3, 2], repeat=False)) == [0, 1, 2, 3, 4]
    assert numbers([3, 2], repeat=False, first=5) == []


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.integers(1, 30),
    st.integers(1, 4),
    st.none() | st.integers(0, 9),
    st.floats(0, 2.9),
)
def test_the_order_is_that_of_tensorflow(
    tmp_path_factory, sizes, window, files_in_turn, seed, share
):
    """As data sets that read every record give it: interleaved, batched, shuffled."""
    first = int(share * sum(sizes))
    folder = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, window, files_in_turn)
        stream = record_stream.raw_records(
            write(folder, sizes), sum(sizes), seed=seed, first=first, repeat=True
        )
        expected = [int(r) for r in stream.take(2 * sum(sizes)).as_numpy_iterator()]
        assert numbers(sizes, len(expected), seed=seed, first=first) == expected


def write(folder, sizes):
    """Files whose records are the numbers 0, 1, 2, … in turn."""
    records, paths = itertools.count(), []
    for index, size in enumerate(sizes):
        paths.append(str(folder / f"{index:03d}"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(size):
                writer.write(str(next(records)).encode())
    return paths
