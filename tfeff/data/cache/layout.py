"""Which documents of a corpus are in which shard, and the hash of them all.

Both follow from the documents and their order alone, so that every builder of a cache
gives the same one. The shard of a document depends on the bytes of text before it: a
worker that knows how many come before its part of the corpus needs no other part.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator

from tfeff.data.text.documents import encoded


@dataclasses.dataclass(frozen=True)
class ShardSizes:
    """Bytes of text in the shards.

    They double every `shards_of_a_size` shards, so that a small corpus keeps every core
    busy and a large one does not have too many files.
    """

    first: int = 1 << 20
    largest: int = 1 << 24
    shards_of_a_size: int = 64

    def shard_of(self, offset: int) -> int:
        """The shard of a document that has so many bytes of text before it.

        A document is whole in its shard. One that is longer than a shard leaves the
        next ones without documents; there are no such shards.
        """
        shard, size = 0, self.first
        while size < self.largest and offset >= size * self.shards_of_a_size:
            offset -= size * self.shards_of_a_size
            shard += self.shards_of_a_size
            size = min(2 * size, self.largest)
        return shard + offset // size


SIZES = ShardSizes()


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive documents of one shard."""

    shard: int
    first_document: int  # index of the first one in the corpus
    documents: list[str]
    num_bytes: int


def shard_file(shard: int) -> str:
    """The name of a shard's file."""
    return f"shard-{shard:05d}.tfrecord"


def chunks(
    documents: Iterable[str],
    sizes: ShardSizes,
    first_document: int = 0,
    offset: int = 0,
) -> Iterator[Chunk]:
    """Groups documents into shards.

    Args:
        documents: the corpus, or a part of it.
        sizes: the sizes of the shards.
        first_document: number of documents of the corpus before these.
        offset: bytes of text before these.
    """
    documents_of_shard: list[str] = []
    shard, start = sizes.shard_of(offset), offset
    for document, text in encoded(documents):
        if documents_of_shard and (there := sizes.shard_of(offset)) != shard:
            yield Chunk(shard, first_document, documents_of_shard, offset - start)
            first_document += len(documents_of_shard)
            documents_of_shard, shard, start = [], there, offset
        documents_of_shard.append(document)
        offset += len(text)
    if documents_of_shard:
        yield Chunk(shard, first_document, documents_of_shard, offset - start)


def text_hash(documents: Iterable[str]) -> str:
    """SHA-256 of documents: of each document's length in bytes and its bytes."""
    digest = hashlib.sha256()
    for _, text in encoded(documents):
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return digest.hexdigest()


def corpus_hash(text_hashes: Iterable[str]) -> str:
    """SHA-256 of the documents of a corpus: of its shards' `text_hash`, in order."""
    digest = hashlib.sha256()
    for text in text_hashes:
        digest.update(bytes.fromhex(text))
    return digest.hexdigest()
