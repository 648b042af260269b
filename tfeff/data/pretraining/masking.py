"""Masking of tokens, words and n-grams for masked language modelling, in the graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfeff.data.pretraining.word_masking import choose_units, ngrams, words
from tfeff.data.sampling import (
    budget,
    check_first_example,
    check_mask_rate,
    check_slots,
    check_special_ids,
    check_stateless_seed,
    check_token_ids,
    choose_tokens,
    isin,
    random_bits,
    slots,
)
from tfeff.utils.checks import check_choice, check_integer, check_number

MASKINGS = ("token", "whole_word", "ngram")


def check_masking(
    masking: str, mask_share: float, random_share: float
) -> tuple[float, float]:
    """Returns the shares if they add up to at most 1, and the name is known."""
    check_choice("masking", masking, MASKINGS)
    for name, share in [("mask_share", mask_share), ("random_share", random_share)]:
        check_number(name, share, minimum=0, maximum=1)
    if mask_share + random_share > 1:
        raise ValueError(
            "`mask_share` and `random_share` must be at most 1 together. Received: "
            f"{mask_share=} and {random_share=}"
        )
    return float(mask_share), float(random_share)


def mask_tokens(
    token_ids: tf.Tensor,
    seed: int,
    first_example: int | tf.Tensor = 0,
    *,
    vocabulary_size: int,
    mask_token_id: int,
    special_token_ids: Sequence[int],
    max_masks: int,
    mask_rate: float = 0.15,
    masking: str = "token",
    word_starts: Any = None,
    mask_share: float = 0.8,
    random_share: float = 0.1,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Masks some tokens and returns their positions: a function of its arguments alone.

    A sequence with c tokens that are not special has a budget of min(max_masks,
    max(1, round(mask_rate · c))) tokens (none if c = 0; a half rounds to the even
    neighbour). They are chosen uniformly without replacement, in units of `masking`:

    - `"token"`: single tokens, exactly as many as the budget.
    - `"whole_word"`: words, each with all its tokens. A word with more tokens than
      are left of the budget is skipped, and the next one in the random order is tried.
      So the budget is never exceeded, and a sequence in which no word fits has no mask.
    - `"ngram"`: the text is cut at random into runs of n words, n = 1, 2, 3 with
      probability proportional to 1/n (and at most the budget). Runs are chosen like
      words.

    Each chosen token becomes `mask_token_id` with probability `mask_share`, a
    uniformly drawn token that is not special with probability `random_share`, and
    is unchanged otherwise.

    Row b is the example number `first_example + b`, and its masks depend on `seed`
    and that number alone, not on how examples are batched.

    Args:
        token_ids: [B, T] int32; padding counts as special.
        seed: seed of the masks, in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example, from 0.
        vocabulary_size: V; ids are below it.
        mask_token_id: the id of `[MASK]`.
        special_token_ids: ids that are neither chosen nor drawn: padding, `[CLS]`,
            `[SEP]`, `[MASK]`. Words and n-grams end at them.
        max_masks: M, the number of slots for chosen positions, at most T.
        mask_rate: the share of tokens to choose, in (0, 1].
        masking: `"token"`, `"whole_word"` or `"ngram"`.
        word_starts: [V] bool, the ids that begin a word, as returned by the function
            `word_starts`; needed for words and n-grams.
        mask_share: the share of chosen tokens that become `mask_token_id`.
        random_share: the share of chosen tokens that become a random one, which may be
            the same.

    Returns:
        The tuple (masked_ids [B, T] int32, positions [B, M] int32,
        labels [B, M] int32, weights [B, M] float32). Positions ascend; labels are
        the original tokens there, with weight 1. Slots without a mask follow, with
        position, label and weight 0.

    Raises:
        ValueError: if `token_ids` is not of rank 2 or does not fit into int32, `seed`,
            `max_masks`, `mask_rate` or a share is out of range, every id is special,
            `masking` is unknown, or `word_starts` is missing or of another size.
        TypeError: if one of them has the wrong type.

    Example:
    ```python
    import tensorflow as tf
    import tfeff

    ids = tf.constant([[2, 7, 8, 9, 10, 11, 12, 3, 0, 0]])
    masked, positions, labels, weights = tfeff.data.mask_tokens(
        ids,
        seed=0,
        vocabulary_size=20,
        mask_token_id=4,
        special_token_ids=[0, 2, 3, 4],
        max_masks=3,
        mask_rate=0.3,
    )
    assert weights.numpy().tolist() == [[1.0, 1.0, 0.0]]  # round(0.3 · 6) = 2 masks
    ```

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, section 3.1, Task #1 and appendix A.1; Lan et
        al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
        Representations", 2020, section 4.1, for n-grams.
    """
    mask_rate = check_mask_rate(mask_rate)
    seed = check_stateless_seed(seed)
    mask_share, random_share = check_masking(masking, mask_share, random_share)
    special_ids = check_special_ids(special_token_ids)
    vocabulary_size = check_integer("vocabulary_size", vocabulary_size)
    mask_token_id = check_integer(
        "mask_token_id", mask_token_id, 0, vocabulary_size - 1
    )
    first_example = check_first_example(first_example)
    num_drawable = vocabulary_size - len(special_ids)
    if num_drawable < 1:
        raise ValueError(
            "`special_token_ids` must leave tokens to predict. Received: "
            f"{special_token_ids=!r:.80} with {vocabulary_size=}"
        )
    if masking != "token" and np.shape(word_starts) != (vocabulary_size,):
        raise ValueError(
            f"`word_starts` must be a table of {vocabulary_size=} truth values for "
            f"{masking=}. Received: word_starts of shape {np.shape(word_starts)}"
        )
    token_ids = check_token_ids(token_ids)
    max_masks = check_slots("max_masks", max_masks, token_ids)
    rows, length = tf.unstack(tf.shape(token_ids))
    num_draws = 4 if masking == "ngram" else 3
    draws = random_bits(seed, first_example, (rows, num_draws, length))
    which, action, word = draws[:3]

    special = isin(token_ids, special_ids)
    count = budget(special, mask_rate, max_masks)
    if masking == "token":
        chosen = choose_tokens(which, special, count, max_masks)
    else:
        if masking == "whole_word":
            units = words(token_ids, special, word_starts)
        else:
            units = ngrams(token_ids, special, word_starts, draws[3], count)
        chosen = choose_units(units, which, special, count)
    positions, labels, weights = slots(token_ids, chosen, max_masks)

    draw = tf.cast(tf.bitwise.right_shift(word * num_drawable, 32), tf.int32)
    for special_id in special_ids:  # ascending: skips every special id
        draw += tf.cast(draw >= special_id, tf.int32)
    changed = mask_share + random_share
    masked_ids = tf.where(action < int(changed * 2**32), draw, token_ids)
    masked_ids = tf.where(action < int(mask_share * 2**32), mask_token_id, masked_ids)
    masked_ids = tf.where(chosen, masked_ids, token_ids)
    return masked_ids, positions, labels, weights
