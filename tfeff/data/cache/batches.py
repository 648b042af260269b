"""Conversion of a cache's records to the examples of an objective."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import keras_hub
import tensorflow as tf

from tfeff.data.cache.manifest import Manifest

CANDIDATES = 8  # Random sequences for each; eight consecutive ones share theirs.
OTHER_ORDER = 0x5DEECE66D  # Changes the seed for them; any constant would do.


class TokenBatch(NamedTuple):
    """Sequences `[CLS] text [SEP]` and the indices of their documents."""

    token_ids: tf.Tensor  # [B, T] int32
    padding_mask: tf.Tensor  # [B, T] int32, 1 = real
    documents: tf.Tensor  # [B] int32
    begins: tf.Tensor  # [B] bool, whether the text begins its document


@runtime_checkable
class Examples(Protocol):
    """Protocol of an objective's examples: settings that make them from sequences.

    `Cache.batches` takes any object with these two members, such as a frozen dataclass,
    which may derive from this class. tfeff has `MaskedTokens`, `PermutedTokens` and
    `SentencePairs`.

    Attributes:
        needs_others: whether each sequence comes with a second one, which is from
            another document if one of eight random candidates is; False by default.

    Example: a masked language model that predicts only the first token of each text.
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
            manifest: the cache's description, with `sequence_length` T,
                `vocabulary_size`, `num_documents`, `cross_documents`, `pad_token_id`,
                `cls_token_id`, `sep_token_id`, `mask_token_id`, and these four as
                `special_token_ids`.
            seed: integer in [−2⁶³, 2⁶³).
            tokenizer: the cache's, or None if the caller passed none.

        Returns:
            A function of tensors, which is traced once. Its arguments are the index of
            the batch's first example, a scalar int64, and a `TokenBatch`: `token_ids`
            and `padding_mask` `[B, T]`, `documents` `[B]`, all int32, and `begins`
            `[B]` bool. Each row is `[CLS] text [SEP]` and padding; rows that fill up
            the last batch of a single epoch are padding alone. With `needs_others`, the
            `TokenBatch` of the second sequences is a third argument. It returns
            `(inputs, labels, weights)`. Row b must depend on `seed` and the index
            `first_example + b` alone, so that runs resume exactly.

        Raises:
            ValueError: if such examples cannot be made of the cache.
        """
        ...


def decode(records: tf.Tensor, manifest: Manifest) -> TokenBatch:
    """Decodes records [B] to sequences; an empty record becomes a row of padding."""
    length = manifest.sequence_length
    lengths = tf.strings.length(records) // 4 - 1
    mask = tf.range(length) < lengths[:, None]
    words = tf.io.decode_raw(records, tf.int32, fixed_length=4 * (length + 1))
    words = tf.ensure_shape(words, [records.shape[0], length + 1])
    ids = tf.where(mask, words[:, 1:], manifest.pad_token_id)
    documents, mask = words[:, 0], tf.cast(mask, tf.int32)
    return TokenBatch(ids, mask, _number(documents), documents >= 0)


def another_document(
    records: tf.Tensor, candidates: tf.Tensor, first_example: tf.Tensor
) -> tf.Tensor:
    """The first candidate from another document than the record's, [B] strings.

    Candidates that are at least as long come first, so that the length of a second
    segment does not reveal whether it is the true one. The search begins at the
    example's index, so that examples that share candidates take different ones.
    """

    def documents(strings: tf.Tensor) -> tf.Tensor:
        return _number(tf.io.decode_raw(strings, tf.int32, fixed_length=4)[..., 0])

    numbers = first_example + tf.range(tf.shape(candidates, tf.int64)[0])
    turn = tf.range(CANDIDATES, dtype=tf.int64)
    order = tf.cast((numbers[:, None] + turn) % CANDIDATES, tf.int32)
    candidates = tf.gather(candidates, order, batch_dims=1)
    differs = documents(candidates) != documents(records)[:, None]
    length = tf.strings.length
    longer = length(candidates) >= length(records)[:, None]
    best = tf.argmax(tf.where(differs, 1 + tf.cast(longer, tf.int32), 0), axis=1)
    return tf.gather(candidates, best, batch_dims=1)


def _number(documents: tf.Tensor) -> tf.Tensor:
    """Numbers of documents, as the reader gives them, without its mark."""
    return tf.where(documents < 0, tf.bitwise.invert(documents), documents)
