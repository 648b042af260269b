"""Pairs of pieces for sentence-order and next-sentence prediction, in the graph."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfeff.data.cache.batches import TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining.sentences import SentencePieces, sentence_starts
from tfeff.data.sampling import check_stateless_seed, random_bits


def make_pairs(
    texts: TokenBatch,
    others: TokenBatch | None = None,
    *,
    seed: int,
    first_example: int | tf.Tensor,
    manifest: Manifest,
    word_starts: np.ndarray | None = None,
    sentence_pieces: SentencePieces | None = None,
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Splits each text in two and makes half of the pairs wrong.

    A text is split between two sentences, so that A and B begin and end as sentences
    do, whether the pair is right or wrong. The border is drawn uniformly. A text that
    fills the sequence may go on in the next: what it has behind its last sentence's end
    is left out. Where pairs are swapped, a text that does not begin its document, or
    begins it with a piece that begins no word (byte-level BPE without a space), loses
    what it has before its first sentence's begin.

    A text of too few sentences is split at a border drawn uniformly from those before a
    word, or from all borders without `word_starts`; where pairs are swapped, only if it
    is of one sentence, or has neither end of its document, and from its first word on,
    which must begin in its first quarter. If it fills the sequence, it loses its last
    token to the second `[SEP]`. Neither half is empty. Other texts are not split and
    become `[CLS] A [SEP]` with label and weight 0.

    With probability 1/2, A and B are swapped. With `others`, B is instead replaced:

    - B of sentences by sentences of the other text, from one drawn among those that are
      followed by as many tokens as B has; as many as fit if the text fills the
      sequence, and else up to the sentence's end at which the lengths differ least. A
      text for which none fits is split at a word, whether the pair is right or wrong.
    - B of words by as many tokens from a border drawn among those that are followed by
      enough, or by the text from its first word on if it is shorter; but if the text
      does not fill the sequence, and `sentence_pieces` are given, by the last words of
      the other, or of its last whole sentence, of no more tokens.

    If the other text is of the same document, B is kept and the label is 0.

    Row b depends on `seed` and the number `first_example + b` alone.

    Args:
        texts: the texts to split.
        others: for each text, another text that B may be replaced from.
        seed: seed of the splits, in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example, from 0.
        manifest: of the cache, for its special ids.
        word_starts: [V] bool, the ids that begin a word, or None.
        sentence_pieces: the ids that begin and end sentences; None splits before words.

    Returns:
        The inputs of an encoder `[B, T]` int32, pairs `[CLS] A [SEP] B [SEP]`; labels
        `[B]` int32, 1 if B does not follow A; weights `[B]` float32, 0 if the text
        could not be split.

    Reference:
        Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
        Representations", 2020, section 3.1, for the order; Devlin et al., "BERT:
        Pre-training of Deep Bidirectional Transformers for Language Understanding",
        2019, section 3.1, Task #2, for the next sentence.
    """
    seed = check_stateless_seed(seed)
    rows, length = tf.unstack(tf.shape(texts.token_ids))
    cut_draw, flip_draw, start_draw = random_bits(
        seed, first_example, (rows, 3, 1), stream=2
    )
    flip = flip_draw >= 2**31

    text = _read(texts, word_starts, sentence_pieces)
    begin, cut, end, found = _split_words(text, cut_draw, is_swapped=others is None)
    if others is not None:
        other = _read(others, word_starts, sentence_pieces)
        start, size = _other_words(other, text, end - cut, start_draw)
    if sentence_pieces is not None:
        *places, fits, is_told = _split_sentences(
            text, cut_draw, is_swapped=others is None
        )
        if others is None:
            found &= ~is_told
        else:
            *piece, has_piece = _other_sentences(other, text, places, start_draw)
            fits &= has_piece  # Whether or not the pair is made wrong.
            start, size = (
                tf.where(fits, *x) for x in zip(piece, (start, size), strict=True)
            )
        begin, cut, end = (
            tf.where(fits, *x) for x in zip(places, (begin, cut, end), strict=True)
        )
        found |= fits

    # A document that is not split keeps its text.
    begin, cut = tf.where(found, begin, 0), tf.where(found, cut, end)
    # A is tokens [start_a, start_a + size_a) of `source`, and B likewise.
    left, rest = cut - begin, end - cut
    if others is None:
        source = text.tokens
        wrong = flip & found
        start_a, size_a = tf.where(wrong, cut, begin), tf.where(wrong, rest, left)
        start_b, size_b = tf.where(wrong, begin, cut), tf.where(wrong, left, rest)
    else:
        source = tf.concat([text.tokens, other.tokens], axis=1)
        elsewhere = (texts.documents != others.documents)[:, None]
        wrong = flip & found & elsewhere & (size > 0)
        start_a, size_a = begin, left
        start_b = tf.where(wrong, length - 1 + start, cut)
        size_b = tf.where(wrong, size, rest)

    column = tf.range(length)
    in_a = column <= size_a + 1  # with [CLS] and its [SEP]
    end = size_a + 1 + tf.where(found, size_b + 1, 0)  # of the last [SEP]
    index = tf.where(in_a, start_a + column - 1, start_b + column - size_a - 2)
    index = tf.clip_by_value(index, 0, tf.shape(source)[1] - 1)
    ids = tf.gather(source, index, batch_dims=1)
    ids = tf.where((column == size_a + 1) | (column == end), manifest.sep_token_id, ids)
    ids = tf.where(column == 0, manifest.cls_token_id, ids)
    real = (column <= end) & (texts.padding_mask[:, :1] > 0)
    inputs = {
        "token_ids": tf.where(real, ids, manifest.pad_token_id),
        "segment_ids": tf.cast(real & ~in_a, tf.int32),
        "padding_mask": tf.cast(real, tf.int32),
    }
    return inputs, tf.cast(wrong, tf.int32)[:, 0], tf.cast(found, tf.float32)[:, 0]


class _Text(NamedTuple):
    """The text of each row, and the places, `[B, T − 1]` bool, where it may be cut."""

    # [B, T − 1]: those behind [CLS], of which those after the text count not
    tokens: tf.Tensor
    size: tf.Tensor  # [B, 1], 0 in a row of padding
    # [B, 1]: it leaves room in its row; others may go on in the next
    is_whole: tf.Tensor
    begins: tf.Tensor  # [B, 1]: it begins its document
    words: tf.Tensor  # before each word, also behind the text
    sentences: tf.Tensor | None  # between two sentences; None if that is not known

    @property
    def most(self) -> tf.Tensor:
        """The most tokens of a pair."""
        return tf.shape(self.tokens)[1] - 2

    @property
    def position(self) -> tf.Tensor:
        """The places, `[T − 1]`."""
        return tf.range(tf.shape(self.tokens)[1])


def _read(
    texts: TokenBatch,
    word_starts: np.ndarray | None,
    sentence_pieces: SentencePieces | None,
) -> _Text:
    tokens = texts.token_ids[:, 1:]
    framed = tf.reduce_sum(texts.padding_mask, axis=1, keepdims=True)
    size = tf.maximum(framed - 2, 0)
    words, sentences = tf.ones_like(tokens, tf.bool), None
    if word_starts is not None:
        words = tf.gather(tf.constant(word_starts), tokens)
    if sentence_pieces is not None:
        is_within = tf.range(tf.shape(tokens)[1]) < size
        sentences = is_within & sentence_starts(tokens, sentence_pieces)
    is_whole = size < tf.shape(tokens)[1] - 1
    # Byte-level BPE may begin a document with a piece that no other text begins with.
    begins = texts.begins[:, None] & words[:, :1]
    return _Text(tokens, size, is_whole, begins, words, sentences)


def _split_words(
    text: _Text, draw: tf.Tensor, *, is_swapped: bool
) -> tuple[tf.Tensor, ...]:
    """Where A begins, B begins and B ends, and whether there is a B; all `[B, 1]`.

    A row may begin within a word, which would tell the order of its halves: they leave
    that part out, and there are none where it is long, as in scripts without spaces.
    """
    total = tf.minimum(text.size, text.most)
    within = text.words & (text.position < total)
    begin = _first(within) if is_swapped else tf.zeros_like(total)
    cut, found = _draw(within & (text.position > begin), draw)
    return begin, cut, total, found & (4 * begin <= total)


def _split_sentences(
    text: _Text, draw: tf.Tensor, *, is_swapped: bool
) -> tuple[tf.Tensor, ...]:
    """As `_split_words`, at borders of sentences, and what a split of words would tell.

    The last value, `[B, 1]` bool, is whether one end alone of the text is a sentence's,
    which tells the order of halves that are not cut between sentences.
    """
    total = tf.minimum(text.size, text.most)
    borders = text.sentences
    first = tf.where(text.begins | (not is_swapped), 0, _first(borders))
    last = tf.where(text.is_whole, total, _last(borders))
    inner = borders & (text.position > first) & (text.position < last)
    cut, found = _draw(inner, draw)
    is_told = ~found & _any(borders) & (text.is_whole | text.begins)
    return first, cut, last, found, is_told


def _other_words(
    other: _Text, text: _Text, rest: tf.Tensor, draw: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Where a wrong B of words begins in the other text, and its size, `[B, 1]`."""
    position = other.position
    words = other.words & (position < other.size)
    begin, found = _draw(words & (position <= other.size - rest), draw)
    begin = tf.where(found, begin, _first(words))
    size = tf.minimum(rest, other.size - begin)
    if other.sentences is None:
        return begin, size
    # The right B of a whole text ends as a text, or at least as a sentence does.
    stop = tf.where(other.is_whole, other.size, _last(other.sentences))
    fits = other.words & (position < stop) & (position >= stop - rest)
    is_used = text.is_whole & _any(fits)
    begin = tf.where(is_used, _first(fits), begin)
    return begin, tf.where(is_used, stop - begin, size)


def _other_sentences(
    other: _Text, text: _Text, places: list[tf.Tensor], draw: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """As `_other_words`, of whole sentences, and whether any fit; `[B, 1]` all.

    `places` are where A and B begin, and where B ends, in the text.
    """
    position = other.position
    _, cut, end = places
    rest, room = end - cut, text.most - cut
    ends = other.sentences | (other.is_whole & (position == other.size))
    starts = other.sentences | (other.begins & (position == 0))
    starts &= _next(ends) <= position + room
    enough = starts & (position <= _last(ends) - rest)
    begin, found = _draw(tf.where(_any(enough), enough, starts), draw)
    # As many as fit in place of the last ones of a text that fills its row.
    wanted = begin + tf.where(text.is_whole, rest, room)
    last = _nearest(ends & (position > begin) & (position <= begin + room), wanted)
    return begin, last - begin, found


def _any(places: tf.Tensor) -> tf.Tensor:
    return tf.reduce_any(places, axis=1, keepdims=True)


def _first(places: tf.Tensor) -> tf.Tensor:
    """The first true place, [B, 1]; 0 if there is none."""
    return tf.argmax(places, axis=1, output_type=tf.int32)[:, None]


def _last(places: tf.Tensor) -> tf.Tensor:
    """The last true place, [B, 1]; -1 if there is none."""
    position = tf.range(tf.shape(places)[1])
    return tf.reduce_max(tf.where(places, position, -1), axis=1, keepdims=True)


def _next(places: tf.Tensor) -> tf.Tensor:
    """The next true place behind each, [B, T]; beyond the row if there is none."""
    count = tf.cumsum(tf.cast(places, tf.int32), axis=1)
    after = tf.searchsorted(count, count + 1)
    return tf.where(after < tf.shape(places)[1], after, tf.int32.max)


def _nearest(places: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """The true place next to the wanted one, [B, 1]."""
    position = tf.range(tf.shape(places)[1])
    off = tf.where(places, tf.abs(position - wanted), tf.int32.max)
    return tf.argmin(off, axis=1, output_type=tf.int32)[:, None]


def _draw(possible: tf.Tensor, draw: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The position of a random true value, and whether there is one, both `[B, 1]`."""
    found = tf.cumsum(tf.cast(possible, tf.int32), axis=1)
    count = found[:, -1:]
    number = tf.bitwise.right_shift(draw * tf.cast(count, tf.int64), 32)
    position = tf.searchsorted(found, tf.cast(number, tf.int32) + 1)
    return tf.minimum(position, tf.shape(possible)[1] - 1), count > 0
