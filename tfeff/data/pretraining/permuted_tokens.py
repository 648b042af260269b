"""Examples of permutation language modelling, as settings."""

import dataclasses
from collections.abc import Callable

import keras_hub
import tensorflow as tf

from tfeff.data.cache.batches import Examples, TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining.permutation import permute_targets
from tfeff.data.sampling import check_mask_rate, num_targets


@dataclasses.dataclass(frozen=True)
class PermutedTokens(Examples):
    """Permutation language modelling: the last tokens of a random order are predicted.

    `Cache.batches` gives `(inputs, labels, weights)` as for `MaskedTokens`, with no
    token masked. `inputs` also has `ranks` `[B, T]` int32: 0, 1, 2, … for the
    targets in the order of prediction, which is that of `mask_positions`, and −1
    elsewhere; see `permute_targets`.

    Args:
        mask_rate: the share of tokens to predict, in (0, 1].

    Raises:
        ValueError: if `mask_rate` is out of range.
        TypeError: if it is not a number.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    cache = tfeff.data.build_cache(documents, tokenizer, "cache", 64)
    batches = cache.batches(tfeff.data.PermutedTokens(), batch_size=8)
    inputs, labels, weights = next(iter(batches))
    assert inputs["ranks"].numpy().max() == weights.numpy().sum(axis=1).max() - 1
    ```

    Reference:
        Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language
        Understanding", 2019, section 2.3, for partial prediction, with K = 6.
    """

    mask_rate: float = 1 / 6

    def __post_init__(self):
        check_mask_rate(self.mask_rate)

    def mapping(
        self,
        manifest: Manifest,
        seed: int,
        tokenizer: keras_hub.tokenizers.Tokenizer | None,
    ) -> Callable[..., tuple]:
        max_targets = num_targets(manifest.sequence_length - 2, self.mask_rate)

        def example(first_example: tf.Tensor, texts: TokenBatch) -> tuple:
            ranks, positions, labels, weights = permute_targets(
                texts.token_ids,
                seed,
                first_example,
                special_token_ids=manifest.special_token_ids,
                max_targets=max_targets,
                mask_rate=self.mask_rate,
            )
            inputs = {
                "token_ids": texts.token_ids,
                "segment_ids": tf.zeros_like(ranks),
                "padding_mask": texts.padding_mask,
                "ranks": ranks,
                "mask_positions": positions,
            }
            return inputs, labels, weights

        return example
