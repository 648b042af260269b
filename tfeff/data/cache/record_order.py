"""The order of a cache's records: which of them is the example of an index.

A reader that knows the number of each record reads those of its own rows, and no more.
"""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

FILES_IN_TURN = 16
WINDOW = 16_384


def record_numbers(
    sizes: list[int], *, seed: int | None, first: int, repeat: bool
) -> Iterator[np.ndarray]:
    """The numbers of the records in their order, in arrays of any length.

    An epoch permutes the files, takes records of 16 of them in turn, and permutes
    within windows of 16,384. TensorFlow's `Dataset.shuffle` depends on the program's
    global seed; here the order depends on `seed` and the epoch alone.

    Args:
        sizes: records in each file, at least one. Records are numbered file by file.
        seed: seed of the order; None keeps the order of the files.
        first: number of records to skip; whole windows and epochs cost nothing.
        repeat: whether epochs repeat without end; False gives one epoch.

    Yields:
        Arrays of int64, never empty; together from the example of index `first` on.
    """
    epoch, skip = divmod(first, sum(sizes)) if repeat else (0, first)
    while True:
        for window, numbers in enumerate(_windows(sizes, seed, epoch)):
            if skip < len(numbers):
                if seed is not None:
                    numbers = _shuffled(numbers, seed, 1, epoch, window)
                yield numbers[skip:]
            skip = max(skip - len(numbers), 0)
        if not repeat:
            return
        epoch += 1


def _windows(sizes, seed, epoch) -> Iterator[np.ndarray]:
    """The records of an epoch in the windows that are permuted on their own."""
    size = WINDOW
    starts = np.cumsum([0, *sizes])
    if seed is None:
        for first in range(0, starts[-1], size):
            yield np.arange(first, min(first + size, starts[-1]))
        return
    files = _shuffled(np.arange(len(sizes)), seed, 0, epoch)
    parts, length = [], 0
    for block in _in_turn([(starts[file], sizes[file]) for file in files]):
        parts.append(block)
        length += len(block)
        if length >= size:
            *whole, rest = np.split(
                np.concatenate(parts), range(size, length + 1, size)
            )
            yield from whole
            parts, length = [rest], len(rest)
    if length:
        yield np.concatenate(parts)


def _in_turn(files: list[tuple[int, int]]) -> Iterator[np.ndarray]:
    """The records of files, given as first number and size, read some in turn.

    It is the order of `tf.data.Dataset.interleave`: a file that turns out to be at its
    end misses that turn, and the next file takes its place in the turn after.
    """
    waiting = files[::-1]
    turns = FILES_IN_TURN
    next_record = np.zeros(turns, np.int64)
    left = np.full(turns, -1)  # Records of each place; -1 where there is no file.
    while waiting or (left >= 0).any():
        opened = left >= 0
        if (left[opened] > 0).all() and (opened.all() or not waiting):
            rounds = left[opened].min()
            yield (next_record[opened] + np.arange(rounds)[:, None]).reshape(-1)
            next_record[opened] += rounds
            left[opened] -= rounds
            continue
        turn = []
        for place in range(turns):
            if left[place] < 0 and waiting:
                next_record[place], left[place] = waiting.pop()
            if left[place] > 0:
                turn.append(next_record[place])
                next_record[place] += 1
            left[place] = max(left[place] - 1, -1)
        if turn:
            yield np.array(turn)


def _shuffled(numbers: np.ndarray, seed: int, *stream: int) -> np.ndarray:
    """Numbers [N] in an order that depends on the seed and the others alone."""
    with tf.device("CPU:0"):
        key = tf.constant([seed, stream[0]], tf.int64)
        for number in stream[1:]:
            key = tf.random.fold_in(key, tf.constant(number, tf.int64))
        return tf.random.experimental.stateless_shuffle(
            tf.constant(numbers), key, alg="philox"
        ).numpy()
