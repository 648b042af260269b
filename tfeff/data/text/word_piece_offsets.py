"""Where WordPiece's pieces lie in a text."""

import tensorflow as tf

from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.characters import (
    boundaries,
    is_joined,
    is_word,
    is_word_or_space,
)
from tfeff.data.text.cleaned_characters import cleaned_characters
from tfeff.data.text.flat import (
    among,
    any_of,
    indices,
    numbers,
    row_ids,
    shifted,
    strings,
    sums,
)
from tfeff.data.text.offsets import OffsetTokenizer


class WordPieceOffsets(OffsetTokenizer):
    """Those of a WordPiece tokenizer, by the characters of each piece.

    Where it gives no way to tell the parts of a word apart, each covers the word.
    """

    def __init__(self, tokenizer):
        pieces, mark = tokenizer.get_vocabulary(), tokenizer.suffix_indicator
        super().__init__(tokenizer, [True] * len(pieces))
        self._lengths = tf.constant(
            [len(piece.removeprefix(mark)) for piece in pieces], tf.int64
        )
        self._cleaned = cleaned_characters(tokenizer)
        self._unknown = tokenizer.token_to_id(tokenizer.oov_token)
        # Outside of graphs KerasHub's own would run in Python, word by word.
        self._tokenize = tf.function(
            lambda words: tokenizer(words),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        ).get_concrete_function()

    def encode(self, text, points, offsets):
        # KerasHub's clean-up ends at U+0000, which is a control character like U+0001.
        splits, points = points.row_splits, tf.maximum(points.flat_values, 1)
        # White space ends a word, and what stands between is tokenized on its own.
        inside = tf.reduce_all(points[:, tf.newaxis] != [32, 9, 10, 13], axis=1)
        begins = inside & ~shifted(inside)
        # KerasHub's own tokenizers read words that other spaces join as one.
        is_own = isinstance(self.tokenizer, BertTokenizer)
        is_cut = is_word_or_space if is_own else is_word
        cut = inside & among(points, boundaries(is_cut))
        parts = begins | (inside & (cut | shifted(cut)))
        chunk, part = numbers(begins), numbers(parts)
        # Each word is tokenized once, however often it occurs.
        chunks, words = (strings(points, inside, p) for p in (begins, parts))
        words, index = tf.unique(tf.concat([chunks, words], axis=0))
        ids = self._tokenize(words)
        together = tf.gather(ids, index[: tf.size(chunks)])
        apart = tf.gather(ids, index[tf.size(chunks) :])
        # Where the tokenizer cuts elsewhere, a chunk stays whole.
        same = _equal_rows(together, apart, tf.gather(chunk, indices(parts)))
        same = tf.gather(tf.concat([same, [False]], axis=0), tf.maximum(chunk, 0))
        begins |= parts & same
        first = indices(begins)
        counts = tf.where(
            tf.gather(same, first),
            tf.gather(apart.row_lengths(), tf.gather(part, first)),
            tf.gather(together.row_lengths(), tf.gather(chunk, first)),
        )
        ids = together.flat_values
        starts, ends = self._in_words(
            tf.RaggedTensor.from_row_lengths(ids, counts, validate=False),
            first,
            points,
            inside,
            numbers(begins),
        )
        texts = tf.searchsorted(splits, first, "right", tf.int64) - 1
        counts = sums(counts, texts, tf.size(splits) - 1)
        ids = tf.RaggedTensor.from_row_lengths(ids, counts, validate=False)
        return ids, starts, ends

    def _in_words(self, ids, first, points, inside, words):
        """Offsets of the pieces `[W, (P)]` of words that begin at `first` `[W]`.

        `inside` and `words` `[C]`: whether a character is one of a word, and which;
        before the first word, -1, which sums leave out.
        """
        word, num_words = row_ids(ids), tf.size(first)
        size = tf.gather(self._lengths, ids.flat_values)
        total = sums(size, word, num_words)
        done = tf.cumsum(size) - tf.gather(tf.cumsum(total, exclusive=True), word)
        unknown = any_of(ids.flat_values == self._unknown, word, num_words)
        # How many characters of the pieces each character of the text becomes.
        step = tf.searchsorted(self._cleaned[0], points, side="right") - 1
        becomes = tf.where(inside, tf.gather(self._cleaned[1], step), 0)
        plain = (becomes > 0) & ~among(points, boundaries(is_joined))
        length, num_plain, expected = (
            sums(counts, words, num_words) for counts in (inside, plain, becomes)
        )
        last = first + length
        every = total == expected
        # If not each on its own, it is a letter that is composed with its accents.
        known = (ids.row_lengths() > 1) & ~unknown & (every | (total == num_plain))
        # Nothing is counted before the first word, nor where there is none.
        takes_all = tf.gather(tf.concat([every, [False]], axis=0), tf.maximum(words, 0))
        counts = tf.where(takes_all, becomes, tf.cast(plain, tf.int64))
        made = tf.cumsum(counts)
        before = tf.cumsum(sums(counts, words, num_words), exclusive=True)
        begin, end = (tf.gather(before, word) + n for n in (done - size, done))
        # A piece may begin or end within what a character becomes, which it covers.
        starts = tf.searchsorted(made, begin, "right", tf.int64)
        inner = tf.searchsorted(made, end, "left", tf.int64)
        limit = tf.size(made, tf.int64) - 1
        is_border = tf.gather(made, tf.minimum(inner, limit)) == end
        ends = tf.where(
            is_border, tf.searchsorted(made, end, "right", tf.int64), inner + 1
        )
        whole = ~tf.gather(known, word)
        is_first = ~shifted(word == tf.roll(word, -1, axis=0))
        is_last = done == tf.gather(total, word)
        starts = tf.where(whole | is_first, tf.gather(first, word), starts)
        ends = tf.where(whole | is_last, tf.gather(last, word), ends)
        return starts, ends


def _equal_rows(first, second, rows):
    """Whether each row is those of `second` that belong to it, joined; bool `[N]`."""
    # Not by dense tensors, which one long row among many makes huge.
    row, count = row_ids(first), first.nrows()
    size = sums(second.row_lengths(), rows, count)
    index = tf.range(tf.size(row, tf.int64)) - tf.gather(first.row_starts(), row)
    index += tf.gather(tf.cumsum(size, exclusive=True), row)
    values = tf.pad(second.flat_values, [[0, 1]])
    other = tf.gather(values, tf.minimum(index, tf.size(values, tf.int64) - 1))
    differs = any_of(first.flat_values != other, row, count)
    return (first.row_lengths() == size) & ~differs
