"""The records of an input pipeline: those of its own replicas' rows, and no others."""

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tfeff.data.cache.batches import CANDIDATES, OTHER_ORDER
from tfeff.data.cache.record_order import record_numbers
from tfeff.data.cache.record_reader import RecordReader


def part_records(
    reader: RecordReader,
    sizes: list[int],
    context: tf.distribute.InputContext,
    *,
    batch_size: int,
    seed: int,
    shuffle: bool,
    repeat: bool,
    first_batch: int,
    needs_others: bool,
) -> tf.data.Dataset:
    """The rows of a pipeline's replicas, of one batch after the other.

    Of each batch of B rows, replica r of R has the rows from r·B/R to (r + 1)·B/R. The
    dataset has one element for each of the pipeline's replicas, in turn.

    Args:
        reader: reads the records of the cache.
        sizes: records in each of its shards.
        context: which of the pipelines this one is, and the number of replicas.
        batch_size: B, a multiple of the number of replicas.
        seed: seed of the order.
        shuffle: False gives the order of the files.
        repeat: False gives one epoch, whose last batch is filled up with empty records.
        first_batch: the number of the first batch.
        needs_others: whether eight random records come with each row, the same eight
            for the rows of eight consecutive examples.

    Returns:
        A dataset of pairs: the index of the first row's example, int64; the records
        `[B/R]`, or these and the candidates `[B/R, 8]`.
    """
    rows = batch_size // context.num_replicas_in_sync
    replicas = context.num_replicas_in_sync // context.num_input_pipelines
    first_row = context.input_pipeline_id * replicas * rows
    total = sum(sizes)
    num_batches = None if repeat else -(-total // batch_size)

    def turns() -> Iterator[tuple]:
        order = _Numbers(
            sizes, seed if shuffle else None, first_batch * batch_size, repeat
        )
        others = None
        if needs_others:
            start = first_batch * batch_size // CANDIDATES * CANDIDATES
            others = _Numbers(sizes, seed ^ OTHER_ORDER, start, repeat=True)
        batch = first_batch
        while batch != num_batches:
            for replica in range(replicas):
                first = batch * batch_size + first_row + replica * rows
                read = reader.read(order.between(first, first + rows))
                records = np.array(read + (rows - len(read)) * [b""], object)
                if others is None:
                    yield first, records
                    continue
                blocks = np.arange(first, first + rows) // CANDIDATES
                start, end = blocks[0] * CANDIDATES, (blocks[-1] + 1) * CANDIDATES
                candidates = np.array(reader.read(others.between(start, end)), object)
                candidates = candidates.reshape(-1, CANDIDATES)[blocks - blocks[0]]
                yield first, records, candidates
            batch += 1

    def elements() -> Iterator[tuple]:
        found, count = turns(), max(1, _ROWS_AT_ONCE // rows)
        while several := list(itertools.islice(found, count)):
            first, records, *candidates = map(np.stack, zip(*several))
            yield first, (records, *candidates) if needs_others else records

    records = tf.TensorSpec([None, rows], tf.string)
    if needs_others:
        records = (records, tf.TensorSpec([None, rows, CANDIDATES], tf.string))
    return tf.data.Dataset.from_generator(
        elements, output_signature=(tf.TensorSpec([None], tf.int64), records)
    ).unbatch()


# An element of a generator costs as much as some rows.
_ROWS_AT_ONCE = 256


class _Numbers:
    """Numbers of records by their examples' indices, asked for in ascending order."""

    def __init__(self, sizes, seed, first, repeat):
        self._arrays = record_numbers(sizes, seed=seed, first=first, repeat=repeat)
        self._first = first
        self._numbers = np.zeros(0, np.int64)

    def between(self, start: int, end: int) -> np.ndarray:
        """The numbers of the examples from `start` to `end`, or to the last one."""
        parts, length = [self._numbers], len(self._numbers)
        while (
            self._first + length < end
            and (more := next(self._arrays, None)) is not None
        ):
            parts.append(more)
            length += len(more)
        joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
        self._numbers = joined[max(start - self._first, 0) :]
        self._first = max(start, self._first)
        return self._numbers[: end - start]
