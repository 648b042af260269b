"""Tokens of texts, each with the characters of the text that it stands for."""

from collections.abc import Iterator, Sequence

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.data.text.offsets import OffsetTokenizer
from tfeff.data.text.piece_offsets import BytePairOffsets, SentencePieceOffsets
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.tokenizers import check_gives_ids
from tfeff.data.text.word_piece_offsets import WordPieceOffsets

_CHARACTERS_AT_ONCE = 2**18  # They bound the memory that a call takes.
_KINDS = {
    keras_hub.tokenizers.SentencePieceTokenizer: SentencePieceOffsets,
    keras_hub.tokenizers.WordPieceTokenizer: WordPieceOffsets,
    RobertaTokenizer: BytePairOffsets,
}


def offset_tokenizer(tokenizer: keras_hub.tokenizers.Tokenizer) -> OffsetTokenizer:
    """The `OffsetTokenizer` of a tokenizer.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub, or a
            `tfeff.data.RobertaTokenizer`.

    Raises:
        TypeError: if the tokenizer is of another kind.
    """
    for kind, offsets in _KINDS.items():
        if isinstance(tokenizer, kind):
            return offsets(tokenizer)
    raise TypeError(
        "`tokenizer` must be a SentencePiece or WordPiece tokenizer, or a "
        f"RobertaTokenizer. Received: tokenizer of type {type(tokenizer).__name__}"
    )


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
    encode = offset_tokenizer(plain)
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
