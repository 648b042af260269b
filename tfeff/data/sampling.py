"""Seeded sampling of the tokens to predict."""

import functools
from collections.abc import Sequence

import tensorflow as tf

from tfeff.data.arrays import check_int32
from tfeff.utils.checks import MAX_COUNT, check_integer, check_iterable, check_number


def num_targets(num_tokens: int, mask_rate: float) -> int:
    """The largest number of targets in a sequence of at most `num_tokens` tokens."""
    return max(1, round(check_mask_rate(mask_rate) * num_tokens))


def check_mask_rate(mask_rate: float) -> float:
    """Returns the rate if it is in (0, 1], else raises."""
    return check_number("mask_rate", mask_rate, above=0, maximum=1)


def check_stateless_seed(seed: int) -> int:
    """Returns the seed if it fits into 64 bits with a sign, else raises."""
    return check_integer("seed", seed, -MAX_COUNT - 1, MAX_COUNT)


def check_first_example(first_example: int | tf.Tensor) -> tf.Tensor:
    """Returns an example's number as an int64 tensor, or raises."""
    if isinstance(first_example, tf.Tensor):
        if not first_example.dtype.is_integer:
            raise TypeError(
                "`first_example` must be an integer. Received: "
                f"first_example={first_example!r}"
            )
        return tf.cast(first_example, tf.int64)
    first_example = check_integer("first_example", first_example, 0, MAX_COUNT)
    return tf.constant(first_example, tf.int64)


def check_special_ids(special_token_ids: Sequence[int]) -> list[int]:
    """Returns the ids in order, each once, or raises."""
    name = "special_token_ids"
    check_iterable(name, special_token_ids, "a list of integers")
    return sorted({check_integer(name, id, 0) for id in special_token_ids})


def check_token_ids(token_ids: tf.Tensor) -> tf.Tensor:
    """Returns the ids as an int32 tensor of rank 2, or raises."""
    if not tf.is_tensor(token_ids):
        token_ids = check_int32("token_ids", token_ids)
    try:
        token_ids = tf.convert_to_tensor(token_ids, tf.int32)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`token_ids` must be an int32 tensor. Received: token_ids={token_ids!r}"
        ) from error
    if token_ids.shape.rank != 2:
        raise ValueError(
            "`token_ids` must have shape [batch, length]. Received: token_ids with "
            f"shape {token_ids.shape}"
        )
    return token_ids


def check_slots(name: str, count: int, token_ids: tf.Tensor) -> int:
    """Returns `count` if there are so many tokens in a row, as far as is known."""
    return check_integer(name, count, 1, token_ids.shape[1])


def random_bits(
    seed: int,
    first_example: int | tf.Tensor,
    shape: tuple[int | tf.Tensor, int, int | tf.Tensor],
    stream: int = 0,
) -> list[tf.Tensor]:
    """Uniform 32-bit numbers that depend on the seed and an example's number.

    Philox makes four numbers of each value of a counter, so an example's numbers
    follow from the counter's value at that example.

    Args:
        seed: in [−2⁶³, 2⁶³).
        first_example: the number of the first row's example.
        shape: (B, N, T): rows, tensors to return, numbers in a row of each.
        stream: streams are independent of each other.

    Returns:
        N tensors [B, T] int64.
    """
    rows, count, length = shape
    steps = -(-count * length // 4)
    first = tf.cast(first_example, tf.int64) * tf.cast(steps, tf.int64)
    bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[rows, 4 * steps],
        key=tf.constant([seed % 2**64], tf.uint64),
        counter=tf.cast(tf.stack([first, stream]), tf.uint64),
        alg=1,  # Philox, on every device
        dtype=tf.uint32,
    )
    bits = tf.cast(bits, tf.int64)[:, : count * length]
    return tf.unstack(tf.reshape(bits, [rows, count, length]), axis=1)


def isin(token_ids: tf.Tensor, ids: Sequence[int]) -> tf.Tensor:
    """True `[B, T]` where the token is one of a few ids."""
    # One comparison for each id is faster than a reduction over an axis of ids.
    return functools.reduce(
        tf.logical_or, [token_ids == i for i in ids], tf.zeros_like(token_ids, tf.bool)
    )


def budget(special: tf.Tensor, mask_rate: float, max_targets: int) -> tf.Tensor:
    """Number of tokens to choose, `[B, 1]` int32: `mask_rate` of those not special.

    It is rounded, at least 1 unless all tokens are special, and at most `max_targets`.
    """
    candidates = tf.reduce_sum(tf.cast(~special, tf.int32), axis=-1, keepdims=True)
    wanted = tf.round(mask_rate * tf.cast(candidates, tf.float64))
    count = tf.minimum(tf.maximum(tf.cast(wanted, tf.int32), 1), candidates)
    return tf.minimum(count, max_targets)


def priorities(draws: tf.Tensor, excluded: tf.Tensor) -> tf.Tensor:
    """Random priorities `[B, T]` int64: all different, and −1 where excluded.

    The low 31 bits hold the position and break ties, so top-k returns exactly k.
    """
    order = draws * 2**31 + tf.range(tf.shape(draws)[1], dtype=tf.int64)
    return tf.where(excluded, tf.constant(-1, tf.int64), order)


def position_of(priority: tf.Tensor) -> tf.Tensor:
    """The position of a priority in its row, int32."""
    return tf.cast(priority % 2**31, tf.int32)


def choose_tokens(
    draws: tf.Tensor, special: tf.Tensor, count: tf.Tensor, max_targets: int
) -> tf.Tensor:
    """Chooses `count` tokens uniformly without replacement.

    Args:
        draws: [B, T] int64, random 32-bit numbers.
        special: [B, T] bool, tokens that are never chosen.
        count: [B, 1] int32, at most `max_targets` and the tokens not special.
        max_targets: M.

    Returns:
        [B, T] bool.
    """
    priority = priorities(draws, special)
    highest = tf.math.top_k(priority, max_targets).values
    highest = tf.where(tf.range(max_targets) < count, highest, tf.int64.max)
    return priority >= tf.reduce_min(highest, axis=-1, keepdims=True)


def slots(
    token_ids: tf.Tensor, chosen: tf.Tensor, max_targets: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Lists the chosen tokens in M slots.

    Returns:
        (positions, labels, weights), each [B, M]: ascending positions of the chosen
        tokens, the tokens there, and 1.0; zeros in the slots after them.
    """
    found = tf.cumsum(tf.cast(chosen, tf.int32), axis=1)
    number = tf.range(1, max_targets + 1)
    used = number <= found[:, -1:]
    number = tf.broadcast_to(number, tf.shape(used))
    positions = tf.where(used, tf.searchsorted(found, number), 0)
    labels = tf.where(used, tf.gather(token_ids, positions, batch_dims=1), 0)
    return positions, labels, tf.cast(used, tf.float32)
