"""Words of plain texts and where they lie, in graphs too."""

import numpy as np
import tensorflow as tf

from tfeff.data.text.characters import (
    boundaries,
    is_format,
    is_ideograph,
    is_mark,
    is_space,
)
from tfeff.data.text.flat import among, indices, numbers, shifted, strings, sums

# Boundaries of kinds of characters: those that begin the names of topics and users.
_NAMES = np.array([ord("#"), ord("#") + 1, ord("@"), ord("@") + 1], np.int32)
_POINT = np.array([ord("."), ord(".") + 1], np.int32)

_EXPECTED = "`text` must be a tensor of strings, of one axis"


def split_words(
    text: tf.Tensor,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts into words, much as data sets of labelled words have them.

    White space ends a word. Punctuation at either end of it is cut off, each mark a
    word of its own; that inside it stays, as in "don't" and "2,000". So do "@" and "#"
    before a word, and the point behind a single letter: "U.S.", "J. S. Bach". Each
    Chinese character is a word. Format characters at an end belong to no word.

    Args:
        text: string tensor `[B]`, UTF-8.

    Returns:
        Three ragged tensors `[B, (W)]`: the words, and as int32 the index of a word's
        first character (Unicode code point) in the text and the one behind its last.

    Raises:
        TypeError: if `text` is no such tensor.

    Example:

    >>> import tensorflow as tf, tfeff
    >>> text = tf.constant(["(Ada, in the U.S.)"])
    >>> words, starts, ends = tfeff.data.split_words(text)
    >>> [word.decode() for word in words[0].numpy()]
    ['(', 'Ada', ',', 'in', 'the', 'U.S.', ')']
    >>> starts[0].numpy().tolist(), ends[0].numpy().tolist()
    ([0, 1, 4, 6, 9, 13, 17], [1, 4, 5, 8, 12, 17, 18])
    """
    try:
        text = tf.convert_to_tensor(text)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{_EXPECTED}. Received: text={text!r:.80}") from error
    if text.dtype != tf.string or text.shape.rank != 1:
        raise TypeError(f"{_EXPECTED}. Received: {text.dtype.name} {text.shape}")
    # A space keeps the end of one text apart from the start of the next: from here on,
    # indices count the characters of all texts one after another.
    rows = tf.strings.unicode_decode(tf.strings.join([text, " "]), "UTF-8")
    points, index = rows.flat_values, tf.range(tf.size(rows.flat_values, tf.int64))
    inside = ~among(points, boundaries(is_space))
    in_core = _core(points, index, inside)
    inside &= in_core | ~among(points, boundaries(is_format))
    apart = inside & (~in_core | among(points, boundaries(is_ideograph)))
    begins = inside & (~shifted(inside) | apart | shifted(apart))
    first = indices(begins)
    last = tf.math.unsorted_segment_max(
        indices(inside), tf.boolean_mask(numbers(begins), inside), tf.size(first)
    )
    texts = tf.searchsorted(rows.row_splits, first, "right", tf.int64) - 1
    counts = sums(tf.ones_like(texts), texts, rows.nrows())
    before = tf.gather(rows.row_starts(), texts)
    return tuple(
        tf.RaggedTensor.from_row_lengths(values, counts, validate=False)
        for values in (
            strings(points, inside, begins),
            tf.cast(first - before, tf.int32),
            tf.cast(last + 1 - before, tf.int32),
        )
    )


def _core(points, index, inside):
    """Whether a character is between the marks at both ends of its chunk."""
    begins = inside & ~shifted(inside)
    chunk, num_chunks = numbers(begins), tf.size(indices(begins))
    marks = among(points, boundaries(is_mark)) | among(points, boundaries(is_format))
    plain = inside & ~marks
    first, last = (
        segment(
            tf.boolean_mask(index, plain), tf.boolean_mask(chunk, plain), num_chunks
        )
        for segment in (tf.math.unsorted_segment_min, tf.math.unsorted_segment_max)
    )

    def is_of(position, kind):
        # The characters next to a chunk are white space.
        position = tf.clip_by_value(position, 0, tf.size(points, tf.int64) - 1)
        return among(tf.gather(points, position), kind)

    # A letter by itself, at the chunk's begin or behind a point.
    alone = is_of(last, boundaries(str.isalpha))
    alone &= (first == last) | is_of(last - 1, _POINT)
    last += tf.cast(alone & is_of(last + 1, _POINT), tf.int64)
    first -= tf.cast(is_of(first - 1, _NAMES), tf.int64)
    # One chunk more than there are: that of characters before the first.
    first, last = (tf.concat([x, [0]], axis=0) for x in (first, last))
    chunk = tf.maximum(chunk, 0)
    within = (index >= tf.gather(first, chunk)) & (index <= tf.gather(last, chunk))
    return inside & within
