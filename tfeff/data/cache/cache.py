"""A cache of token ids, opened for training."""

import contextlib
import functools
import os
from collections.abc import Iterator

import keras_hub
import tensorflow as tf

from tfeff.data.cache.batches import Examples, another_document, decode
from tfeff.data.cache.manifest import DAMAGED, Manifest
from tfeff.data.cache.parts import part_records
from tfeff.data.cache.record_reader import RecordReader
from tfeff.data.dataset_options import finalize
from tfeff.data.sampling import check_stateless_seed
from tfeff.data.text.tokenizers import tokenizer_fingerprint
from tfeff.storage.arguments import READ_WHOLE, paths
from tfeff.storage.local import local_path
from tfeff.utils.checks import check_bool, check_integer
from tfeff.utils.paths import check_path


class Cache:
    """Sequences of token ids on disk; made by `build_cache` and `open_cache`.

    The batches depend on `seed` alone: their order on `(seed, epoch)`; masks,
    permutations and pairs on `(seed, epoch, index in the epoch)`. A run that stopped
    after n batches therefore resumes exactly with `skip_batches=n`, and other seeds in
    the program have no effect. Each epoch has a new order and new masks. A batch may
    span the end of one epoch and the start of the next.

    Shuffling permutes the files, interleaves 16 of them, and permutes within windows of
    16,384 sequences (at most 32 MB at T = 512). A cache up to that size is fully
    permuted.

    Attributes:
        directory: the folder, as an absolute path. Of a cache that Beam's workers wrote
            to a URL it is a copy, which is downloaded when it is first needed.
        sequence_length: T, tokens in a full sequence, with `[CLS]` and `[SEP]`.
        cross_documents: whether a sequence may hold several documents.
        num_sequences: sequences in all.
        num_tokens: tokens of the text, without `[CLS]` and `[SEP]`.
        vocabulary_size: number of ids; every id is below it.
        tokenizer_hash: the `tokenizer_fingerprint` of the tokenizer.
        corpus_hash: SHA-256 of the documents.

    Args:
        directory: the folder, or a URL.
        manifest: what its `manifest.json` says.

    Example: see `build_cache`.
    """

    # How batches of `x` are made.
    batches_by = "x.batches(examples, batch_size=16)"

    def __init__(self, directory: str, manifest: Manifest):
        self._place = directory
        self.sequence_length = manifest.sequence_length
        self.cross_documents = manifest.cross_documents
        self.num_sequences = manifest.num_sequences
        self.num_tokens = manifest.num_tokens
        self.vocabulary_size = manifest.vocabulary_size
        self.tokenizer_hash = manifest.tokenizer_hash
        self.corpus_hash = manifest.corpus_hash
        self._manifest = manifest

    @functools.cached_property
    def directory(self) -> str:
        return local_path("directory", self._place, whole=True)

    def __repr__(self) -> str:
        return (
            f"Cache({self._place!r}, sequence_length={self.sequence_length}, "
            f"num_sequences={self.num_sequences}, num_tokens={self.num_tokens})"
        )

    def unigram_entropy(self) -> float:
        """Entropy of the distribution of single tokens, −Σ p log p, in nats.

        p is the relative frequency of each id in the text; special tokens are not
        counted. A model that knows the frequencies and no context has this loss.
        """
        return self._manifest.unigram_entropy

    def batches(
        self,
        examples: Examples,
        batch_size: int,
        seed: int = 0,
        *,
        tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
        shuffle: bool = True,
        repeat: bool = True,
        skip_batches: int = 0,
        input_context: tf.distribute.InputContext | None = None,
    ) -> tf.data.Dataset:
        """Batches of the examples of an objective, computed while they are read.

        Args:
            examples: the objective's examples: `MaskedTokens`, `PermutedTokens`,
                `SentencePairs`, or another implementation of `Examples`.
            batch_size: B, sequences in a batch.
            seed: integer in [−2⁶³, 2⁶³), which determines the order of the examples,
                and their masks, permutations and pairs.
            tokenizer: the cache's tokenizer, for examples that need the starts of
                words.
            shuffle: False gives the order of the documents.
            repeat: False gives one epoch, whose last batch is filled up with rows of
                padding of weight 0. It begins again, with the same masks, where it is
                read again: for several epochs, give `fit` an endless data set and
                `steps_per_epoch`, and a further `fit` another `seed` or `skip_batches`.
            skip_batches: number of batches to skip at the start; they are not read.
            input_context: which of several input pipelines this one is, as
                `tf.distribute.Strategy.distribute_datasets_from_function` tells. The
                pipeline reads, decodes and masks the rows of its own replicas alone:
                of each batch, replica r of R has the rows from r·B/R to (r + 1)·B/R.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, weights)` with static shapes, as
            `examples` describes them; with `input_context`, of a batch of B/R rows for
            each of the pipeline's replicas in turn.

        Raises:
            ValueError: if an argument is out of range, `skip_batches` exceeds the
                number of batches without `repeat`, `tokenizer` is needed and missing or
                not the cache's, `examples` cannot be made of this cache, or
                `batch_size` is not a multiple of the number of replicas.
            TypeError: if an argument has the wrong type.

        Example:
        ```python
        import tfeff

        documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
        tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
        cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
        words = tfeff.data.MaskedTokens(masking="whole_word")
        batches = cache.batches(words, batch_size=8, tokenizer=tokenizer)
        inputs, labels, weights = next(iter(batches))
        assert inputs["token_ids"].shape == (8, 64)
        ```
        """
        if isinstance(examples, type) or not isinstance(examples, Examples):
            raise TypeError(
                "`examples` must be settings such as `MaskedTokens()`, with a method "
                f"`mapping` and `needs_others`. Received: examples={examples!r:.80}"
            )
        batch_size = check_integer("batch_size", batch_size, 1)
        seed = check_stateless_seed(seed)
        shuffle = check_bool("shuffle", shuffle)
        repeat = check_bool("repeat", repeat)
        skip_batches = check_integer("skip_batches", skip_batches, 0)
        manifest = self._manifest
        num_batches = -(-manifest.num_sequences // batch_size)
        if not repeat and skip_batches > num_batches:
            raise ValueError(
                f"`skip_batches` must be at most the epoch's {num_batches} batches. "
                f"Received: {skip_batches=}"
            )
        if tokenizer is not None:
            manifest.check_tokenizer(tokenizer_fingerprint(tokenizer))
        context = input_context
        if context is None:
            context = tf.distribute.InputContext()
        if not isinstance(context, tf.distribute.InputContext):
            raise TypeError(
                "`input_context` must be a `tf.distribute.InputContext` or None. "
                f"Received: input_context={input_context!r}"
            )
        num_replicas = context.num_replicas_in_sync
        if batch_size % num_replicas:
            raise ValueError(
                f"`batch_size` must be a multiple of the {num_replicas} replicas. "
                f"Received: {batch_size=}"
            )
        example = examples.mapping(manifest, seed, tokenizer)
        records = part_records(
            RecordReader(self.directory, manifest),
            [shard.num_records for shard in manifest.shards],
            context,
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            repeat=repeat,
            first_batch=skip_batches,
            needs_others=examples.needs_others,
        )

        def batch_of(first_example: tf.Tensor, batch: tuple) -> tuple:
            if not examples.needs_others:
                return example(first_example, decode(batch, manifest))
            batch, candidates = batch
            others = another_document(batch, candidates, first_example)
            return example(
                first_example, decode(batch, manifest), decode(others, manifest)
            )

        left = tf.data.INFINITE_CARDINALITY
        if not repeat:
            own_replicas = num_replicas // context.num_input_pipelines
            left = (num_batches - skip_batches) * own_replicas
        dataset = records.map(batch_of, num_parallel_calls=tf.data.AUTOTUNE)
        return finalize(dataset.apply(tf.data.experimental.assert_cardinality(left)))


@contextlib.contextmanager
def damage_named(*caches: Cache) -> Iterator[None]:
    """Context manager that names the file of a cache which turns out to be damaged.

    Every record is compared with its checksum when it is read. TensorFlow passes that
    error on among its own; then all files of the caches are verified.

    Args:
        *caches: the caches that are read.

    Returns:
        The context manager.

    Raises:
        ValueError: instead of TensorFlow's `InvalidArgumentError`; it names the file.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    with tfeff.data.damage_named(cache):
        for batch in cache.batches(tfeff.data.MaskedTokens(), 8, repeat=False):
            pass
    ```
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if DAMAGED in error.message:
            for cache in caches:
                cache._manifest.check_unchanged(cache.directory)
                open_cache(cache.directory)
        raise


@paths(directory=READ_WHOLE)
def open_cache(
    directory: str | os.PathLike,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    verify: bool = True,
) -> Cache:
    """Opens a cache that `build_cache` made.

    Args:
        directory: its folder, which may have been moved.
        tokenizer: if given, it must be the one that the cache was built with.
        verify: whether to compare the checksums of all files, which reads them; False
            compares their sizes alone.

    Returns:
        The cache.

    Raises:
        ValueError: if the folder is not a cache, a file is missing or damaged (the
            message names it), or the tokenizer differs.
        OSError: if the system refuses to read a file.
        TypeError: if an argument has the wrong type.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    tfeff.data.build_cache(documents, tokenizer, "cache", sequence_length=64)
    cache = tfeff.data.open_cache("cache", tokenizer)
    assert cache.num_sequences == 100
    ```
    """
    directory = os.path.abspath(check_path("directory", directory))
    check_bool("verify", verify)
    manifest = Manifest.read(directory)
    if tokenizer is not None:
        manifest.check_tokenizer(tokenizer_fingerprint(tokenizer))
    manifest.verify(directory, checksums=verify)
    return Cache(directory, manifest)
