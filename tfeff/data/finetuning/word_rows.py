"""Rows of tokens of texts that are split into words, in eager code and in graphs."""

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.encoding import unknown_id
from tfeff.data.finetuning.windows import frame, slices, windows, windows_of
from tfeff.data.text.flat import row_ids, sums
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer

TEXT_FRAME = 2  # [CLS] words [SEP]


def word_pieces(
    words: tf.Tensor, tokenizer: keras_hub.tokenizers.Tokenizer
) -> tf.RaggedTensor:
    """Ids `[W, (P)]` int32 of words `[W]`, each tokenized by itself, P ≥ 1.

    A word that has no tokens gets the unknown token. RoBERTa's tokenizer, which knows
    the begin of a word by the space before it, reads one before each word.
    """
    if isinstance(tokenizer, RobertaTokenizer) and not tokenizer.add_prefix_space:
        words = tf.strings.join([" ", words])
    pieces = tf.cast(tokenizer(words), tf.int32)
    unknown = unknown_id(tokenizer)
    if unknown is None:
        return pieces
    empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
    filling = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(empty)], unknown), empty
    )
    return tf.concat([pieces, filling], axis=1)


def word_rows(
    pieces: tf.RaggedTensor,
    counts: tf.Tensor,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor]:
    """Rows of token ids `[CLS] tokens [SEP]`, and where in them each word is.

    A text of more than T - 2 tokens becomes several rows, each of which begins
    ⌈(T - 2) / 2⌉ tokens behind the one before. The first token of a word stands for
    it, in the row where the smaller one of its left and right contexts is largest; of
    two equal ones, the earlier.

    Args:
        pieces: `[W, (P)]` int32, the tokens of all words, text by text.
        counts: `[B]` int64, the number of words of each text.
        tokenizer: has the ids of `[CLS]` and `[SEP]`.
        sequence_length: T.

    Returns:
        The rows `[N, (≤ T)]` int32; and `[W]` int64 each, the row of a word and the
        position of its first token in it.
    """
    room = sequence_length - TEXT_FRAME
    step = half(sequence_length)
    words = tf.RaggedTensor.from_row_lengths(pieces.row_lengths(), counts)
    text = row_ids(words)
    sizes = sums(words.flat_values, text, words.nrows())
    window_text, first, size = windows_of(room, sizes, step)
    begin = tf.gather(tf.cumsum(sizes, exclusive=True), window_text) + first
    part = slices(pieces.flat_values, begin, size)
    cls, sep = frame(tf.size(begin), tokenizer)
    # How many of the text's tokens are before each word.
    place = pieces.row_starts() - tf.gather(tf.cumsum(sizes, exclusive=True), text)
    last = windows(room, sizes, step) - 1
    later = tf.minimum(place // step, tf.gather(last, text))
    earlier = tf.maximum(later - 1, 0)
    end = tf.gather(sizes, text)

    def context(window):
        behind = tf.minimum(window * step + room, end)
        return tf.minimum(place - window * step, behind - 1 - place)

    window = tf.where(context(later) > context(earlier), later, earlier)
    row = tf.gather(tf.cumsum(last + 1, exclusive=True), text) + window
    return tf.concat([cls, part, sep], axis=1), row, 1 + place - window * step


def half(sequence_length: int) -> int:
    """The tokens from one row's begin to the next one's: half of a row, rounded up."""
    return -(-(sequence_length - TEXT_FRAME) // 2)
