"""Writing of one shard of a cache, a TFRecord file. It runs in threads."""

import dataclasses
import os

import numpy as np
import sentencepiece
import tensorflow as tf

from tfeff.data.cache.chunking import (
    frame_pieces,
    join_documents,
    piece_documents,
    piece_lengths,
)
from tfeff.data.cache.layout import text_hash
from tfeff.data.cache.tokenization import Tokenization
from tfeff.utils.digests import sha256

_ROWS_AT_ONCE = 4096  # bounds memory when documents are many and short
_FRAME = 3  # words of a record around its piece: document, [CLS] and [SEP]


@dataclasses.dataclass(frozen=True)
class ShardSettings:
    """Settings that all shards of a cache share."""

    sequence_length: int
    cross_documents: bool
    vocabulary_size: int
    cls_token_id: int
    sep_token_id: int
    # None if the tasks have the ids
    processor: sentencepiece.SentencePieceProcessor | None


def shard_settings(wanted: dict, tokenization: Tokenization) -> ShardSettings:
    """The settings of shards, of those of the cache."""
    names = {field.name for field in dataclasses.fields(ShardSettings)} - {"processor"}
    return ShardSettings(
        processor=tokenization.processor, **{name: wanted[name] for name in names}
    )


@dataclasses.dataclass(frozen=True)
class ShardTask:
    """The documents of one shard."""

    path: str
    documents: list[str]
    first_document: int  # index of the first one in the corpus
    settings: ShardSettings
    # of each document; empty with a processor
    ids: list[np.ndarray] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class WrittenShard:
    """Description of a written shard."""

    file: str
    num_bytes: int
    num_records: int
    sha256: str
    text_hash: str
    first_document: int
    num_documents: int
    num_empty: int  # documents without a token


@dataclasses.dataclass(frozen=True)
class ShardResult:
    """A written shard, with the count of every token id."""

    shard: WrittenShard
    token_counts: np.ndarray  # [V] int64
    lengths: np.ndarray  # int32 words of each record, [num_records] uint32


def write_shard(task: ShardTask) -> ShardResult:
    """Tokenizes, packs and writes the documents of one shard.

    A record is int32: the index of the document (with `cross_documents`, of the shard's
    first one), `[CLS]`, the tokens of the piece, `[SEP]`.

    Raises:
        ValueError: if a token id is not in [0, vocabulary_size).
        OSError: if the file cannot be written.
    """
    settings = task.settings
    ids, lengths = _concatenated(task)
    outside = (ids < 0) | (ids >= settings.vocabulary_size)
    if outside.any():
        raise ValueError(
            "`tokenizer` must give ids from 0 to vocabulary_size - 1 = "
            f"{settings.vocabulary_size - 1}. Received: {ids[outside.argmax()]}"
        )
    counts = np.bincount(ids, minlength=settings.vocabulary_size)
    num_empty = int(np.sum(lengths == 0))
    if settings.cross_documents:
        ids, lengths = join_documents(ids, lengths, settings.sep_token_id)
    capacity = settings.sequence_length - 2
    pieces = piece_lengths(lengths, capacity)
    documents = task.first_document + piece_documents(lengths, capacity)
    position = 0
    try:
        with tf.io.TFRecordWriter(task.path) as file:
            for first in range(0, len(pieces), _ROWS_AT_ONCE):
                block = pieces[first : first + _ROWS_AT_ONCE]
                rows = frame_pieces(
                    ids[position : position + block.sum()],
                    block,
                    documents[first : first + _ROWS_AT_ONCE],
                    settings.cls_token_id,
                    settings.sep_token_id,
                )
                position += block.sum()
                lengths = block + _FRAME
                for row, length in zip(rows.astype("<i4", copy=False), lengths):
                    file.write(row[:length].tobytes())
    except tf.errors.OpError as error:
        raise OSError(f"{task.path} cannot be written: {error.message}") from error
    shard = WrittenShard(
        file=os.path.basename(task.path),
        num_bytes=os.path.getsize(task.path),
        num_records=len(pieces),
        sha256=sha256(task.path),
        text_hash=text_hash(task.documents),
        first_document=task.first_document,
        num_documents=len(task.documents),
        num_empty=num_empty,
    )
    return ShardResult(shard, counts, (pieces + _FRAME).astype(np.uint32))


def _concatenated(task: ShardTask) -> tuple[np.ndarray, np.ndarray]:
    """Returns the concatenated ids [S] int32 and the documents' lengths [N]."""
    processor, arrays = task.settings.processor, task.ids
    if processor is not None:
        arrays = processor.encode(task.documents, return_type="numpy", num_threads=1)
    lengths = np.array([len(ids) for ids in arrays], np.int64)
    return np.concatenate(arrays).astype(np.int32, copy=False), lengths
