"""Tokens of texts, each with the characters of the text that it stands for."""

from collections.abc import Iterator, Sequence

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.compat.tokenizers import sentence_piece
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.characters import (
    SPACE,
    boundaries,
    is_invisible,
    is_invisible_in_pieces,
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
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.tokenizers import check_gives_ids

_CHARACTERS_AT_ONCE = 2**18  # They bound the memory that a call takes.


def encode_with_offsets(
    tokenizer: keras_hub.tokenizers.Tokenizer, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields, for each text, its ids and where each token lies in it.

    The ids are those of `tokenizer(text)` in a graph, less any begin and end mark;
    offsets are those of `OffsetTokenizer`.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub, or a
            `tfeff.data.RobertaTokenizer`.
        texts: the texts.

    Yields:
        Ids `[T]` int32 and offsets (start, end) `[T, 2]` int32.

    Raises:
        TypeError: if the tokenizer is of another kind.
        ValueError: if the tokenizer pads, having a `sequence_length`, or gives strings.
    """
    plain = tokenizer
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        # The given one adds marks, and its kernels may be gone: see `restore_kernels`.
        plain = keras_hub.tokenizers.SentencePieceTokenizer(tokenizer.proto)
    encode = OffsetTokenizer(plain)
    check_gives_ids(tokenizer)
    for batch in _batches(texts):
        with tf.device("CPU"):
            ids, starts, ends = encode(tf.constant(batch))
        borders = ids.row_splits.numpy()[1:-1]
        offsets = np.stack([starts.flat_values, ends.flat_values], axis=1)
        ids = ids.flat_values.numpy()
        yield from zip(np.split(ids, borders), np.split(offsets, borders))


def _batches(texts):
    """Lists of texts of so many characters together, the last text apart."""
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class OffsetTokenizer(tf.Module):
    """Ids of texts and where their tokens lie, in graphs too.

    Offsets are counted in characters (Unicode code points) of the text as it is,
    before any folding, without white space and invisible characters at either end. The
    symbol "▁" (U+2581), by which SentencePiece writes spaces, is white space to it.
    Tokens that share a character ("½" as "1", "⁄", "2", or as bytes) all cover it. A
    token of white space alone is empty: its start is its end. Where WordPiece gives no
    way to tell the parts of a word apart, each covers the word.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub, or a
            `tfeff.data.RobertaTokenizer`.

    Call arguments:
        text: string tensor `[B]`, UTF-8.

    Returns:
        Three ragged tensors `[B, (P)]` int32: ids, the tokens' first characters and
        the ones behind their last.

    Raises:
        TypeError: if the tokenizer is of another kind.
    """

    def __init__(self, tokenizer: keras_hub.tokenizers.Tokenizer):
        super().__init__()
        if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
            self._encode = self._sentence_piece
        elif isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
            self._encode = self._word_piece
        elif isinstance(tokenizer, RobertaTokenizer):
            self._encode = self._byte_pairs
        else:
            raise TypeError(
                "`tokenizer` must be a SentencePiece or WordPiece tokenizer, or a "
                "RobertaTokenizer. "
                f"Received: tokenizer of type {type(tokenizer).__name__}"
            )
        self.tokenizer = tokenizer
        pieces = tokenizer.get_vocabulary()
        self._unseen = boundaries(is_invisible)
        if self._encode == self._sentence_piece:
            self._unseen = boundaries(is_invisible_in_pieces)
            self._is_shown = tf.constant([bool(piece.strip(SPACE)) for piece in pieces])
        if self._encode == self._byte_pairs:
            parts = tokenizer.piece_bytes()
            self._is_shown = tf.constant([bool(part.strip()) for part in parts])
            self._lengths = tf.constant([len(part) for part in parts], tf.int64)
        if self._encode == self._word_piece:
            mark = tokenizer.suffix_indicator
            self._is_shown = tf.ones([len(pieces)], tf.bool)
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

    def __call__(self, text):
        # A space keeps the end of one text apart from the start of the next: from here
        # on, offsets count the characters of all texts one after another.
        points, offsets = tf.strings.unicode_decode_with_offsets(
            tf.strings.join([text, " "]), "UTF-8"
        )
        ids, starts, ends = self._encode(text, points, offsets)
        ids = tf.cast(ids, tf.int32)
        first = tf.gather(points.row_starts(), row_ids(ids))
        shown = tf.gather(self._is_shown, ids.flat_values)
        starts, ends = (
            ids.with_flat_values(tf.cast(offset - first, tf.int32))
            for offset in self._visible(points.flat_values, starts, ends, shown)
        )
        return ids, starts, ends

    def _visible(self, points, starts, ends, shown):
        """Cuts off what cannot be seen; a piece of no characters takes the next's."""
        visible = ~among(points, self._unseen)
        seen = indices(visible)
        rank = tf.cumsum(tf.cast(visible, tf.int64), exclusive=True)
        after = tf.concat([seen, [tf.size(points, tf.int64)]], axis=0)
        before = tf.concat([[0], seen + 1], axis=0)
        starts = tf.minimum(tf.gather(after, tf.gather(rank, starts)), ends)
        ends = tf.maximum(tf.gather(before, tf.gather(rank, ends)), starts)
        full = starts < ends
        following = tf.cumsum(tf.cast(full, tf.int64), exclusive=True)
        none = tf.constant([-1], tf.int64)
        next_start, next_end = (
            tf.gather(tf.concat([tf.gather(p, indices(full)), none], axis=0), following)
            for p in (starts, ends)
        )
        takes = ~full & shown & (starts == next_start)
        return starts, tf.where(takes, next_end, ends)

    def _sentence_piece(self, text, points, offsets):
        encode = sentence_piece(self.tokenizer).tokenize_with_offsets
        ids, starts, ends = encode(text)
        size = tf.cast(tf.strings.length(text), tf.int64) + 1
        before = tf.cumsum(size, exclusive=True)
        known = offsets.flat_values + tf.gather(before, row_ids(offsets))
        shift = tf.gather(before, row_ids(ids))
        starts, ends = (
            tf.searchsorted(known, offset.flat_values + shift, out_type=tf.int64)
            for offset in (starts, ends)
        )
        return ids, starts, ends

    def _byte_pairs(self, text, points, offsets):
        ids = self.tokenizer.tokenize(text)
        size = tf.cast(tf.strings.length(text), tf.int64) + 1
        before = tf.cumsum(size, exclusive=True)
        length = tf.gather(self._lengths, ids.flat_values)
        row = row_ids(ids)
        # The space that the tokenizer puts before a text is not one of its bytes.
        added = sums(length, row, ids.nrows()) - (size - 1)
        done = tf.cumsum(length) - tf.gather(
            tf.cumsum(size - 1 + added, exclusive=True), row
        )
        first = tf.gather(before, row)
        start, end = (
            first + tf.maximum(done - less - tf.gather(added, row), 0)
            for less in (length, 0)
        )
        # A piece may begin or end within a character, which it then covers.
        known = offsets.flat_values + tf.gather(before, row_ids(offsets))
        starts = tf.searchsorted(known, start, "right", tf.int64) - 1
        ends = tf.searchsorted(known, end, "left", tf.int64)
        return ids, starts, ends

    def _word_piece(self, text, points, offsets):
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
