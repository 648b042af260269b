"""Byte-level byte-pair encoding in TensorFlow graphs, without Python or hash tables.

A text is cut into words, a word into its bytes, and neighbours are merged in the order
of the merge rules.
"""

import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tokenizers import Regex, pre_tokenizers

from tfeff.data.text.flat import among, indices, numbers, row_ids

_NEVER = np.iinfo(np.int32).max
# Merging takes a time that is quadratic in the length of a word.
_LONGEST_WORD = 4000
# Suffixes that follow an apostrophe as words of their own, as in "it's".
_SUFFIXES = ("s", "t", "re", "ve", "m", "ll", "d")


def byte_symbols() -> list[str]:
    """The character that stands for each byte in pieces and merge rules.

    Printable characters of Latin-1 stand for themselves, those of U+0100 and above for
    the other bytes: "Ġ" (U+0120) is a space.

    Reference:
        `bytes_to_unicode` in https://github.com/openai/gpt-2/blob/master/src/encoder.py
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    codes = {byte: byte for byte in printable}
    codes |= {byte: 0x100 + index for index, byte in enumerate(others)}
    return [chr(codes[byte]) for byte in range(256)]


def words(points: tf.RaggedTensor) -> tf.Tensor:
    r"""Where words of a byte-level BPE begin: bool `[C]`.

    Words are the matches of
    `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
    which TensorFlow's regular expressions cannot express. One of more than 4,000
    characters becomes several, all but the last of so many.

    Args:
        points: `[B, (C)]` int32, the code points of texts.

    Returns:
        For each code point of all texts, whether a word begins with it.

    Reference:
        Radford et al., "Language Models are Unsupervised Multitask Learners", 2019,
        section 2.2, and https://github.com/openai/gpt-2/blob/master/src/encoder.py
    """
    row = row_ids(points)
    points = points.flat_values
    space, letter, number = (
        among(points, _boundaries(k)) for k in (r"\s", r"\p{L}", r"\p{N}")
    )
    kind = sum(
        tf.cast(x, tf.int32) * (i + 1) for i, x in enumerate((space, letter, number))
    )
    changed = tf.concat([[True], row[1:] != row[:-1]], axis=0)[: tf.size(row)]
    first = changed  # of a text
    changed |= _before(kind, -1) != kind
    # The last character of white space before something else begins a word, and a
    # space takes the something into it.
    ends = _after(first, True) | (_after(kind, -1) != kind)
    before_text = space & ends & ~_after(first, True)
    joined = _before(before_text & (points == ord(" ")), False)
    begins = (changed & ~joined) | before_text
    # An apostrophe that begins a word, with one of the suffixes.
    apostrophe = begins & (points == ord("'"))
    for suffix in _SUFFIXES:
        found = apostrophe
        for index, letter_ in enumerate(suffix, 1):
            found &= _after(points, 0, index) == ord(letter_)
            found &= _after(row, -1, index) == row
        size = len(suffix) + 1
        inside = [_before(found, False, index) for index in range(1, size)]
        begins &= ~functools.reduce(tf.logical_or, inside)
        behind = _before(found, False, size) & (_before(row, -1, size) == row)
        begins |= behind & letter
    place = tf.range(tf.size(row, tf.int64))
    place -= tf.gather(indices(begins), numbers(begins))
    return place % _LONGEST_WORD == 0


def merge(
    symbols: tf.Tensor, word: tf.Tensor, rules: "MergeRules"
) -> tuple[tf.Tensor, tf.Tensor]:
    """Merges neighbours within words, always the pair of the earliest rule.

    Args:
        symbols: `[N]` int32, the ids of the words' bytes.
        word: `[N]` int64, ascending: the word of each.
        rules: the merge rules.

    Returns:
        Of what is left, the ids `[P]` and their words `[P]`.
    """
    num_words = tf.reduce_sum(word[-1:] + 1)  # 0 of no symbols

    def step(symbols, word, _):
        pair = symbols[:-1], symbols[1:]
        rank, product, orderly = rules.find(*pair)
        rank = tf.where(word[:-1] == word[1:], rank, _NEVER)
        best = tf.math.unsorted_segment_min(rank, word[:-1], num_words)
        chosen = (rank < _NEVER) & (rank == tf.gather(best, word[:-1]))
        # The first two of "aaa" are merged.
        number = tf.range(tf.size(rank))
        others = tf.concat([[-1], tf.boolean_mask(number, ~chosen)], axis=0)
        before = tf.gather(others, tf.cumsum(tf.cast(~chosen, tf.int32)))
        chosen &= (number - before) % 2 == 1
        # A rule whose product has an earlier rule waits for the next round.
        first = tf.math.unsorted_segment_min(
            tf.where(chosen, number, _NEVER), word[:-1], num_words
        )
        chosen &= orderly | (number == tf.gather(first, word[:-1]))
        symbols = tf.concat([tf.where(chosen, product, pair[0]), symbols[-1:]], axis=0)
        kept = ~_before(chosen, False, pad=True)
        return (
            tf.boolean_mask(symbols, kept),
            tf.boolean_mask(word, kept),
            tf.reduce_any(chosen),
        )

    symbols, word, _ = tf.while_loop(
        lambda symbols, word, more: more,
        step,
        (symbols, word, tf.size(symbols) > 1),
        shape_invariants=(
            tf.TensorShape([None]),
            tf.TensorShape([None]),
            tf.TensorShape([]),
        ),
    )
    return symbols, word


class MergeRules:
    """Merge rules as sorted arrays.

    Args:
        rules: `[M, 3]` ints: the ids of the left and the right piece and of both
            together, the first rule first.
        size: number of ids.
    """

    def __init__(self, rules: Sequence[tuple[int, int, int]], size: int):
        left, right, product = np.asarray(rules, np.int64).reshape(-1, 3).T
        rank = np.arange(len(rules))
        # The earliest rule for each piece as a part.
        earliest = np.full(size, _NEVER)
        for part in (left, right):
            np.minimum.at(earliest, part, rank)
        # No pair that such a merge makes comes before the merges of its own rule.
        orderly = earliest[product] > rank
        keys = left * size + right
        order = np.argsort(keys, kind="stable")
        self._size = size
        # One more, which no pair has.
        self._keys = np.append(keys[order], np.int64(size) ** 2)
        self._ranks = np.append(rank[order], _NEVER).astype(np.int32)
        self._products = np.append(product[order], 0).astype(np.int32)
        self._orderly = np.append(orderly[order], False)

    def find(self, left: tf.Tensor, right: tf.Tensor):
        """Of pairs `[N]`: their rule's rank, its product, and whether all at once."""
        key = tf.cast(left, tf.int64) * self._size + tf.cast(right, tf.int64)
        index = tf.searchsorted(tf.constant(self._keys), key)
        known = tf.gather(self._keys, index) == key
        return (
            tf.where(known, tf.gather(self._ranks, index), _NEVER),
            tf.gather(self._products, index),
            tf.gather(self._orderly, index),
        )


@functools.cache
def _boundaries(pattern):
    """The code points at which characters of a class begin and end, ascending.

    The classes are those of the library that published tokenizers run on: Python's
    may be of another version of Unicode.
    """
    # The other planes have no characters of any class.
    points = [*range(0xD800), *range(0xE000, 0x40000)]
    runs = pre_tokenizers.Split(Regex(f"{pattern}+"), "removed", invert=True)
    offsets = [
        offsets for _, offsets in runs.pre_tokenize_str("".join(map(chr, points)))
    ]
    return np.array(
        [(points[a], points[b - 1] + 1) for a, b in offsets], np.int32
    ).reshape(-1)


def _before(values, default, distance=1, pad=False):
    """The value so many elements before each; with `pad`, one more, behind the last."""
    missing = tf.fill([distance], tf.constant(default, values.dtype))
    shifted = tf.concat([missing, values], axis=0)
    return shifted if pad else shifted[: tf.size(values)]


def _after(values, default, distance=1):
    """The value so many elements behind each."""
    missing = tf.fill([distance], tf.constant(default, values.dtype))
    return tf.concat([values, missing], axis=0)[distance:]
