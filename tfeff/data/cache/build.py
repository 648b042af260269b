"""Building of a cache: documents and a tokenizer to token ids on disk."""

import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import closing

import keras_hub
import numpy as np

from tfeff.data.cache import layout
from tfeff.data.cache.beam_pipeline import CachePipeline
from tfeff.data.cache.cache import Cache, open_cache
from tfeff.data.cache.finishing import finish
from tfeff.data.cache.layout import chunks, corpus_hash, shard_file, text_hash
from tfeff.data.cache.manifest import FILE_NAME, Manifest
from tfeff.data.cache.shards import ShardTask, WrittenShard, write_shard
from tfeff.data.cache.tokenization import Tokenization
from tfeff.data.text.documents import check_documents
from tfeff.data.text.tokenizers import special_token_ids, tokenizer_fingerprint
from tfeff.storage.arguments import written_or_reused
from tfeff.storage.fetching import fetch_folder
from tfeff.storage.local import local_of
from tfeff.storage.manifest import read_manifest
from tfeff.storage.place import Place
from tfeff.storage.publishing import check_publishable
from tfeff.utils.checks import check_bool, check_integer
from tfeff.utils.files import atomic_folder
from tfeff.utils.parallel import ordered_thread_map
from tfeff.utils.paths import check_path, is_url
from tfeff.utils.progress import ProgressReport


def build_cache(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    directory: str | os.PathLike,
    sequence_length: int = 512,
    cross_documents: bool = False,
    num_threads: int | None = None,
    progress: bool = True,
    beam_flags: Sequence[str] | None = None,
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

    With `beam_flags`, an Apache Beam pipeline writes the same files: its workers read
    the parts of the corpus, which are its files, and tokenize, pack and write the
    shards. They must see the corpus and `directory` under the same paths or URLs as
    this process. At a URL, they upload the shards, which are downloaded when the cache
    is first read.

    Args:
        documents: the corpus, an iterable of `str` that can be read more than once.
        tokenizer: a KerasHub tokenizer with `[CLS]`, `[SEP]`, padding and mask
            tokens. One from `train_tokenizer` runs in the threads; any other is
            called in this thread.
        directory: the folder to create. At a URL, it is built on this machine, then
            uploaded with a manifest; or by Beam's workers.
        sequence_length: T, tokens in a full sequence, at least 3.
        cross_documents: whether a sequence may hold several documents.
        num_threads: number of writing threads; by default one per core.
        progress: whether to report on standard error.
        beam_flags: flags of Beam's pipeline options, such as
            `["--runner=DirectRunner", "--direct_num_workers=4"]`; None builds the cache
            in this process. Needs `pip install 'tfeff[beam]'`.

    Returns:
        The opened cache.

    Raises:
        ValueError: if `directory` exists and is not the same cache (it stays
            unchanged); if the documents hold no token, or text that UTF-8 cannot
            encode; if the tokenizer pads, truncates, adds marks by itself, or gives
            strings or ids outside its vocabulary; if Beam does not know a flag or the
            runner, or both `beam_flags` and `num_threads` are given.
        TypeError: if an argument has the wrong type, or `documents` cannot be read
            more than once, or not by Beam's workers.
        ImportError: if Beam, or what its runner needs, is not installed.
        OSError: if a file cannot be written, or the pipeline fails; no partial cache
            remains.

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
    check_bool("cross_documents", cross_documents)
    check_bool("progress", progress)
    if num_threads is not None:
        num_threads = check_integer("num_threads", num_threads, 1)
        if beam_flags is not None:
            raise ValueError(
                "`num_threads` must be left out with `beam_flags`: the runner's own "
                f"flags set the number of its workers. Received: {num_threads=}"
            )
    where = str(directory) if is_url(directory) else check_path("directory", directory)
    where = local_of(where) or where
    if is_url(where) and beam_flags is None:
        with written_or_reused("directory", where) as local:
            build_cache(
                documents,
                tokenizer,
                local,
                sequence_length,
                cross_documents,
                num_threads,
                progress,
            )
        return open_cache(where, tokenizer)
    pipeline = None if beam_flags is None else CachePipeline(documents, beam_flags)
    special = special_token_ids(tokenizer)
    wanted = {
        "sequence_length": sequence_length,
        "cross_documents": cross_documents,
        "tokenizer_hash": tokenizer_fingerprint(tokenizer),
        "vocabulary_size": tokenizer.vocabulary_size(),
        **special,
    }
    if is_url(where) and pipeline is not None:
        return _build_at(where, documents, tokenizer, wanted, pipeline)
    directory = os.path.abspath(where)
    if os.path.lexists(directory):
        return _reuse(directory, documents, tokenizer, wanted, pipeline)

    try:
        with atomic_folder(directory) as unfinished:
            os.mkdir(unfinished)
            if pipeline is not None:
                pipeline.fill(unfinished, tokenizer, wanted)
            else:
                length = len(documents) if isinstance(documents, Sized) else None
                with ProgressReport(
                    "Tokenizing", "documents", length, progress
                ) as report:
                    _fill(unfinished, documents, tokenizer, wanted, num_threads, report)
    except OSError:
        if not os.path.lexists(directory):
            raise
        # Another run has built it in the meantime.
        return _reuse(directory, documents, tokenizer, wanted, pipeline)
    return open_cache(directory, verify=False)


def _build_at(
    url: str,
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    wanted: dict,
    pipeline: CachePipeline,
) -> Cache:
    """Has workers write a cache to a URL, unless it is there already."""
    place = Place("directory", url)
    if read_manifest(place) is None:
        check_publishable(place)
        try:
            pipeline.publish(place, tokenizer, wanted)
            return Cache(url, Manifest.read(_manifest_folder(url)))
        except OSError:
            if read_manifest(place) is None:
                raise
            # Another process has built it in the meantime.
    manifest = Manifest.read(_manifest_folder(url))
    _check_same(url, documents, wanted, manifest, pipeline)
    return Cache(url, manifest)


def _manifest_folder(url: str) -> str:
    """A copy of what a cache at a URL has beside its records."""
    return fetch_folder("directory", url, whole=True, select=lambda names: [FILE_NAME])


def _reuse(
    directory: str,
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    wanted: dict,
    pipeline: CachePipeline | None,
) -> Cache:
    """Opens an existing cache if it is the wanted one."""
    _check_same(directory, documents, wanted, Manifest.read(directory), pipeline)
    return open_cache(directory, tokenizer)


def _check_same(
    directory: str,
    documents: Iterable[str],
    wanted: dict,
    manifest: Manifest,
    pipeline: CachePipeline | None,
) -> None:
    """Raises unless the cache of a manifest is the wanted one."""
    differences = [
        f"{key} is {getattr(manifest, key)}, not {value}"
        for key, value in wanted.items()
        if getattr(manifest, key) != value
    ]
    if not differences:
        found = _corpus_hash(directory, documents, pipeline)
        if manifest.corpus_hash != found:
            text = f"corpus_hash is {manifest.corpus_hash}, not {found}"
            differences = [f"{text} (the documents differ)"]
    if differences:
        raise ValueError(
            "`directory` must be new, or hold the cache of these documents, tokenizer "
            f"and settings. Received: {directory!r}, where {'; '.join(differences)}. "
            "Choose another directory, or delete this one."
        )


def _corpus_hash(
    directory: str,
    documents: Iterable[str],
    pipeline: CachePipeline | None,
) -> str:
    """The documents' hash, as of a cache of them."""
    if pipeline is not None:
        return pipeline.corpus_hash(directory)
    parts = chunks(documents, layout.SIZES)
    return corpus_hash(text_hash(chunk.documents) for chunk in parts)


def _fill(
    directory: str,
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    wanted: dict,
    num_threads: int | None,
    report: ProgressReport,
) -> None:
    """Writes the shards and the manifest."""
    tokenization = Tokenization(tokenizer)

    def tasks() -> Iterator[ShardTask]:
        for chunk in chunks(documents, layout.SIZES):
            yield ShardTask(
                os.path.join(directory, shard_file(chunk.shard)),
                chunk.documents,
                chunk.first_document,
                wanted,
                tokenization.ids(chunk.documents),
            )

    shards: list[WrittenShard] = []
    lengths: list[np.ndarray] = []
    token_counts: np.ndarray | int = 0
    # Closing waits for the threads, so that none writes after this function returns.
    with closing(ordered_thread_map(write_shard, tasks(), num_threads)) as written:
        for result in written:
            report.advance(result.shard.num_documents)
            shards.append(result.shard)
            lengths.append(result.lengths)
            token_counts = token_counts + result.token_counts
    finish(directory, wanted, shards, token_counts, lengths)
