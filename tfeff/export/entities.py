"""The signature of a classifier of tokens whose labels mark phrases: entities."""

import re
from collections.abc import Callable, Sequence

import tensorflow as tf

from tfeff.data.text.flat import indices, numbers, row_ids, sums

_PHRASE = re.compile(r"([BI])-(.+)", re.DOTALL)


def entities_endpoint(
    tagger: Callable[[tf.Tensor], tuple],
    label_names: Sequence[str],
    types: Sequence[str],
) -> Callable[[tf.Tensor], dict]:
    """The function `entities` of texts `[B]`.

    Args:
        tagger: a `Tagger`.
        label_names: the names of its labels.
        types: the types of phrases that they mark, see `phrase_types`.
    """
    names = tf.constant(types)
    marks = [_PHRASE.fullmatch(name) for name in label_names]
    is_begin = tf.constant([mark is not None and mark[1] == "B" for mark in marks])
    kinds = tf.constant([types.index(mark[2]) if mark else -1 for mark in marks])

    def entities(text):
        text, words, starts, ends, probabilities = tagger(text)
        label = tf.argmax(probabilities, axis=1)
        row, kind = row_ids(words), tf.gather(kinds, label)
        phrase, first, last = group(tf.gather(is_begin, label), kind, row)
        probability = tf.math.unsorted_segment_mean(
            tf.reduce_max(probabilities, axis=1), phrase, tf.size(first)
        )
        start = tf.gather(starts.flat_values, first)
        end = tf.gather(ends.flat_values, last)
        row = tf.gather(row, first)
        counts = sums(tf.ones_like(row), row, words.nrows())

        def padded(values):
            rows = tf.RaggedTensor.from_row_lengths(values, counts, validate=False)
            return rows.to_tensor()

        return {
            "entity": padded(_cut(text, row, start, end)),
            "type": padded(tf.gather(names, tf.gather(kind, first))),
            "start": padded(start),
            "end": padded(end),
            "probability": padded(probability),
        }

    return entities


def _cut(text, row, start, end):
    """The characters from `start` to `end` of these rows of texts; strings `[E]`.

    Only these are copied: a gather of the texts would copy each once an entity.
    """
    points = tf.strings.unicode_decode(text, "UTF-8")
    begin = tf.gather(points.row_starts(), row) + tf.cast(start, tf.int64)
    part = tf.ragged.range(begin, begin + tf.cast(end - start, tf.int64))
    characters = tf.gather(points.flat_values, part.flat_values)
    return tf.strings.unicode_encode(part.with_flat_values(characters), "UTF-8")


def phrase_types(label_names: Sequence[str]) -> list[str] | None:
    """The types of phrases that labels mark; None if they are not `O`, `B-`, `I-`."""
    marks = [_PHRASE.fullmatch(name) for name in label_names]
    others = {name for name, mark in zip(label_names, marks) if not mark}
    if not any(marks) or not others <= {"O"}:
        return None
    return list(dict.fromkeys(mark[2] for mark in marks if mark))


def group(
    is_begin: tf.Tensor, kind: tf.Tensor, row: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The words of phrases, as CoNLL's `conlleval` groups them.

    A phrase goes on while words of its text have `I-` and its type; an `I-` that
    continues no phrase begins a new one.

    Args:
        is_begin: `[W]` bool, whether a word's label is a `B-`.
        kind: `[W]` integers, the type of a word's label; -1 for `O`.
        row: `[W]` integers, its text.

    Returns:
        `[W]` int64, a word's phrase, -1 for none; and `[E]` int64 each, a phrase's
        first word and its last.
    """
    inside = kind >= 0
    same = (kind[1:] == kind[:-1]) & (row[1:] == row[:-1])
    goes_on = tf.concat([[False], same], axis=0)[: tf.size(kind)] & ~is_begin
    begins = inside & ~goes_on
    first = indices(begins)
    phrase = tf.where(inside, numbers(begins), -1)
    words = tf.range(tf.size(kind, tf.int64))
    last = tf.math.unsorted_segment_max(words, phrase, tf.size(first))
    return phrase, first, last
