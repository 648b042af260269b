"""Pairs of pieces for sentence-order and next-sentence prediction, in the graph."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfeff.data.cache.batches import TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.sampling import check_seed, random_bits


class Pairs(NamedTuple):
    """Pairs `[CLS] A [SEP] B [SEP]` with their labels."""

    token_ids: tf.Tensor  # [B, T] int32
    segment_ids: tf.Tensor  # [B, T] int32: 1 for B and the [SEP] after it
    padding_mask: tf.Tensor  # [B, T] int32
    labels: tf.Tensor  # [B] int32: 1 if B does not follow A
    weights: tf.Tensor  # [B] float32: 0 if the text could not be split


def make_pairs(
    texts: TokenBatch,
    others: TokenBatch | None = None,
    *,
    seed: int,
    first_example: int | tf.Tensor,
    manifest: Manifest,
    word_starts: np.ndarray | None = None,
) -> Pairs:
    """Splits each text in two and makes half of the pairs wrong.

    A text that fills the sequence loses its last token to the second `[SEP]`. It is
    split at a border drawn uniformly from those before a word, or from all borders
    without `word_starts`. Neither half is empty: a text without a border is not split
    and becomes `[CLS] A [SEP]` with label and weight 0.

    With probability 1/2, A and B are swapped. With `others`, B is instead replaced by
    as many tokens of the other text, from a border drawn among those that are followed
    by enough tokens (or by the whole text if it is shorter). If the other text is of
    the same document, B is kept and the label is 0.

    Row b depends on `seed` and the number `first_example + b` alone.

    Args:
        texts: the texts to split.
        others: for each text, another text that B may be replaced from.
        seed: seed of the splits, in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example, from 0.
        manifest: of the cache, for its special ids.
        word_starts: [V] bool, the ids that begin a word, or None.

    Returns:
        The pairs, of the texts' shape.

    Reference:
        Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
        Representations", 2020, section 3.1, for the order; Devlin et al., "BERT:
        Pre-training of Deep Bidirectional Transformers for Language Understanding",
        2019, section 3.1, Task #2, for the next sentence.
    """
    seed = check_seed(seed)
    rows, length = tf.unstack(tf.shape(texts.token_ids))
    cut_draw, flip_draw, start_draw = random_bits(
        seed, first_example, (rows, 3, 1), stream=2
    )
    flip = flip_draw >= 2**31

    content = texts.token_ids[:, 1:]  # tokens after the text are never read
    total = tf.minimum(_num_tokens(texts), length - 3)
    borders = _borders(content, word_starts)
    position = tf.range(length - 1)
    cut, found = _draw(borders & (position > 0) & (position < total), cut_draw)
    cut = tf.where(found, cut, total)

    # A is tokens [start_a, start_a + size_a) of `source`, and B likewise.
    rest = total - cut
    if others is None:
        source = content
        wrong = flip & found
        start_a, size_a = tf.where(wrong, cut, 0), tf.where(wrong, rest, cut)
        start_b, size_b = tf.where(wrong, 0, cut), total - size_a
    else:
        other = others.token_ids[:, 1:]
        source = tf.concat([content, other], axis=1)
        available = _num_tokens(others)
        elsewhere = (texts.documents != others.documents)[:, None] & (available > 0)
        wrong = flip & found & elsewhere
        possible = _borders(other, word_starts) & (position <= available - rest)
        start, any_start = _draw(possible, start_draw)
        start = tf.where(any_start, start, 0)
        start_a, size_a = tf.zeros_like(cut), cut
        start_b = tf.where(wrong, length - 1 + start, cut)
        size_b = tf.where(wrong, tf.minimum(rest, available), rest)

    column = tf.range(length)
    in_a = column <= size_a + 1  # with [CLS] and its [SEP]
    end = size_a + 1 + tf.where(found, size_b + 1, 0)  # of the last [SEP]
    index = tf.where(in_a, start_a + column - 1, start_b + column - size_a - 2)
    index = tf.clip_by_value(index, 0, tf.shape(source)[1] - 1)
    ids = tf.gather(source, index, batch_dims=1)
    ids = tf.where((column == size_a + 1) | (column == end), manifest.sep_token_id, ids)
    ids = tf.where(column == 0, manifest.cls_token_id, ids)
    real = (column <= end) & (texts.padding_mask[:, :1] > 0)
    return Pairs(
        token_ids=tf.where(real, ids, manifest.pad_token_id),
        segment_ids=tf.cast(real & ~in_a, tf.int32),
        padding_mask=tf.cast(real, tf.int32),
        labels=tf.cast(wrong, tf.int32)[:, 0],
        weights=tf.cast(found, tf.float32)[:, 0],
    )


def _num_tokens(texts: TokenBatch) -> tf.Tensor:
    """Tokens between `[CLS]` and `[SEP]`, [B, 1]; 0 in a row of padding."""
    framed = tf.reduce_sum(texts.padding_mask, axis=1, keepdims=True)
    return tf.maximum(framed - 2, 0)


def _borders(token_ids: tf.Tensor, word_starts: np.ndarray | None) -> tf.Tensor:
    if word_starts is None:
        return tf.ones_like(token_ids, tf.bool)
    return tf.gather(tf.constant(word_starts), token_ids)


def _draw(possible: tf.Tensor, draw: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The position of a random true value, and whether there is one, both `[B, 1]`."""
    found = tf.cumsum(tf.cast(possible, tf.int32), axis=1)
    count = found[:, -1:]
    number = tf.bitwise.right_shift(draw * tf.cast(count, tf.int64), 32)
    position = tf.searchsorted(found, tf.cast(number, tf.int32) + 1)
    return tf.minimum(position, tf.shape(possible)[1] - 1), count > 0
