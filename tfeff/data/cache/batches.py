"""From the records of a cache to the examples of an objective."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import keras_hub
import tensorflow as tf

from tfeff.data.cache.manifest import Manifest
from tfeff.data.cache.record_stream import raw_records

_CANDIDATES = 8
_OTHER_ORDER = 0x5DEECE66D  # any number that makes another seed


class TokenBatch(NamedTuple):
    """Sequences `[CLS] text [SEP]`, and which documents they come from."""

    token_ids: tf.Tensor  # [B, T] int32
    padding_mask: tf.Tensor  # [B, T] int32, 1 = real
    documents: tf.Tensor  # [B] int32


@runtime_checkable
class Examples(Protocol):
    """What an objective makes of the sequences of a cache: settings, as a value.

    `Cache.batches` reads any object with these two members; a frozen dataclass suits,
    and may derive from this class. `MaskedTokens`, `PermutedTokens` and `SentencePairs`
    are such ones.

    Attributes:
        needs_others: whether each sequence comes with another one, from another
            document wherever one of eight random sequences is; False by default.

    Example: a masked language model that guesses the first token of each text alone.
    ```python
    import dataclasses

    import tensorflow as tf
    import tfeff


    @dataclasses.dataclass(frozen=True)
    class FirstToken(tfeff.data.Examples):
        hide: bool = True

        def mapping(self, manifest, seed, tokenizer):
            at_first = tf.range(manifest.sequence_length) == 1

            def example(first_example, texts):
                ids, mask = texts.token_ids, texts.padding_mask
                hidden = at_first & (mask > 0) & self.hide
                inputs = {
                    "token_ids": tf.where(hidden, manifest.mask_token_id, ids),
                    "segment_ids": tf.zeros_like(ids),
                    "padding_mask": mask,
                    "mask_positions": tf.ones_like(ids[:, :1]),
                }
                return inputs, ids[:, 1:2], tf.cast(mask[:, 1:2], tf.float32)

            return example


    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    inputs, labels, weights = next(iter(cache.batches(FirstToken(), batch_size=8)))
    assert inputs["token_ids"].numpy()[:, 1].tolist() == 8 * [tokenizer.mask_token_id]
    ```
    """

    needs_others: ClassVar[bool] = False

    def mapping(
        self,
        manifest: Manifest,
        seed: int,
        tokenizer: keras_hub.tokenizers.Tokenizer | None,
    ) -> Callable[..., tuple]:
        """Returns the function that makes a batch of examples.

        Args:
            manifest: what the cache knows, among it `sequence_length` T,
                `vocabulary_size`, `num_documents`, `cross_documents`, `pad_token_id`,
                `cls_token_id`, `sep_token_id`, `mask_token_id` and all these as
                `special_token_ids`.
            seed: in [−2⁶³, 2⁶³).
            tokenizer: the cache's, or None where the caller gave none.

        Returns:
            A function of tensors, to be traced once. It is called with the number of
            the batch's first example, a scalar int64, and with a `TokenBatch`:
            `token_ids` and `padding_mask` `[B, T]`, `documents` `[B]`, all int32,
            where a row of a sequence is `[CLS] text [SEP]` and padding, and a row that
            fills up the last batch of all is padding alone. With `needs_others` it gets
            the `TokenBatch` of the other sequences, too. It returns
            `(inputs, labels, weights)`. For runs to go on where they stopped, row b is
            to depend on `seed` and the number `first_example + b` alone.

        Raises:
            ValueError: if such examples cannot be made of the cache.
        """
        ...


def decode(records: tf.Tensor, manifest: Manifest) -> TokenBatch:
    """Records [B] to sequences; an empty record becomes a row of padding."""
    length = manifest.sequence_length
    lengths = tf.strings.length(records) // 4 - 1
    mask = tf.range(length) < lengths[:, None]
    words = tf.io.decode_raw(records, tf.int32, fixed_length=4 * (length + 1))
    words = tf.ensure_shape(words, [records.shape[0], length + 1])
    ids = tf.where(mask, words[:, 1:], manifest.pad_token_id)
    return TokenBatch(ids, tf.cast(mask, tf.int32), words[:, 0])


def random_candidates(
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


def another_document(
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
