"""A cache of token ids, opened for training."""

import contextlib
import os
from collections.abc import Callable, Iterator

import keras_hub
import tensorflow as tf

from tfeff.data.cache.batches import read_batches
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining import mappings
from tfeff.data.pretraining.sentence_pairs import check_pairs
from tfeff.data.text.tokenizers import tokenizer_fingerprint
from tfeff.utils.checks import check_choice, check_path


class Cache:
    """Sequences of token ids on disk; made by `build_cache` and `open_cache`.

    The batches that its methods give are a function of `seed` alone: the order of
    `(seed, epoch)`; masks, orders and pairs of `(seed, epoch, place in the epoch)`. So
    a run that stopped after n batches goes on exactly with `skip_batches=n`; other
    seeds in the program change nothing. Each epoch has a new order and new masks.
    Epochs follow one another without a gap: a batch may hold the end of one and the
    start of the next.

    Shuffling permutes the files, reads 16 of them in turn, and permutes within windows
    of 16,384 sequences (at most 32 MB at T = 512); up to that size it is a full
    permutation.

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
        masking: str = "token",
        tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        shuffle: bool = True,
        repeat: bool = True,
        skip_batches: int = 0,
    ) -> tf.data.Dataset:
        """Batches for masked language modelling, masked as they are read.

        Args:
            batch_size: B, sequences in a batch.
            seed: chooses order and masks, in [−2⁶³, 2⁶³).
            mask_rate: the share of tokens to predict, in (0, 1]; see `mask_tokens`.
            masking: `"token"`, `"whole_word"` or `"ngram"`; see `mask_tokens`.
            tokenizer: the cache's, which tells where words begin; needed for words
                and n-grams.
            mask_share: the share of chosen tokens that becomes `[MASK]`.
            random_share: the share of chosen tokens that becomes another token; the
                rest stays. ConvBERT's are 0.85 and 0.
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
            ValueError: if an argument is out of range, `skip_batches` is more than
                there are without `repeat`, or `tokenizer` is needed and missing or
                not the cache's.
            TypeError: if an argument has the wrong type.

        Example: see `build_cache`.
        """
        example = mappings.masked_lm(
            self._manifest,
            seed,
            mask_rate,
            masking,
            tokenizer,
            mask_share=mask_share,
            random_share=random_share,
        )
        return self._read(example, batch_size, seed, shuffle, repeat, skip_batches)

    def permutation_lm(
        self,
        batch_size: int,
        seed: int = 0,
        *,
        mask_rate: float = 1 / 6,
        shuffle: bool = True,
        repeat: bool = True,
        skip_batches: int = 0,
    ) -> tf.data.Dataset:
        """Batches for permutation language modelling with partial prediction.

        Each example has its own random order of tokens, whose last ones are predicted;
        see `permute_targets`.

        Args:
            batch_size: B, sequences in a batch.
            seed: chooses the order of examples and of their tokens, in [−2⁶³, 2⁶³).
            mask_rate: the share of tokens to predict, in (0, 1].
            shuffle, repeat, skip_batches: as for `masked_lm`.

        Returns:
            A `tf.data.Dataset` like that of `masked_lm`, with all tokens in place.
            `inputs` also has `ranks` [B, T] int32: 0, 1, 2, … for the targets in the
            order of prediction, which is that of `mask_positions`, and −1 elsewhere.

        Raises:
            ValueError: if an argument is out of range, or `skip_batches` is more
                than there are without `repeat`.
            TypeError: if an argument has the wrong type.

        Example:
        ```python
        import tfeff

        documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
        tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
        cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
        inputs, labels, weights = next(iter(cache.permutation_lm(batch_size=8)))
        assert inputs["ranks"].numpy().max() == weights.numpy().sum(axis=1).max() - 1
        ```
        """
        example = mappings.permutation_lm(self._manifest, seed, mask_rate)
        return self._read(example, batch_size, seed, shuffle, repeat, skip_batches)

    def sentence_pairs(
        self,
        batch_size: int,
        seed: int = 0,
        *,
        kind: str = "order",
        mask_rate: float | None = 0.15,
        masking: str = "token",
        tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        shuffle: bool = True,
        repeat: bool = True,
        skip_batches: int = 0,
    ) -> tf.data.Dataset:
        """Batches of pairs `[CLS] A [SEP] B [SEP]`, to tell whether B follows A.

        Each sequence of the cache is cut in two, before a word if `tokenizer` is given.
        (If not, before any token; then a B that begins inside a word gives the answer
        away.) With probability 1/2 the pair is made wrong: for `"order"`, A and B
        change places; for `"next"`, B is a piece of another document. Eight pieces are
        drawn for this, and one of another document is taken; if there is none, which
        only a few documents make likely, the pair stays as it is. Sequences that
        cannot be cut, those of one token for instance, have weight 0.

        Args:
            batch_size: B, pairs in a batch.
            seed: chooses order, pairs and masks, in [−2⁶³, 2⁶³).
            kind: `"order"` (ALBERT) or `"next"` (BERT).
            mask_rate: the share of tokens to predict; None masks nothing.
            masking, mask_share, random_share: as for `masked_lm`.
            tokenizer: the cache's; needed for words and n-grams.
            shuffle, repeat, skip_batches: as for `masked_lm`.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, weights)` with static shapes.
            `inputs` are those of `masked_lm` with `segment_ids` 1 for B and its
            `[SEP]`, and M = max(1, round(mask_rate · (T − 3))); without masks there
            are no `mask_positions`. `labels` has `sentence` [B] int32, 0 if B follows
            A and 1 if not, and with masks `masked_lm` [B, M]; `weights` has the same
            names.

        Raises:
            ValueError: if an argument is out of range; if `skip_batches` is more than
                there are without `repeat`; if `tokenizer` is needed and missing, or
                not the cache's; if the cache has sequences of less than 5 tokens, or
                several documents in one, or one document only where another is needed.
            TypeError: if an argument has the wrong type.

        Example:
        ```python
        import tfeff

        documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
        tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
        cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
        pairs = cache.sentence_pairs(batch_size=8, tokenizer=tokenizer)
        inputs, labels, weights = next(iter(pairs))
        assert labels["sentence"].shape == [8]
        ```
        """
        check_choice("kind", kind, ["order", "next"])
        check_pairs(self._manifest, kind)
        example = mappings.sentence_pairs(
            self._manifest,
            seed,
            mask_rate,
            masking,
            tokenizer,
            mask_share=mask_share,
            random_share=random_share,
        )
        others = kind == "next"
        return self._read(
            example, batch_size, seed, shuffle, repeat, skip_batches, others
        )

    def _read(self, example: Callable[..., tuple], *settings) -> tf.data.Dataset:
        return read_batches(self.directory, self._manifest, example, *settings)


@contextlib.contextmanager
def damage_named(*caches: Cache) -> Iterator[None]:
    """Names the file of a cache that is found damaged while it is read.

    TensorFlow checks every record that it reads, but does not say of which file a
    damaged one is. Within this `with` block, the files are then looked through.

    Args:
        *caches: the caches that are read.

    Raises:
        ValueError: in place of TensorFlow's `DataLossError`, naming the file.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    with tfeff.data.damage_named(cache):
        for batch in cache.masked_lm(batch_size=8, repeat=False):
            pass
    ```
    """
    try:
        yield
    except tf.errors.DataLossError:
        for cache in caches:
            open_cache(cache.directory)
        raise


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
        manifest.check_tokenizer(tokenizer_fingerprint(tokenizer))
    manifest.verify(directory, checksums=verify)
    return Cache(directory, manifest)
