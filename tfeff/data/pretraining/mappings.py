"""What each objective makes of the texts of a batch.

The functions here return functions for `tfeff.data.cache.batches.read_batches`: called
with the number of the first example and the texts, these return (inputs, labels,
weights).
"""

import functools
from collections.abc import Callable

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.data.cache.batches import TokenBatch
from tfeff.data.cache.manifest import Manifest
from tfeff.data.pretraining.masking import MASKINGS, check_masking, mask_tokens
from tfeff.data.pretraining.permutation import permute_targets
from tfeff.data.pretraining.sentence_pairs import make_pairs
from tfeff.data.pretraining.word_masking import word_starts
from tfeff.data.sampling import num_targets
from tfeff.data.text.tokenizers import tokenizer_fingerprint
from tfeff.utils.checks import check_choice

Example = Callable[..., tuple]


def masked_lm(
    manifest: Manifest,
    seed: int,
    mask_rate: float,
    masking: str,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    **shares: float,
) -> Example:
    """See `Cache.masked_lm`."""
    starts = _starts(manifest, tokenizer, masking)
    num_tokens = manifest.sequence_length - 2
    mask = _masks(manifest, num_tokens, seed, mask_rate, masking, starts, **shares)

    def example(first: tf.Tensor, texts: TokenBatch) -> tuple:
        ids, positions, labels, weights = mask(texts.token_ids, first_example=first)
        inputs = {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": texts.padding_mask,
            "mask_positions": positions,
        }
        return inputs, labels, weights

    return example


def permutation_lm(manifest: Manifest, seed: int, mask_rate: float) -> Example:
    """See `Cache.permutation_lm`."""
    max_targets = num_targets(manifest.sequence_length - 2, mask_rate)

    def example(first: tf.Tensor, texts: TokenBatch) -> tuple:
        ranks, positions, labels, weights = permute_targets(
            texts.token_ids,
            seed,
            first,
            special_token_ids=manifest.special_token_ids,
            max_targets=max_targets,
            mask_rate=mask_rate,
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


def sentence_pairs(
    manifest: Manifest,
    seed: int,
    mask_rate: float | None,
    masking: str,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    **shares: float,
) -> Example:
    """See `Cache.sentence_pairs`."""
    starts = _starts(manifest, tokenizer, masking)
    mask = None
    if mask_rate is not None:
        num_tokens = manifest.sequence_length - 3
        mask = _masks(manifest, num_tokens, seed, mask_rate, masking, starts, **shares)

    def example(
        first: tf.Tensor, texts: TokenBatch, others: TokenBatch | None = None
    ) -> tuple:
        pairs = make_pairs(
            texts,
            others,
            seed=seed,
            first_example=first,
            manifest=manifest,
            word_starts=starts,
        )
        inputs = {
            "token_ids": pairs.token_ids,
            "segment_ids": pairs.segment_ids,
            "padding_mask": pairs.padding_mask,
        }
        labels, weights = {"sentence": pairs.labels}, {"sentence": pairs.weights}
        if mask is not None:
            ids, positions, tokens, used = mask(pairs.token_ids, first_example=first)
            inputs |= {"token_ids": ids, "mask_positions": positions}
            labels["masked_lm"], weights["masked_lm"] = tokens, used
        return inputs, labels, weights

    return example


def _masks(
    manifest: Manifest,
    num_tokens: int,
    seed: int,
    mask_rate: float,
    masking: str,
    starts: np.ndarray | None,
    **shares: float,
) -> Callable[..., tuple]:
    """`mask_tokens` for sequences of at most so many tokens of text."""
    check_masking(masking, **shares)
    return functools.partial(
        mask_tokens,
        seed=seed,
        vocabulary_size=manifest.vocabulary_size,
        mask_token_id=manifest.mask_token_id,
        special_token_ids=manifest.special_token_ids,
        max_masks=num_targets(num_tokens, mask_rate),
        mask_rate=mask_rate,
        masking=masking,
        word_starts=starts,
        **shares,
    )


def _starts(
    manifest: Manifest,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    masking: str,
) -> np.ndarray | None:
    """The ids that begin a word, if the tokenizer is given."""
    check_choice("masking", masking, MASKINGS)
    if tokenizer is not None:
        manifest.check_tokenizer(tokenizer_fingerprint(tokenizer))
        return word_starts(tokenizer)
    if masking != "token":
        raise ValueError(
            f"`tokenizer` must be the cache's for {masking=}, to tell where words "
            "begin. Received: tokenizer=None"
        )
    return None
