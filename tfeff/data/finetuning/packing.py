"""Rows of token ids of texts and pairs, in eager code and in graphs."""

import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from tfeff.data.text.flat import joined, row_ids


def fill_gaps(
    question: tf.Tensor, option: tf.Tensor, most_characters: int | None = None
) -> tf.Tensor:
    """Questions `[N]` with the options in their gaps ("_"), or behind those without.

    With `most_characters`, gaps behind so many characters of options stay empty: a
    long option in many gaps would be huge.
    """
    has_gap = tf.strings.regex_full_match(question, "(?s).*_.*")
    parts = tf.strings.split(tf.strings.regex_replace(question, "_+", "_"), "_")
    counts, row = parts.row_lengths(), row_ids(parts)
    index = tf.ragged.range(counts).flat_values
    empty = index == tf.gather(counts - 1, row)
    if most_characters is not None:
        size = tf.cast(tf.strings.length(option, unit="UTF8_CHAR"), index.dtype)
        empty |= index * tf.gather(size, row) >= most_characters
    # Only what is filled in is copied: behind the options stands an empty one.
    none = tf.size(option, row.dtype)
    filling = tf.gather(tf.concat([option, [""]], axis=0), tf.where(empty, none, row))
    filled = joined(parts.with_values(tf.strings.join([parts.values, filling])))
    return tf.where(has_gap, filled, tf.strings.join([question, option], " "))


def num_separators(tokenizer: keras_hub.tokenizers.Tokenizer) -> int:
    """The number of `[SEP]` between the texts of a pair: two in RoBERTa, else one.

    A tokenizer declares it as `pair_separators`.
    """
    return getattr(tokenizer, "pair_separators", 1)


def num_segments(tokenizer: keras_hub.tokenizers.Tokenizer) -> int:
    """The number of segments of a pair's row: 1 in RoBERTa, else 2.

    A tokenizer declares it as `pair_segments`.
    """
    return getattr(tokenizer, "pair_segments", 2)


def pair_frame(tokenizer: keras_hub.tokenizers.Tokenizer) -> int:
    """The number of special tokens in a pair's row: `[CLS] A [SEP] B [SEP]` has 3."""
    return 2 + num_separators(tokenizer)


def second_segments(
    rows: tf.RaggedTensor, starts: tf.Tensor, tokenizer: keras_hub.tokenizers.Tokenizer
) -> tf.Tensor:
    """Where segment 1 begins in rows whose second texts begin at `starts` `[N]`.

    Behind the row for a tokenizer of one segment.
    """
    if num_segments(tokenizer) == 2:
        return starts
    return tf.cast(rows.row_lengths(), starts.dtype)


def pack(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
    keep: str = "neither",
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Rows `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`; in graphs too.

    With RoBERTa's and XLM-RoBERTa's tokenizers a pair has two `[SEP]` between.

    Args:
        first: ids `[N, (T)]`.
        second: ids `[N, (T)]` or None.
        tokenizer: has the ids of `[CLS]` and `[SEP]`.
        sequence_length: most ids of a row.
        keep: `"neither"`, of which the longer one is cut, or `"second"`.

    Returns:
        Ids `[N, (T)]` and `[N]` int32, where in each row segment 1 begins: behind the
        row where there is no second text.

    Raises:
        tf.errors.InvalidArgumentError: if `first` and `second` are not of one size.
    """
    if second is not None:
        # The trimmers take it for granted, and read beyond the end of the shorter one.
        sizes = second.nrows(), first.nrows()
        message = "`second` must have as many rows as `first`. Received: rows of both:"
        check = tf.raw_ops.Assert(condition=tf.equal(*sizes), data=[message, *sizes])
        with tf.control_dependencies([check]):
            first, second = tf.identity(first), tf.identity(second)
    room = sequence_length - pair_frame(tokenizer)
    if second is None:
        segments = [first[:, : sequence_length - 2]]
    elif keep == "second":
        trimmer = tf_text.WaterfallTrimmer(room)
        segments = trimmer.trim([second, first])[::-1]
    else:
        trimmer = tf_text.RoundRobinTrimmer(room)
        segments = trimmer.trim([first, second])
    if second is not None:
        segments[0] = separated(segments[0], tokenizer)
    rows, _ = tf_text.combine_segments(
        segments, tokenizer.cls_token_id, tokenizer.sep_token_id
    )
    starts = tf.cast(segments[0].row_lengths(), tf.int32) + 2
    return rows, second_segments(rows, starts, tokenizer)


def is_cut(
    first: tf.RaggedTensor,
    second: tf.RaggedTensor | None,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
) -> tf.Tensor:
    """Whether `pack` cuts each row: bool `[N]`."""
    if second is None:
        return first.row_lengths() > sequence_length - 2
    lengths = first.row_lengths() + second.row_lengths()
    return lengths > sequence_length - pair_frame(tokenizer)


def separated(
    first: tf.RaggedTensor, tokenizer: keras_hub.tokenizers.Tokenizer
) -> tf.RaggedTensor:
    """First texts of pairs `[N, (T)]` with all separators behind them but one."""
    more = num_separators(tokenizer) - 1
    if not more:
        return first
    shape = [first.nrows(out_type=tf.int32), more]
    separators = tf.cast(tf.fill(shape, tokenizer.sep_token_id), first.dtype)
    return tf.concat([first, separators], axis=1)


def padded_inputs(
    rows: tf.RaggedTensor, starts: tf.Tensor, pad_token_id: int, length: int | None
) -> dict[str, tf.Tensor]:
    """An encoder's inputs `[N, length]` of what `pack` returns; None: the longest.

    Where there are no rows, their length is 1, for models that read `[CLS]`.
    """
    token_ids = rows.to_tensor(pad_token_id, shape=[starts.shape[0], length])
    if length is None:
        missing = tf.maximum(1 - tf.shape(token_ids)[1], 0)
        token_ids = tf.pad(
            token_ids, [[0, 0], [0, missing]], constant_values=pad_token_id
        )
    width = tf.shape(token_ids)[1]
    padding_mask = tf.sequence_mask(rows.row_lengths(), width, dtype=tf.int32)
    in_second = tf.cast(tf.range(width) >= starts[:, None], tf.int32)
    return {
        "token_ids": token_ids,
        "segment_ids": in_second * padding_mask,
        "padding_mask": tf.ensure_shape(padding_mask, token_ids.shape),
    }
