"""Passages cut into windows that overlap, in eager code and in graphs."""

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.packing import padded_inputs, second_segments

# [CLS] question [SEP] passage [SEP]; a second separator counts to the question, see
# `separated`.
FRAME = 3


def count_windows(
    question_sizes: tf.Tensor,
    passage_sizes: tf.Tensor,
    sequence_length: int,
    stride: int,
) -> tf.Tensor:
    """The number of windows of each question and passage, by their tokens; `[N]` int64.

    With room for r tokens of the passage, window w begins at its token
    w · min(stride, r), up to the first window that reaches the passage's end.
    """
    room = sequence_length - FRAME - question_sizes
    return -(-tf.maximum(passage_sizes - room, 0) // tf.minimum(room, stride)) + 1


def cut_windows(
    question_sizes: tf.Tensor,
    passage_sizes: tf.Tensor,
    sequence_length: int,
    stride: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The first tokens and sizes of the windows, those of a passage together.

    Args:
        question_sizes: `[N]` int64, tokens of each question; a token of the
            passage fits beside them.
        passage_sizes: `[N]` int64, tokens of its passage.
        sequence_length: most tokens of a window.
        stride: tokens from one window's begin to the next one's, at most.

    Returns:
        `[W]` int64 each: a window's question, its first token of the passage, and how
        many tokens of the passage it has.
    """
    counts = count_windows(question_sizes, passage_sizes, sequence_length, stride)
    question = tf.repeat(tf.range(tf.size(question_sizes, tf.int64)), counts)
    room = tf.gather(sequence_length - FRAME - question_sizes, question)
    first = tf.ragged.range(counts).flat_values * tf.minimum(room, stride)
    return question, first, tf.minimum(room, tf.gather(passage_sizes, question) - first)


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
    part = tf.ragged.range(begin, begin + size)
    part = part.with_flat_values(tf.gather(passages, part.flat_values))
    cls, sep = (
        tf.fill([tf.size(begin), 1], id)
        for id in (tokenizer.cls_token_id, tokenizer.sep_token_id)
    )
    rows = tf.concat([cls, question, sep, part, sep], axis=1)
    passage_positions = tf.cast(question.row_lengths(), tf.int32) + 2
    starts = second_segments(rows, passage_positions, tokenizer)
    return padded_inputs(rows, starts, tokenizer.pad_token_id, length)
