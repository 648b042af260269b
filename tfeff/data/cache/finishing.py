"""The end of a cache's building: lengths and manifest of the written shards."""

import os
from collections.abc import Sequence

import numpy as np

from tfeff.data.cache.layout import corpus_hash
from tfeff.data.cache.manifest import LENGTHS, Manifest, Shard
from tfeff.data.cache.shards import WrittenShard
from tfeff.data.text.tokenizers import SPECIAL_NAMES
from tfeff.utils.digests import sha256


class NoText(ValueError):
    """The documents have no token."""


def finish(
    directory: str,
    wanted: dict,
    shards: Sequence[WrittenShard],
    token_counts: np.ndarray | int,
    lengths: Sequence[np.ndarray],
) -> None:
    """Writes what a cache has beside its shards, the manifest last.

    Args:
        directory: the folder with the shards.
        wanted: the settings that the manifest has.
        shards: all of them, in order.
        token_counts: the counts of their tokens [V].
        lengths: of each shard, those of its records.

    Raises:
        NoText: if the documents have no token.
    """
    num_sequences = sum(shard.num_records for shard in shards)
    if num_sequences == 0:
        count = sum(shard.num_documents for shard in shards)
        few = "" if count else " (a small share of few documents may be empty)"
        raise NoText(
            f"`documents` must hold text. Received: {count} documents without a "
            f"token{few}"
        )
    path = os.path.join(directory, LENGTHS)
    np.save(path, np.concatenate(lengths))
    Manifest(
        **wanted,
        corpus_hash=corpus_hash(shard.text_hash for shard in shards),
        num_documents=sum(s.num_documents - s.num_empty for s in shards),
        num_sequences=num_sequences,
        num_tokens=int(np.sum(token_counts)),
        unigram_entropy=_entropy(
            np.asarray(token_counts), [wanted[name] for name in SPECIAL_NAMES]
        ),
        shards=[
            Shard(s.file, s.num_bytes, s.num_records, s.sha256)
            for s in shards
            if s.num_records
        ],
        lengths_sha256=sha256(path),
    ).write(directory)


def _entropy(counts: np.ndarray, special_token_ids: list[int]) -> float:
    """Entropy in nats of the distribution of the tokens that are not special."""
    counts = np.delete(counts, special_token_ids)
    p = counts[counts > 0] / counts.sum()
    return float(-np.sum(p * np.log(p)))
