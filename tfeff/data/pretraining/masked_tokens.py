"""Examples of masked language modelling, as settings."""

import dataclasses
import functools
from collections.abc import Callable

import keras_hub
import tensorflow as tf

from tfeff.data.cache.batches import Examples, TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining.masking import check_masking, mask_tokens
from tfeff.data.sampling import check_mask_rate, num_targets
from tfeff.data.text.pieces import word_starts


@dataclasses.dataclass(frozen=True)
class MaskedTokens(Examples):
    """Masked language modelling: some tokens are masked and predicted.

    See `mask_tokens`. `Cache.batches` gives `(inputs, labels, weights)`: `inputs` is a
    dictionary of int32, `token_ids`, `segment_ids` (zeros) and `padding_mask` (1 =
    real), each `[B, T]`, and `mask_positions` `[B, M]`,
    M = max(1, round(mask_rate · (T − 2))).
    `labels` `[B, M]` int32 are the original tokens, `weights` `[B, M]` float32 are 1
    in used slots and 0 in the others.

    Args:
        mask_rate: the share of tokens to predict, in (0, 1].
        masking: `"token"`, `"whole_word"` or `"ngram"`, the unit of masking; for
            words and n-grams `Cache.batches` needs `tokenizer`.
        mask_share: the share of chosen tokens that becomes `[MASK]`.
        random_share: the share of chosen tokens that becomes a random one, which may
            be the same; the rest is unchanged. ConvBERT's shares are 0.85 and 0.

    Raises:
        ValueError: if an argument is out of range.
        TypeError: if an argument has the wrong type.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    examples = tfeff.data.MaskedTokens(mask_rate=0.3)
    inputs, labels, weights = next(iter(cache.batches(examples, batch_size=8)))
    assert labels.shape == weights.shape == inputs["mask_positions"].shape == (8, 19)
    ```

    Reference: as of `mask_tokens`.
    """

    mask_rate: float = 0.15
    masking: str = "token"
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self):
        check_mask_rate(self.mask_rate)
        check_masking(self.masking, self.mask_share, self.random_share)

    def mapping(
        self,
        manifest: Manifest,
        seed: int,
        tokenizer: keras_hub.tokenizers.Tokenizer | None,
    ) -> Callable[..., tuple]:
        mask = self.masks(manifest, manifest.sequence_length - 2, seed, tokenizer)

        def example(first_example: tf.Tensor, texts: TokenBatch) -> tuple:
            ids, positions, labels, weights = mask(
                texts.token_ids, first_example=first_example
            )
            inputs = {
                "token_ids": ids,
                "segment_ids": tf.zeros_like(ids),
                "padding_mask": texts.padding_mask,
                "mask_positions": positions,
            }
            return inputs, labels, weights

        return example

    def masks(
        self,
        manifest: Manifest,
        num_tokens: int,
        seed: int,
        tokenizer: keras_hub.tokenizers.Tokenizer | None,
    ) -> Callable[..., tuple]:
        """`mask_tokens` for sequences of at most `num_tokens` tokens of text.

        Args:
            manifest: the cache's description, see `Examples.mapping`.
            num_tokens: the most tokens of text in a sequence.
            seed: seed of the masks, in [−2⁶³, 2⁶³).
            tokenizer: the cache's, or None if single tokens are masked.

        Raises:
            TypeError: if `tokenizer` is of a kind that `word_starts` does not know.
            ValueError: if words or n-grams are masked and `tokenizer` is None.
        """
        starts = None
        if self.masking != "token":
            if tokenizer is None:
                raise ValueError(
                    f"`tokenizer` must be the cache's for masking={self.masking!r}, to "
                    "find the starts of words. Received: tokenizer=None"
                )
            starts = word_starts(tokenizer)
        return functools.partial(
            mask_tokens,
            seed=seed,
            vocabulary_size=manifest.vocabulary_size,
            mask_token_id=manifest.mask_token_id,
            special_token_ids=manifest.special_token_ids,
            max_masks=num_targets(num_tokens, self.mask_rate),
            word_starts=starts,
            **dataclasses.asdict(self),
        )
