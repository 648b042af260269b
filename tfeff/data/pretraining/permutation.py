"""Orders of prediction for permutation language modelling, in the graph."""

from collections.abc import Sequence

import tensorflow as tf

from tfeff.data.sampling import (
    budget,
    check_first_example,
    check_mask_rate,
    check_slots,
    check_special_ids,
    check_stateless_seed,
    check_token_ids,
    isin,
    position_of,
    priorities,
    random_bits,
)


def permute_targets(
    token_ids: tf.Tensor,
    seed: int,
    first_example: int | tf.Tensor = 0,
    *,
    special_token_ids: Sequence[int],
    max_targets: int,
    mask_rate: float = 1 / 6,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Draws an order of prediction and the targets in it.

    All orders of the c tokens that are not special are equally likely. The last
    min(max_targets, max(1, round(mask_rate · c))) of the order are the targets (none
    if c = 0); their ranks are 0, 1, 2, … in this order. All other positions have
    rank −1: they come first and are seen by every target.
    `tfeff.ops.permutation_masks` turns ranks into masks.

    The order of row b depends on `seed` and the number `first_example + b` alone.

    Args:
        token_ids: [B, T] int32; padding counts as special.
        seed: seed of the orders, in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example, from 0.
        special_token_ids: ids that are never targets.
        max_targets: M, the number of slots for targets, at most T.
        mask_rate: the share of tokens to predict, in (0, 1].

    Returns:
        The tuple (ranks [B, T] int32, positions [B, M] int32, labels [B, M] int32,
        weights [B, M] float32). Positions are those of the targets, in the order of
        their ranks; slots without a target follow, with zeros.

    Raises:
        ValueError: if `token_ids` is not of rank 2 or does not fit into int32, or
            `seed`, `max_targets` or `mask_rate` is out of range.
        TypeError: if one of them has the wrong type.

    Example:
    ```python
    import tfeff

    ranks, positions, labels, weights = tfeff.data.permute_targets(
        [[2, 7, 8, 9, 3]], seed=0, special_token_ids=[2, 3], max_targets=1
    )
    (target,) = positions[0].numpy()
    assert ranks.numpy()[0, target] == 0 and target in (1, 2, 3)
    ```

    Reference:
        Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language
        Understanding", 2019, sections 2.2 and 2.3.
    """
    mask_rate = check_mask_rate(mask_rate)
    seed = check_stateless_seed(seed)
    token_ids = check_token_ids(token_ids)
    max_targets = check_slots("max_targets", max_targets, token_ids)
    special_ids = check_special_ids(special_token_ids)
    first_example = check_first_example(first_example)
    rows, length = tf.unstack(tf.shape(token_ids))
    (draws,) = random_bits(seed, first_example, (rows, 1, length), stream=1)

    special = isin(token_ids, special_ids)
    count = budget(special, mask_rate, max_targets)
    # The tokens of highest priority are the targets, in descending order.
    highest = tf.math.top_k(priorities(draws, special), max_targets).values
    used = tf.range(max_targets) < count
    positions = tf.where(used, position_of(highest), 0)
    labels = tf.where(used, tf.gather(token_ids, positions, batch_dims=1), 0)

    row = tf.broadcast_to(tf.range(rows)[:, None], tf.shape(positions))
    number = tf.where(used, tf.range(1, max_targets + 1), 0)
    ranks = tf.scatter_nd(
        tf.stack([row, positions], axis=-1), number, tf.shape(token_ids)
    )
    return ranks - 1, positions, labels, tf.cast(used, tf.float32)
