"""Runs of characters and pieces in flat tensors, the texts one after another.

Flags mark elements `[C]`; a run lasts from one flag to the next.
"""

import numpy as np
import tensorflow as tf


def among(points: tf.Tensor, boundaries: np.ndarray) -> tf.Tensor:
    """Whether code points are of a kind, by its `boundaries`."""
    return tf.searchsorted(boundaries, points, side="right") % 2 == 1


def indices(flags: tf.Tensor) -> tf.Tensor:
    """The indices of the elements with a flag."""
    return tf.where(flags)[:, 0]


def numbers(begins: tf.Tensor) -> tf.Tensor:
    """The run of each element, counted from the flags; -1 before the first."""
    return tf.cumsum(tf.cast(begins, tf.int64)) - 1


def shifted(flags: tf.Tensor) -> tf.Tensor:
    """The flag of the element before; False for the first."""
    return tf.concat([[False], flags[:-1]], axis=0)[: tf.size(flags)]


def sums(values: tf.Tensor, rows: tf.Tensor, num_rows: tf.Tensor) -> tf.Tensor:
    """The sum of the values of each row; those of row -1 are left out."""
    return tf.math.unsorted_segment_sum(tf.cast(values, tf.int64), rows, num_rows)


def any_of(flags: tf.Tensor, rows: tf.Tensor, num_rows: tf.Tensor) -> tf.Tensor:
    """Whether a row has a flag."""
    return sums(flags, rows, num_rows) > 0


def row_ids(ragged: tf.RaggedTensor) -> tf.Tensor:
    """The row of each value."""
    return rows_of(ragged.row_lengths())


def rows_of(counts: tf.Tensor) -> tf.Tensor:
    """The row of each element of rows `[N]` that have so many; int64.

    It makes no tensor of all rows by the longest one, as `value_rowids`, `tf.repeat`,
    and sums, joins and masks of ragged tensors do.
    """
    ends = tf.cumsum(tf.cast(counts, tf.int64))
    index = tf.range(tf.concat([[0], ends], axis=0)[-1])
    return tf.searchsorted(ends, index, "right", tf.int64)


def joined(ragged: tf.RaggedTensor) -> tf.Tensor:
    """The strings of each row `[B, (N)]` in one."""
    return tf.strings.unsorted_segment_join(
        ragged.flat_values, row_ids(ragged), ragged.nrows()
    )


def strings(points: tf.Tensor, inside: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
    """The characters `inside` as strings, one from each that `begins` one."""
    rank = tf.cumsum(tf.cast(inside, tf.int64), exclusive=True)
    points = tf.gather(points, indices(inside))
    starts = tf.gather(rank, indices(begins))
    rows = tf.RaggedTensor.from_row_starts(points, starts, validate=False)
    return tf.strings.unicode_encode(rows, "UTF-8")
