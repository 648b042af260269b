"""A cache of token ids, opened for training."""

import os

import keras_hub
import tensorflow as tf

from tfeff.checks import check_integer
from tfeff.data.checks import check_path
from tfeff.data.manifest import Manifest
from tfeff.data.masking import mask_tokens, num_masks
from tfeff.data.records import raw_records
from tfeff.data.tokenizers import tokenizer_fingerprint


class Cache:
    """Sequences of token ids on disk; made by `build_cache` and `open_cache`.

    Attributes:
        directory: the folder, as an absolute path.
        sequence_length: T, tokens in a full sequence, with `[CLS]` and `[SEP]`.
        num_sequences: sequences in all.
        num_tokens: tokens of the text, without `[CLS]` and `[SEP]`.
        vocabulary_size: every id is below it.
        tokenizer_hash: the `tokenizer_fingerprint` of the tokenizer.
        corpus_hash: SHA-256 of the documents.
    """

    def __init__(self, directory: str, manifest: Manifest):
        self.directory = directory
        self.sequence_length = manifest.sequence_length
        self.num_sequences = manifest.num_sequences
        self.num_tokens = manifest.num_tokens
        self.vocabulary_size = manifest.vocabulary_size
        self.tokenizer_hash = manifest.tokenizer_hash
        self.corpus_hash = manifest.corpus_hash
        self._manifest = manifest

    def __repr__(self) -> str:
        return (
            f"Cache({self.directory!r}, sequence_length={self.sequence_length}, "
            f"num_sequences={self.num_sequences}, num_tokens={self.num_tokens})"
        )

    def unigram_entropy(self) -> float:
        """Entropy of the distribution of single tokens, −Σ p log p, in nats.

        p is the relative frequency of each id in the text; special tokens do not
        count. A model that knows the frequencies and no context has this loss.
        """
        return self._manifest.unigram_entropy

    def masked_lm(
        self,
        batch_size: int,
        seed: int = 0,
        *,
        mask_rate: float = 0.15,
        shuffle: bool = True,
        repeat: bool = True,
        skip_batches: int = 0,
    ) -> tf.data.Dataset:
        """Batches for masked language modelling, masked as they are read.

        Everything is a function of `seed` alone: the order of `(seed, epoch)`, the
        masks of `(seed, epoch, place in the epoch)`. So a run that stopped after n
        batches goes on exactly with `skip_batches=n`; other seeds in the program
        change nothing. Each epoch has a new order and new masks. Epochs follow one
        another without a gap: a batch may hold the end of one and the start of the
        next.

        Shuffling permutes the files, reads 16 of them in turn, and permutes within
        windows of 16,384 sequences (at most 32 MB at T = 512); up to that size it
        is a full permutation.

        Args:
            batch_size: B, sequences in a batch.
            seed: chooses order and masks, in [−2⁶³, 2⁶³).
            mask_rate: the share of tokens to predict, in (0, 1]; see `mask_tokens`.
            shuffle: False gives the order of the documents.
            repeat: False gives one epoch, whose last batch is filled up with rows
                of padding without weight.
            skip_batches: batches to leave out at the start. Whole epochs cost
                nothing; the rest is read, but neither decoded nor masked.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, weights)` with static shapes.
            `inputs` is a dictionary of int32: `token_ids`, `segment_ids` (zeros) and
            `padding_mask` (1 = real), each [B, T], and `mask_positions` [B, M], with
            M = max(1, round(mask_rate · (T − 2))). `labels` [B, M] int32 are the
            original tokens, `weights` [B, M] float32 are 1 where there is one.

        Raises:
            ValueError: if an argument is out of range, or `skip_batches` is more
                than there are without `repeat`.
            TypeError: if an argument has the wrong type.

        Example: see `build_cache`.
        """
        check_integer("batch_size", batch_size, 1)
        check_integer("seed", seed, -(2**63), 2**63 - 1)
        check_integer("skip_batches", skip_batches, 0)
        max_masks = num_masks(self.sequence_length, mask_rate)
        num_batches = -(-self.num_sequences // batch_size)
        if not repeat and skip_batches > num_batches:
            raise ValueError(
                f"`skip_batches` must be at most the {num_batches} batches of the one "
                f"epoch. Received: {skip_batches=}"
            )

        shards = self._manifest.shards
        records = raw_records(
            [os.path.join(self.directory, shard.file) for shard in shards],
            self.num_sequences,
            seed=seed if shuffle else None,
            first=skip_batches * batch_size,
            repeat=repeat,
            multiple=batch_size,
        )

        def example(index: tf.Tensor, batch: tf.Tensor) -> tuple:
            ids, padding_mask = self._decode(batch)
            ids, positions, labels, weights = mask_tokens(
                ids,
                seed,
                index * batch_size,
                vocabulary_size=self.vocabulary_size,
                mask_token_id=self._manifest.mask_token_id,
                special_token_ids=self._manifest.special_token_ids,
                max_masks=max_masks,
                mask_rate=mask_rate,
            )
            inputs = {
                "token_ids": ids,
                "segment_ids": tf.zeros_like(ids),
                "padding_mask": padding_mask,
                "mask_positions": positions,
            }
            return inputs, labels, weights

        dataset = records.batch(batch_size, drop_remainder=True)
        dataset = dataset.enumerate(skip_batches)
        dataset = dataset.map(example, num_parallel_calls=tf.data.AUTOTUNE)
        cardinality = (
            tf.data.INFINITE_CARDINALITY if repeat else num_batches - skip_batches
        )
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
        options = tf.data.Options()
        options.deterministic = True
        # Workers of a distributed run take batches in turn; by files they would
        # see different numbers of them.
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.DATA
        )
        return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)

    def _decode(self, records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Records [B] to ids and padding mask, both [B, T] int32."""
        lengths = tf.strings.length(records) // 4
        mask = tf.range(self.sequence_length) < lengths[:, None]
        ids = tf.io.decode_raw(records, tf.int32, fixed_length=4 * self.sequence_length)
        ids = tf.ensure_shape(ids, [records.shape[0], self.sequence_length])
        ids = tf.where(mask, ids, self._manifest.pad_token_id)
        return ids, tf.cast(mask, tf.int32)


def open_cache(
    directory: str | os.PathLike,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    verify: bool = True,
) -> Cache:
    """Opens a cache that `build_cache` made.

    Args:
        directory: its folder, which may have been moved.
        tokenizer: if given, must be the one that the cache was made with.
        verify: compare the checksums of all files, which reads them; False
            compares their sizes alone.

    Returns:
        The cache.

    Raises:
        ValueError: if the folder is not a cache, a file is missing or damaged (the
            message names it), or the tokenizer is another one.
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
    manifest = Manifest.read(directory)
    if tokenizer is not None:
        fingerprint = tokenizer_fingerprint(tokenizer)
        if fingerprint != manifest.tokenizer_hash:
            raise ValueError(
                "`tokenizer` must be the one that the cache was made with. Received: "
                f"a tokenizer with hash {fingerprint}, while the cache {directory} "
                f"has {manifest.tokenizer_hash}"
            )
    manifest.verify(directory, checksums=verify)
    return Cache(directory, manifest)
