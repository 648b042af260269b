"""Building of a cache: documents and a tokenizer to token ids on disk."""

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import closing

import keras_hub
import numpy as np
import sentencepiece
import tensorflow as tf

from tfeff.data.cache.cache import Cache, open_cache
from tfeff.data.cache.manifest import LENGTHS, Manifest, Shard
from tfeff.data.cache.shards import ShardResult, ShardSettings, ShardTask, write_shard
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.documents import check_documents, encoded
from tfeff.data.text.tokenizers import restore_kernels, tokenizer_fingerprint
from tfeff.storage.arguments import written_or_reused
from tfeff.utils.checks import check_integer, check_path, is_url
from tfeff.utils.digests import sha256
from tfeff.utils.files import atomic_folder
from tfeff.utils.parallel import ordered_thread_map
from tfeff.utils.progress import ProgressReport

# Bytes of text in a shard. They double every `_SHARDS_OF_A_SIZE` shards, so that a
# small corpus keeps every core busy and a large one does not have too many files.
_FIRST_SHARD_BYTES = 1 << 20
_LARGEST_SHARD_BYTES = 1 << 24
_SHARDS_OF_A_SIZE = 64
_DOCUMENTS_IN_A_CALL = 256
_SPECIAL_NAMES = ("pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id")


def build_cache(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    directory: str | os.PathLike,
    sequence_length: int = 512,
    cross_documents: bool = False,
    num_threads: int | None = None,
    progress: bool = True,
) -> Cache:
    """Tokenizes documents once, for any number of runs.

    Each document is cut into pieces of `sequence_length - 2` tokens, the last one
    shorter, and each piece is stored as `[CLS] piece [SEP]`: no token is lost, and
    no sequence holds two documents. With `cross_documents`, the documents of a
    shard are first joined by `[SEP]`, so that nearly every sequence is full.

    The cache is a folder of TFRecord files, written by parallel threads, the lengths of
    their records, and a `manifest.json`; each sequence is stored with the index of its
    document. The content does not depend on the number of threads. It is written under
    a temporary name beside `directory` and renamed when it is complete. If `directory`
    already holds the cache of the same documents, tokenizer and settings, that cache is
    verified and returned.

    Args:
        documents: the corpus, an iterable of `str` that can be read more than once.
        tokenizer: a KerasHub tokenizer with `[CLS]`, `[SEP]`, padding and mask
            tokens. One from `train_tokenizer` runs in the threads; any other is
            called in this thread.
        directory: the folder to create. At a URL, it is built on this machine, then
            uploaded with a manifest.
        sequence_length: T, tokens in a full sequence, at least 3.
        cross_documents: whether a sequence may hold several documents.
        num_threads: number of writing threads; by default one per core.
        progress: whether to report on standard error.

    Returns:
        The opened cache.

    Raises:
        ValueError: if `directory` exists and is not the same cache (it stays
            unchanged); if the documents hold no token, or text that UTF-8 cannot
            encode; if the tokenizer pads or truncates, or gives ids outside its
            vocabulary.
        TypeError: if an argument has the wrong type, or `documents` cannot be read
            more than once.
        OSError: if a file cannot be written; no partial cache remains.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", sequence_length=16)
    batches = cache.batches(tfeff.data.MaskedTokens(), batch_size=8)
    inputs, labels, weights = next(iter(batches))
    ```
    """
    check_documents(documents)
    sequence_length = check_integer("sequence_length", sequence_length, 3)
    if not isinstance(cross_documents, bool):
        raise TypeError(
            f"`cross_documents` must be True or False. Received: {cross_documents=}"
        )
    if num_threads is not None:
        num_threads = check_integer("num_threads", num_threads, 1)
    if is_url(directory):
        with written_or_reused("directory", str(directory)) as local:
            build_cache(
                documents,
                tokenizer,
                local,
                sequence_length,
                cross_documents,
                num_threads,
                progress,
            )
        return open_cache(directory, tokenizer)
    directory = os.path.abspath(check_path("directory", directory))
    special = _special_token_ids(tokenizer)
    wanted = {
        "sequence_length": sequence_length,
        "cross_documents": cross_documents,
        "tokenizer_hash": tokenizer_fingerprint(tokenizer),
        "vocabulary_size": tokenizer.vocabulary_size(),
        **special,
    }
    if os.path.lexists(directory):
        return _reuse(directory, documents, tokenizer, wanted)

    try:
        with atomic_folder(directory) as unfinished:
            os.mkdir(unfinished)
            with ProgressReport(
                "Tokenizing",
                "documents",
                len(documents) if isinstance(documents, Sized) else None,
                progress,
            ) as report:
                _fill(unfinished, documents, tokenizer, wanted, num_threads, report)
    except OSError:
        if not os.path.lexists(directory):
            raise
        # Another run has built it in the meantime.
        return _reuse(directory, documents, tokenizer, wanted)
    return open_cache(directory, verify=False)


def _special_token_ids(tokenizer: keras_hub.tokenizers.Tokenizer) -> dict[str, int]:
    missing = [
        name for name in _SPECIAL_NAMES if getattr(tokenizer, name, None) is None
    ]
    if missing:
        raise TypeError(
            f"`tokenizer` must be a KerasHub tokenizer with {_SPECIAL_NAMES}. "
            f"Received: tokenizer of type {type(tokenizer).__name__} without {missing}"
        )
    if getattr(tokenizer, "sequence_length", None) is not None:
        raise ValueError(
            "`tokenizer` must neither pad nor truncate. Received: tokenizer with "
            f"sequence_length={tokenizer.sequence_length}"
        )
    return {name: int(getattr(tokenizer, name)) for name in _SPECIAL_NAMES}


def _reuse(
    directory: str,
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    wanted: dict,
) -> Cache:
    """Opens an existing cache if it is the wanted one."""
    manifest = Manifest.read(directory)
    differences = [
        f"{key} is {getattr(manifest, key)}, not {value}"
        for key, value in wanted.items()
        if getattr(manifest, key) != value
    ]
    if not differences:
        corpus_hash = _CorpusHash()
        for _, data in encoded(documents):
            corpus_hash.update(data)
        if manifest.corpus_hash != corpus_hash.hexdigest():
            text = (
                f"corpus_hash is {manifest.corpus_hash}, not {corpus_hash.hexdigest()}"
            )
            differences = [f"{text} (the documents differ)"]
    if differences:
        raise ValueError(
            "`directory` must be new, or hold the cache of these documents, tokenizer "
            f"and settings. Received: {directory!r}, where {'; '.join(differences)}. "
            "Choose another directory, or delete this one."
        )
    return open_cache(directory, tokenizer)


class _CorpusHash:
    """SHA-256 of documents: of each document's length in bytes and its bytes."""

    def __init__(self):
        self._hash = hashlib.sha256()

    def update(self, text: bytes) -> None:
        self._hash.update(len(text).to_bytes(8, "little"))
        self._hash.update(text)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _fill(
    directory: str,
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    wanted: dict,
    num_threads: int | None,
    report: ProgressReport,
) -> None:
    """Writes the shards and the manifest."""
    special = [wanted[name] for name in _SPECIAL_NAMES]
    names = {field.name for field in dataclasses.fields(ShardSettings)} - {"processor"}
    settings = ShardSettings(
        processor=_processor(tokenizer), **{name: wanted[name] for name in names}
    )
    corpus_hash = _CorpusHash()
    encode = _graph(tokenizer)

    def tasks() -> Iterator[ShardTask]:
        first_document = 0
        chunk: list
        for index, chunk in enumerate(_chunks(documents, corpus_hash)):
            count = len(chunk)
            if settings.processor is None:
                restore_kernels(tokenizer)
                chunk = _encode(encode, chunk)
            path = os.path.join(directory, f"shard-{index:05d}.tfrecord")
            yield ShardTask(path, chunk, first_document, settings)
            first_document += count

    results: list[ShardResult] = []
    # Closing waits for the threads, so that none writes after this function returns.
    with closing(ordered_thread_map(write_shard, tasks(), num_threads)) as written:
        for result in written:
            report.advance(result.num_documents)
            results.append(result)
    num_sequences = sum(result.num_records for result in results)
    if num_sequences == 0:
        count = sum(result.num_documents for result in results)
        few = "" if count else " (a small share of few documents may be empty)"
        raise ValueError(
            f"`documents` must hold text. Received: {count} documents without a "
            f"token{few}"
        )
    counts = np.sum([result.token_counts for result in results], axis=0)
    lengths = os.path.join(directory, LENGTHS)
    np.save(lengths, np.concatenate([result.lengths for result in results]))
    Manifest(
        **wanted,
        corpus_hash=corpus_hash.hexdigest(),
        num_documents=sum(r.num_documents - r.num_empty for r in results),
        num_sequences=num_sequences,
        num_tokens=int(counts.sum()),
        unigram_entropy=_entropy(counts, special),
        shards=[
            Shard(r.file, r.num_bytes, r.num_records, r.sha256)
            for r in results
            if r.num_records
        ],
        lengths_sha256=sha256(lengths),
    ).write(directory)


def _chunks(documents: Iterable[str], corpus_hash: _CorpusHash) -> Iterator[list[str]]:
    """Groups documents into shards and hashes them."""
    chunk, size, index = [], 0, 0
    for document, text in encoded(documents):
        corpus_hash.update(text)
        chunk.append(document)
        size += len(text)
        target = _FIRST_SHARD_BYTES << (index // _SHARDS_OF_A_SIZE)
        if size >= min(target, _LARGEST_SHARD_BYTES):
            yield chunk
            chunk, size, index = [], 0, index + 1
    if chunk:
        yield chunk


def _processor(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> sentencepiece.SentencePieceProcessor | None:
    """The SentencePiece processor, if its ids are the tokenizer's output."""
    plain = type(tokenizer) is keras_hub.tokenizers.AlbertTokenizer
    if plain and not (tokenizer.add_bos or tokenizer.add_eos):
        return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    return None


def _graph(tokenizer: keras_hub.tokenizers.Tokenizer) -> Callable:
    """The tokenizer; BERT's as a graph, where it is several times as fast."""
    if not isinstance(tokenizer, BertTokenizer):
        return tokenizer
    return tf.function(
        lambda texts: tokenizer(texts),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )


def _encode(tokenizer: Callable, documents: list[str]) -> list[np.ndarray]:
    arrays = []
    for start in range(0, len(documents), _DOCUMENTS_IN_A_CALL):
        ids = tokenizer(documents[start : start + _DOCUMENTS_IN_A_CALL])
        # KerasHub's tokenizers return ragged tensors or lists.
        rows = ids.to_list() if isinstance(ids, tf.RaggedTensor) else ids
        arrays += [np.asarray(row, np.int32) for row in rows]
    return arrays


def _entropy(counts: np.ndarray, special_token_ids: list[int]) -> float:
    """Entropy in nats of the distribution of the tokens that are not special."""
    counts = np.delete(counts, special_token_ids)
    p = counts[counts > 0] / counts.sum()
    return float(-np.sum(p * np.log(p)))
