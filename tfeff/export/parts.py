"""Bounds of the memory that a request takes: parts of its rows, and limits."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfeff.export.request_texts import checked, require

TOKENS_AT_ONCE = 2**13  # of a model's call, padding included
MOST_BYTES = 2**28  # of an answer
_STRING = 24  # bytes of a string in a tensor, short ones included


def by_parts(function: Callable, longest: tf.Tensor | int, *rows: Any) -> Any:
    """Calls `function` with a few of the rows at a time, and joins its results.

    A call gets as many rows as have `TOKENS_AT_ONCE` tokens together if each is as
    long as the longest, or else one. Where there are no rows, it is called once with
    none, so that the results have their shapes.

    Args:
        function: takes as many tensors as there are `rows`, with some of the rows each,
            and gives a tensor, or a nest of them, whose first axes can be joined.
        longest: integer, tokens of the longest row.
        *rows: tensors and ragged tensors `[N, …]`.
    """
    part_of = tf.function(
        function, input_signature=[_any_rows_spec(x) for x in rows], autograph=False
    ).get_concrete_function()
    first, *_ = rows
    count = tf.shape(first, tf.int64)[0]
    at_once = TOKENS_AT_ONCE // tf.maximum(tf.cast(longest, tf.int64), 1)
    at_once = tf.maximum(at_once, 1)

    def some_more(number, found):
        part = slice(number * at_once, (number + 1) * at_once)
        results = part_of(*(x[part] for x in rows))
        index = tf.cast(number, tf.int32)
        found = tf.nest.map_structure(lambda x, y: x.write(index, y), found, results)
        return number + 1, found

    _, found = tf.while_loop(
        lambda number, _: (number * at_once < count) | (number == 0),
        some_more,
        [
            tf.constant(0, tf.int64),
            tf.nest.map_structure(_parts, part_of.structured_outputs),
        ],
        parallel_iterations=1,
    )
    return tf.nest.map_structure(lambda x: x.concat(), found)


def _any_rows_spec(x):
    shape = [None, *x.shape[1:]]
    if isinstance(x, tf.RaggedTensor):
        return tf.RaggedTensorSpec(shape, x.dtype, x.ragged_rank, x.row_splits.dtype)
    return tf.TensorSpec(shape, x.dtype)


def _parts(result):
    return tf.TensorArray(
        result.dtype,
        size=0,
        dynamic_size=True,
        infer_shape=False,
        element_shape=[None, *result.shape[1:]],
    )


def longest(rows: tf.RaggedTensor) -> tf.Tensor:
    """The length of the longest row, 0 if there are none."""
    return tf.reduce_max(tf.concat([rows.row_lengths(), [0]], axis=0))


def size_of(strings: Sequence[str]) -> int:
    """Most bytes that one of the strings takes in a tensor."""
    return _STRING + max(len(string.encode()) for string in strings)


def limit_rows(rows: tf.Tensor, size: int) -> tf.Tensor:
    """The rows, once it is known that an answer of `size` bytes a row is no larger
    than `MOST_BYTES`."""
    most = MOST_BYTES // size
    are_few = require(
        tf.shape(rows)[0] <= most,
        f"`text` must have at most {most} rows. Received: rows:",
        tf.shape(rows)[0],
    )
    return checked(rows, are_few)


def limit_cells(
    unit: str, rows: tf.RaggedTensor, most: int, width: int | None = None
) -> tf.RaggedTensor:
    """The rows, once it is known that they have few values, padding included.

    Args:
        unit: what the values are to the caller, such as "tokens".
        rows: ragged `[B, (N)]`.
        most: integer, most values if each row had as many as the longest.
        width: to how many values rows are padded; None for the longest.
    """
    width = longest(rows) if width is None else tf.constant(width, tf.int64)
    size = rows.nrows(), width
    are_few = require(
        size[0] * size[1] <= most,
        f"`text` must have at most {most} {unit}, each row counted as long as the "
        f"longest. Received: rows and {unit} of the longest:",
        *size,
    )
    return checked(rows, are_few)


def limit_bytes(outputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The outputs, once it is known that they have at most `MOST_BYTES` together.

    It is for outputs of any shape, whose size is not known before they are computed.
    """
    size = sum(tf.size(x, tf.int64) * x.dtype.size for x in outputs.values())
    are_few = require(
        size <= MOST_BYTES,
        f"`text` must have outputs of at most {MOST_BYTES} bytes. Received: outputs "
        "of so many:",
        size,
    )
    return {key: checked(x, are_few) for key, x in outputs.items()}
