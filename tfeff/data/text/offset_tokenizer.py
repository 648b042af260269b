import functools

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.compat import sentence_piece
from tfeff.data.text.offsets import SPACE, is_invisible, is_joined, is_word


class PlacedTokens(tf.Module):
    """Tokens of texts with the characters that they stand for, inside a graph.

    The ids and places are those of `tfeff.data.text.offsets.encode_with_offsets`.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub.

    Call arguments:
        text: string tensor `[B]`, UTF-8.

    Returns:
        Ids, ragged `[B, (P)]` int32, and the tokens' first characters and the ones
        behind their last, each `[sum of P]` int64: places in all texts one after
        another with one character between them, as `characters` numbers them.

    Raises:
        TypeError: if the tokenizer is of another kind.
    """

    def __init__(self, tokenizer: keras_hub.tokenizers.Tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        pieces = tokenizer.get_vocabulary()
        self._is_shown = tf.constant([bool(piece.strip(SPACE)) for piece in pieces])
        self._invisible = _boundaries(is_invisible)
        if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
            self._encode = self._sentence_piece
        elif isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
            self._encode = self._word_piece
            self._cut, self._joined = _boundaries(is_word), _boundaries(is_joined)
            mark = tokenizer.suffix_indicator
            self._lengths = tf.constant(
                [len(piece.removeprefix(mark)) for piece in pieces], tf.int64
            )
            self._unknown = tokenizer.token_to_id(tokenizer.oov_token)
        else:
            raise TypeError(
                "`tokenizer` must be a SentencePiece or WordPiece tokenizer. "
                f"Received: tokenizer of type {type(tokenizer).__name__}"
            )

    def __call__(self, text):
        characters, offsets = self.characters(text)
        ids, starts, ends = self._encode(text, characters, offsets)
        shown = tf.gather(self._is_shown, ids.flat_values)
        return ids, *self._visible(characters.flat_values, starts, ends, shown)

    @staticmethod
    def characters(text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Code points `[B, (C + 1)]` and their bytes, with a space behind each text."""
        points, offsets = tf.strings.unicode_decode_with_offsets(text, "UTF-8")
        size = tf.cast(tf.strings.length(text), tf.int64)[:, tf.newaxis]
        # It keeps the end of one text apart from the begin of the next.
        space = tf.fill(tf.shape(size), ord(" "))
        return tf.concat([points, space], 1), tf.concat([offsets, size], 1)

    def _sentence_piece(self, text, characters, offsets):
        encode = sentence_piece(self.tokenizer).tokenize_with_offsets
        ids, starts, ends = encode(text)
        size = tf.cast(tf.strings.length(text), tf.int64) + 1
        before = tf.cumsum(size, exclusive=True)
        known = offsets.flat_values + tf.gather(before, offsets.value_rowids())
        shift = tf.gather(before, ids.value_rowids())
        starts, ends = (
            tf.searchsorted(known, place.flat_values + shift, out_type=tf.int64)
            for place in (starts, ends)
        )
        return tf.cast(ids, tf.int32), starts, ends

    def _word_piece(self, text, characters, offsets):
        points = characters.flat_values
        # White space ends a word, and what stands between is tokenized on its own.
        inside = tf.reduce_all(points[:, tf.newaxis] != [32, 9, 10, 13], axis=1)
        begins = inside & ~_shifted(inside)
        cut = inside & _among(points, self._cut)
        parts = begins | (inside & (cut | _shifted(cut)))
        chunk = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        together = self.tokenizer(_strings(_grouped(points, begins, inside)))
        apart = self.tokenizer(_strings(_grouped(points, parts, inside)))
        apart = tf.RaggedTensor.from_value_rowids(
            apart, tf.boolean_mask(chunk, parts), nrows=together.nrows()
        ).merge_dims(1, 2)
        # Where the tokenizer cuts elsewhere, a chunk stays whole.
        same = tf.concat([_equal_rows(together, apart), [False]], axis=0)
        parts = begins | (parts & tf.gather(same, tf.maximum(chunk, 0)))
        words = _grouped(points, parts, inside)
        ids = self.tokenizer(_strings(words))
        first = tf.where(parts)[:, 0]
        rows = tf.gather(characters.value_rowids(), first)
        starts, ends = self._places(ids, first, words)
        ids = tf.RaggedTensor.from_value_rowids(ids, rows, nrows=characters.nrows())
        return tf.cast(ids.merge_dims(1, 2), tf.int32), starts, ends

    def _places(self, ids, first, words):
        """Where the pieces `[W, (P)]` of words lie that begin at `first` `[W]`."""
        word, num_words = _rows_of_values(ids), words.nrows()
        size = tf.gather(self._lengths, ids.flat_values)
        total = tf.math.unsorted_segment_sum(size, word, num_words)
        before = tf.cumsum(total, exclusive=True)
        done = tf.cumsum(size) - tf.gather(before, word)
        unknown = tf.cast(ids.flat_values == self._unknown, tf.int32)
        unknown = tf.math.unsorted_segment_max(unknown, word, num_words) > 0
        plain = ~_among(words.flat_values, self._joined)
        num_plain = tf.math.unsorted_segment_sum(
            tf.cast(plain, tf.int64), words.value_rowids(), num_words
        )
        length = words.row_lengths()
        last = first + length
        # A character of the pieces is one of the word, or one with its accents.
        every = total == length
        known = (ids.row_lengths() > 1) & ~unknown & (every | (total == num_plain))
        place = tf.range(tf.size(plain, tf.int64)) - tf.gather(
            tf.cumsum(length, exclusive=True), words.value_rowids()
        )
        place += tf.gather(first, words.value_rowids())
        place = tf.concat([tf.boolean_mask(place, plain), [0]], axis=0)
        index = tf.gather(tf.cumsum(num_plain, exclusive=True), word) + done
        index = tf.minimum(index, tf.size(place, tf.int64) - 1)
        ends = tf.where(
            done == tf.gather(total, word),
            tf.gather(last, word),
            tf.where(
                tf.gather(every, word),
                tf.gather(first, word) + done,
                tf.gather(place, index),
            ),
        )
        is_first = tf.concat([[True], word[1:] != word[:-1]], axis=0)[: tf.size(word)]
        whole = ~tf.gather(known, word)
        ends = tf.where(whole, tf.gather(last, word), ends)
        starts = tf.concat([[0], ends[:-1]], axis=0)[: tf.size(word)]
        return tf.where(whole | is_first, tf.gather(first, word), starts), ends

    def _visible(self, points, starts, ends, shown):
        """Cuts off what cannot be seen; a piece of no characters takes the next's."""
        visible = ~_among(points, self._invisible)
        seen = tf.where(visible)[:, 0]
        rank = tf.cumsum(tf.cast(visible, tf.int64), exclusive=True)
        after = tf.concat([seen, [tf.size(points, tf.int64)]], axis=0)
        before = tf.concat([[0], seen + 1], axis=0)
        starts = tf.minimum(tf.gather(after, tf.gather(rank, starts)), ends)
        ends = tf.maximum(tf.gather(before, tf.gather(rank, ends)), starts)
        full = starts < ends
        following = tf.cumsum(tf.cast(full, tf.int64), exclusive=True)
        none = tf.constant([-1], tf.int64)
        next_start, next_end = (
            tf.gather(tf.concat([tf.boolean_mask(p, full), none], axis=0), following)
            for p in (starts, ends)
        )
        takes = ~full & shown & (starts == next_start)
        return starts, tf.where(takes, next_end, ends)


@functools.cache
def _boundaries(predicate):
    """Where a predicate of characters changes, over all of Unicode; `[N]` int32."""
    holds = [predicate(chr(point)) for point in range(0x110000)]
    return np.flatnonzero(np.diff([False, *holds, False])).astype("int32")


def _among(points, boundaries):
    return tf.searchsorted(boundaries, points, side="right") % 2 == 1


def _shifted(flags):
    """What holds for the character before."""
    return tf.concat([[False], flags[:-1]], axis=0)[: tf.size(flags)]


def _grouped(points, begins, inside):
    """The characters `inside` as ragged rows, one from each that `begins` one."""
    group = tf.cumsum(tf.cast(begins, tf.int64)) - 1
    return tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(points, inside),
        tf.boolean_mask(group, inside),
        nrows=tf.math.count_nonzero(begins),
    )


def _rows_of_values(ragged):
    """The row of each value; `value_rowids` may be dense, rows by the longest one."""
    places = tf.range(tf.size(ragged.values, tf.int64))
    return tf.searchsorted(ragged.row_splits, places, "right", tf.int64) - 1


def _strings(points):
    return tf.strings.unicode_encode(points, "UTF-8")


def _equal_rows(first, second):
    """Bool `[N]`; not by dense tensors, which one long row among many makes huge."""
    equal = first.row_lengths() == second.row_lengths()
    rows = [_rows_of_values(ids) for ids in (first, second)]
    kept = [tf.gather(equal, row) for row in rows]
    first, second = map(tf.boolean_mask, (first.values, second.values), kept)
    differs = tf.boolean_mask(tf.boolean_mask(rows[0], kept[0]), first != second)
    return tf.tensor_scatter_nd_update(
        equal, differs[:, tf.newaxis], tf.zeros_like(differs, tf.bool)
    )
