"""Writing of one shard of a cache, a TFRecord file. It runs in threads."""

import dataclasses
import os
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfeff.data.cache.chunking import (
    frame_pieces,
    join_documents,
    piece_documents,
    piece_lengths,
)
from tfeff.data.cache.layout import text_hash
from tfeff.utils.digests import sha256

_ROWS_AT_ONCE = 4096  # bounds memory when documents are many and short
_FRAME = 3  # words of a record around its piece: document, [CLS] and [SEP]


@dataclasses.dataclass(frozen=True)
class ShardTask:
    """The documents of one shard."""

    path: str
    documents: list[str]
    first_document: int  # index of the first one in the corpus
    wanted: dict  # the settings of the cache
    ids: Callable[[], list[np.ndarray]]  # those of each document


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
    wanted, arrays = task.wanted, task.ids()
    lengths = np.array([len(ids) for ids in arrays], np.int64)
    ids = np.concatenate(arrays).astype(np.int32, copy=False)
    size = wanted["vocabulary_size"]
    outside = (ids < 0) | (ids >= size)
    if outside.any():
        raise ValueError(
            f"`tokenizer` must give ids from 0 to vocabulary_size - 1 = {size - 1}. "
            f"Received: {ids[outside.argmax()]}"
        )
    counts = np.bincount(ids, minlength=size)
    num_empty = int(np.sum(lengths == 0))
    if wanted["cross_documents"]:
        ids, lengths = join_documents(ids, lengths, wanted["sep_token_id"])
    capacity = wanted["sequence_length"] - 2
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
                    wanted["cls_token_id"],
                    wanted["sep_token_id"],
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
