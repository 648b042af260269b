"""From the files of a cache to batches of an objective."""

import os
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfeff.data.cache.manifest import Manifest
from tfeff.data.cache.record_stream import raw_records
from tfeff.data.dataset_options import finalize
from tfeff.data.sampling import check_seed
from tfeff.utils.checks import check_integer

_CANDIDATES = 8
_OTHER_ORDER = 0x5DEECE66D  # any number that makes another seed


class TokenBatch(NamedTuple):
    """Sequences `[CLS] text [SEP]`, and which documents they come from."""

    token_ids: tf.Tensor  # [B, T] int32
    padding_mask: tf.Tensor  # [B, T] int32, 1 = real
    documents: tf.Tensor  # [B] int32


def read_batches(
    directory: str,
    manifest: Manifest,
    example: Callable[..., tuple],
    batch_size: int,
    seed: int,
    shuffle: bool,
    repeat: bool,
    skip_batches: int,
    others: bool = False,
) -> tf.data.Dataset:
    """Batches of a cache, as a function of the seed and the batch's number alone.

    Args:
        directory: the cache's folder.
        manifest: its index.
        example: called with the number of the first example, a scalar int64, and the
            `TokenBatch` of a batch; returns what the dataset is to yield.
        batch_size: B.
        seed: chooses the order.
        shuffle: False gives the order of the documents.
        repeat: epochs without end, or one that is filled up with rows of padding.
        skip_batches: batches to leave out at the start.
        others: give `example` the `TokenBatch` of further sequences too, one for each.
            They come from another document, unless all of eight random ones are from
            the same.

    Returns:
        The dataset.

    Raises:
        ValueError: if a number is out of range, or `skip_batches` is more than there
            are without `repeat`.
        TypeError: if a number is of another type.
    """
    batch_size = check_integer("batch_size", batch_size, 1)
    seed = check_seed(seed)
    skip_batches = check_integer("skip_batches", skip_batches, 0)
    num_batches = -(-manifest.num_sequences // batch_size)
    if not repeat and skip_batches > num_batches:
        raise ValueError(
            f"`skip_batches` must be at most the {num_batches} batches of the one "
            f"epoch. Received: {skip_batches=}"
        )
    paths = [os.path.join(directory, shard.file) for shard in manifest.shards]
    first = skip_batches * batch_size
    records = raw_records(
        paths,
        manifest.num_sequences,
        seed=seed if shuffle else None,
        first=first,
        repeat=repeat,
        multiple=batch_size,
    )

    def batch_of(number: tf.Tensor, batch: tuple) -> tuple:
        first_example = number * batch_size
        if not others:
            return example(first_example, _decode(batch, manifest))
        batch, candidates = batch
        chosen = _another_document(batch, candidates, first_example)
        return example(
            first_example, _decode(batch, manifest), _decode(chosen, manifest)
        )

    if others:
        candidates = _candidates(paths, manifest.num_sequences, seed, first)
        records = tf.data.Dataset.zip((records, candidates))
    dataset = records.batch(batch_size, drop_remainder=True).enumerate(skip_batches)
    dataset = dataset.map(batch_of, num_parallel_calls=tf.data.AUTOTUNE)
    cardinality = tf.data.INFINITE_CARDINALITY if repeat else num_batches - skip_batches
    return finalize(dataset.apply(tf.data.experimental.assert_cardinality(cardinality)))


def _decode(records: tf.Tensor, manifest: Manifest) -> TokenBatch:
    """Records [B] to texts; an empty record becomes a row of padding."""
    length = manifest.sequence_length
    lengths = tf.strings.length(records) // 4 - 1
    mask = tf.range(length) < lengths[:, None]
    words = tf.io.decode_raw(records, tf.int32, fixed_length=4 * (length + 1))
    words = tf.ensure_shape(words, [records.shape[0], length + 1])
    ids = tf.where(mask, words[:, 1:], manifest.pad_token_id)
    return TokenBatch(ids, tf.cast(mask, tf.int32), words[:, 0])


def _candidates(
    paths: list[str], num_records: int, seed: int, first: int
) -> tf.data.Dataset:
    """Eight random records [8] for each example, from the number `first` on.

    Each eight examples have the same ones.
    """
    blocks = raw_records(
        paths,
        num_records,
        seed=seed ^ _OTHER_ORDER,
        first=first // _CANDIDATES * _CANDIDATES,
        repeat=True,
        multiple=1,
    ).batch(_CANDIDATES)
    return blocks.flat_map(
        lambda block: tf.data.Dataset.from_tensors(block).repeat(_CANDIDATES)
    ).skip(first % _CANDIDATES)


def _another_document(
    records: tf.Tensor, candidates: tf.Tensor, first_example: tf.Tensor
) -> tf.Tensor:
    """The first candidate of another document than its record's, [B] strings.

    Candidates that are at least as long go first: the length of a wrong B is not to
    tell it from a right one. An example begins its search at its own number: those
    that share candidates take different ones.
    """

    def documents(strings: tf.Tensor) -> tf.Tensor:
        return tf.io.decode_raw(strings, tf.int32, fixed_length=4)[..., 0]

    numbers = first_example + tf.range(tf.shape(candidates, tf.int64)[0])
    turn = tf.range(_CANDIDATES, dtype=tf.int64)
    order = tf.cast((numbers[:, None] + turn) % _CANDIDATES, tf.int32)
    candidates = tf.gather(candidates, order, batch_dims=1)
    differs = documents(candidates) != documents(records)[:, None]
    length = tf.strings.length
    longer = length(candidates) >= length(records)[:, None]
    best = tf.argmax(tf.where(differs, 1 + tf.cast(longer, tf.int32), 0), axis=1)
    return tf.gather(candidates, best, batch_dims=1)
