"""BERT's masking of tokens for masked language modelling, in the graph."""

from collections.abc import Sequence

import tensorflow as tf

from tfeff.checks import check_integer


def num_masks(sequence_length: int, mask_rate: float) -> int:
    """The most tokens that are masked in a sequence `[CLS] … [SEP]`."""
    check_mask_rate(mask_rate)
    return max(1, round(mask_rate * (sequence_length - 2)))


def check_mask_rate(mask_rate: float) -> None:
    """Raises unless the rate is in (0, 1]."""
    if isinstance(mask_rate, bool) or not isinstance(mask_rate, (int, float)):
        raise TypeError(f"`mask_rate` must be a number. Received: {mask_rate=}")
    if not 0 < mask_rate <= 1:
        raise ValueError(
            f"`mask_rate` must be above 0 and at most 1. Received: {mask_rate=}"
        )


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
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Masks some tokens and tells which: a pure function of its arguments.

    In a sequence with c tokens that are not special, min(max_masks, max(1,
    round(mask_rate · c))) of them (none if c = 0) are chosen uniformly without
    replacement. Each chosen token becomes `mask_token_id` with probability 0.8, a
    uniformly drawn token that is not special with probability 0.1, and stays as it
    is otherwise. A half rounds to the even neighbour.

    Row b is the example number `first_example + b`, and its masks depend on `seed`
    and that number alone, not on how examples are batched.

    Args:
        token_ids: [B, T] int32; padding counts as special.
        seed: chooses the masks, in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example, from 0.
        vocabulary_size: ids are below it.
        mask_token_id: the id of `[MASK]`.
        special_token_ids: ids that are neither chosen nor drawn: padding, `[CLS]`,
            `[SEP]`, `[MASK]`.
        max_masks: M, the number of slots for chosen positions, at most T.
        mask_rate: the share of tokens to choose, in (0, 1].

    Returns:
        The tuple (masked_ids [B, T] int32, positions [B, M] int32,
        labels [B, M] int32, weights [B, M] float32). Positions ascend; labels are
        the original tokens there, with weight 1. Slots without a mask follow, with
        position, label and weight 0.

    Raises:
        ValueError: if `token_ids` is not of rank 2, `seed` or `mask_rate` is out of
            range, `max_masks` is below 1, or every id is special.
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
        Language Understanding", 2019, section 3.1, Task #1 and appendix A.1.
    """
    check_mask_rate(mask_rate)
    check_integer("seed", seed, -(2**63), 2**63 - 1)
    check_integer("max_masks", max_masks, 1)
    special_ids = sorted(set(special_token_ids))
    num_drawable = vocabulary_size - len(special_ids)
    if num_drawable < 1:
        raise ValueError(
            "`special_token_ids` must leave tokens to predict. Received: "
            f"{special_token_ids=} with {vocabulary_size=}"
        )
    token_ids = tf.convert_to_tensor(token_ids, tf.int32)
    if token_ids.shape.rank != 2:
        raise ValueError(
            "`token_ids` must have shape [batch, length]. Received: token_ids with "
            f"shape {token_ids.shape}"
        )
    rows, length = tf.unstack(tf.shape(token_ids))
    which, action, word = _random_bits(seed, first_example, rows, length)

    special = tf.reduce_any(token_ids[..., None] == tf.constant(special_ids), axis=-1)
    candidates = tf.reduce_sum(tf.cast(~special, tf.int32), axis=-1, keepdims=True)
    wanted = tf.round(mask_rate * tf.cast(candidates, tf.float64))
    count = tf.minimum(tf.maximum(tf.cast(wanted, tf.int32), 1), candidates)
    count = tf.minimum(count, max_masks)

    # The candidates of highest priority are chosen. The position in the lower bits
    # makes all priorities different: equal draws cannot make one too many.
    priority = which * 2**31 + tf.range(length, dtype=tf.int64)
    priority = tf.where(special, tf.constant(-1, tf.int64), priority)
    highest = tf.math.top_k(priority, max_masks).values
    used = tf.range(max_masks) < count
    lowest_chosen = tf.reduce_min(
        tf.where(used, highest, tf.int64.max), axis=-1, keepdims=True
    )
    chosen = priority >= lowest_chosen

    # Slots that are not used sort behind those that are.
    positions = tf.cast(highest % 2**31, tf.int32)
    positions = tf.sort(tf.where(used, positions, length), axis=-1)
    positions = tf.where(used, positions, 0)
    labels = tf.gather(token_ids, positions, batch_dims=1)
    labels = tf.where(used, labels, 0)

    draw = tf.cast(tf.bitwise.right_shift(word * num_drawable, 32), tf.int32)
    for special_id in special_ids:  # ascending: steps over each special id
        draw += tf.cast(draw >= special_id, tf.int32)
    masked_ids = tf.where(action < int(0.9 * 2**32), draw, token_ids)
    masked_ids = tf.where(action < int(0.8 * 2**32), mask_token_id, masked_ids)
    masked_ids = tf.where(chosen, masked_ids, token_ids)
    return masked_ids, positions, labels, tf.cast(used, tf.float32)


def _random_bits(
    seed: int, first_example: int | tf.Tensor, rows: tf.Tensor, length: tf.Tensor
) -> list[tf.Tensor]:
    """Three tensors [B, T] int64 of uniform 32-bit numbers.

    Philox turns a counter into four numbers a step, so that an example's numbers
    can be had by starting its counter at the example.
    """
    steps = -(-3 * length // 4)
    first = tf.cast(first_example, tf.int64) * tf.cast(steps, tf.int64)
    bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[rows, 4 * steps],
        key=tf.constant([seed % 2**64], tf.uint64),
        counter=tf.cast(tf.stack([first, 0]), tf.uint64),
        alg=1,  # Philox, on every device
        dtype=tf.uint32,
    )
    bits = tf.reshape(tf.cast(bits, tf.int64)[:, : 3 * length], [rows, 3, length])
    return tf.unstack(bits, axis=1)
