"""Passages cut into windows that overlap, in eager code and in graphs."""

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.packing import padded_inputs, second_segments
from tfeff.data.text.flat import rows_of

# [CLS] question [SEP] passage [SEP]; a second separator counts to the question, see
# `separated`.
PAIR_FRAME = 3


def windows(room: tf.Tensor | int, sizes: tf.Tensor, stride: int) -> tf.Tensor:
    """The number of windows of so many tokens of texts of these sizes; `[N]` int64.

    Window w begins at token w · min(stride, room), up to the first window that reaches
    the text's end. A text without tokens has one.
    """
    room = tf.cast(room, tf.int64)
    return -(-tf.maximum(sizes - room, 0) // tf.minimum(room, stride)) + 1


def windows_of(
    room: tf.Tensor | int, sizes: tf.Tensor, stride: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The windows of texts, those of a text together.

    Args:
        room: most tokens of a window: `[N]` int64 for each text, or one integer.
        sizes: `[N]` int64, tokens of each text.
        stride: tokens from one window's begin to the next one's, at most.

    Returns:
        `[W]` int64 each: a window's text, its first token of the text, and how many
        tokens it has.
    """
    room = tf.broadcast_to(tf.cast(room, tf.int64), tf.shape(sizes))
    counts = windows(room, sizes, stride)
    text = rows_of(counts)
    room = tf.gather(room, text)
    first = tf.ragged.range(counts).flat_values * tf.minimum(room, stride)
    return text, first, tf.minimum(room, tf.gather(sizes, text) - first)


def slices(values: tf.Tensor, begin: tf.Tensor, size: tf.Tensor) -> tf.RaggedTensor:
    """Slices `[W, (S)]` of values `[P]`, from `begin` `[W]` and of `size` `[W]`."""
    part = tf.ragged.range(begin, begin + size)
    return part.with_flat_values(tf.gather(values, part.flat_values))


def frame(
    count: tf.Tensor, tokenizer: keras_hub.tokenizers.Tokenizer
) -> tuple[tf.Tensor, tf.Tensor]:
    """Columns `[W, 1]` int32 of `[CLS]` and of `[SEP]`."""
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    return tf.fill([count, 1], cls), tf.fill([count, 1], sep)


def window_inputs(
    question: tf.RaggedTensor,
    passages: tf.Tensor,
    begin: tf.Tensor,
    size: tf.Tensor,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    length: int | None,
) -> dict[str, tf.Tensor]:
    """An encoder's inputs `[W, length]` of `[CLS] question [SEP] part [SEP]`.

    Args:
        question: ids `[W, (T)]` int32 of each window's question.
        passages: ids `[P]` int32 of all passages, one after another.
        begin: `[W]` int64, which of them is the first of a window.
        size: `[W]` int64, how many of them it has.
        tokenizer: has the ids of `[CLS]`, `[SEP]` and padding.
        length: of all rows; None for that of the longest.
    """
    part = slices(passages, begin, size)
    cls, sep = frame(tf.size(begin), tokenizer)
    rows = tf.concat([cls, question, sep, part, sep], axis=1)
    passage_positions = tf.cast(question.row_lengths(), tf.int32) + 2
    starts = second_segments(rows, passage_positions, tokenizer)
    return padded_inputs(rows, starts, tokenizer.pad_token_id, length)
