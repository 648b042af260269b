"""Units of masking: whole words, and n-grams of words."""

from itertools import accumulate

import numpy as np
import tensorflow as tf

from tfeff.data.sampling import priorities

_LONGEST_NGRAM = 3


def words(token_ids: tf.Tensor, special: tf.Tensor, starts: np.ndarray) -> tf.Tensor:
    """Numbers the words of each sequence from 0; a special token is a word of its own.

    The first token of a text, and one after a special token, always begins a word.

    Args:
        token_ids: [B, T] int32.
        special: [B, T] bool.
        starts: [V] bool, as `word_starts` gives.

    Returns:
        [B, T] int32, increasing by 0 or 1 from one token to the next.
    """
    return _number(special | _begins(token_ids, special, starts))


def ngrams(
    token_ids: tf.Tensor,
    special: tf.Tensor,
    starts: np.ndarray,
    draws: tf.Tensor,
    longest: tf.Tensor,
) -> tf.Tensor:
    """Numbers runs of one to three words, which follow each other without gaps.

    A run has n words with probability proportional to 1/n. A special token ends it,
    and is a run of its own.

    Args:
        token_ids: [B, T] int32.
        special: [B, T] bool.
        starts: [V] bool, as `word_starts` gives.
        draws: [B, T] int64, random 32-bit numbers.
        longest: [B, 1] int32, the most words in a run.

    Returns:
        [B, T] int32, increasing by 0 or 1 from one token to the next.

    Reference:
        Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
        Representations", 2020, section 4.1.
    """
    shares = list(accumulate(1 / n for n in range(1, _LONGEST_NGRAM + 1)))
    lengths = tf.ones_like(special, tf.int32)
    for share in shares[:-1]:
        bound = int(share / shares[-1] * 2**32)
        lengths += tf.cast(draws >= bound, tf.int32)
    ends = tf.cumsum(tf.minimum(lengths, tf.maximum(longest, 1)), axis=1)

    begins = _begins(token_ids, special, starts)
    word = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    run = tf.searchsorted(ends, word, side="right")
    another = run != tf.concat([run[:, :1], run[:, :-1]], axis=1)
    return _number(special | _follow(special) | another)


def choose_units(
    units: tf.Tensor, draws: tf.Tensor, special: tf.Tensor, count: tf.Tensor
) -> tf.Tensor:
    """Chooses whole units at random that together have at most `count` tokens.

    Units are taken in a random order. A unit that is larger than the rest of the
    budget is skipped, until no unit fits.

    Args:
        units: [B, T] int32, as from `words` or `ngrams`.
        draws: [B, T] int64, random 32-bit numbers; unit k has the k-th.
        special: [B, T] bool, units that are never chosen.
        count: [B, 1] int32, the budget in tokens.

    Returns:
        [B, T] bool, for each token whether its unit is chosen.
    """
    length = tf.shape(units)[1]
    numbers = tf.broadcast_to(tf.range(length), tf.shape(units))
    first = tf.searchsorted(units, numbers, side="left")
    sizes = tf.searchsorted(units, numbers, side="right") - first
    first = tf.minimum(first, length - 1)
    unfit = (sizes == 0) | tf.gather(special, first, batch_dims=1)

    order = tf.argsort(priorities(draws, unfit), direction="DESCENDING")
    sizes = tf.gather(sizes, order, batch_dims=1)
    unfit = tf.gather(unfit, order, batch_dims=1)

    # A round takes all units up to the first that does not fit, as a sequential choice
    # would, and drops those that are now too large. There are at most as many rounds
    # as there are sizes of units.
    def take(left: tf.Tensor, waiting: tf.Tensor, taken: tf.Tensor) -> tuple:
        waiting &= sizes <= left
        total = tf.cumsum(tf.where(waiting, sizes, 0), axis=1)
        now = waiting & (total <= left)
        spent = tf.reduce_sum(tf.where(now, sizes, 0), axis=1, keepdims=True)
        return left - spent, waiting & ~now, taken | now

    _, _, taken = tf.while_loop(
        lambda left, waiting, taken: tf.reduce_any(waiting),
        take,
        (count, ~unfit, tf.zeros_like(unfit)),
    )
    taken = tf.gather(taken, tf.argsort(order), batch_dims=1)
    return tf.gather(taken, units, batch_dims=1)


def _begins(token_ids: tf.Tensor, special: tf.Tensor, starts: np.ndarray) -> tf.Tensor:
    return ~special & (tf.gather(tf.constant(starts), token_ids) | _follow(special))


def _follow(special: tf.Tensor) -> tf.Tensor:
    """True for the tokens after a special one, and for the first of a sequence."""
    return tf.concat([tf.ones_like(special[:, :1]), special[:, :-1]], axis=1)


def _number(begins: tf.Tensor) -> tf.Tensor:
    return tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
