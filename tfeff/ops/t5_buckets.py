"""T5's buckets of relative positions, which are wider at larger distances."""

import bisect
import math

import numpy as np
from keras import ops

from tfeff.utils.checks import check_integer
from tfeff.utils.types import Tensor


def check_t5_buckets(num_buckets: int, max_distance: int) -> None:
    """Raises unless T5's buckets can cover the distances up to `max_distance`."""
    num_buckets = check_integer("num_buckets", num_buckets, minimum=4)
    if num_buckets % 2:
        raise ValueError(
            "`num_buckets` must be even, half for each side. "
            f"Received: num_buckets={num_buckets}"
        )
    max_distance = check_integer("max_distance", max_distance)
    if max_distance <= num_buckets // 4:
        raise ValueError(
            "`max_distance` must be above a quarter of `num_buckets`. "
            f"Received: max_distance={max_distance}, num_buckets={num_buckets}"
        )


def t5_boundaries(num_buckets: int = 32, max_distance: int = 128) -> list[int]:
    """Boundaries of T5's buckets of bidirectional relative positions.

    Half of the buckets are for each side. In a half, distances below half its size
    have a bucket each; the other buckets grow logarithmically up to `max_distance`.
    Of `n = num_buckets` with `m = max_distance` and `e = ⌊n/4⌋`, the distance `d` has

        bucket(d) = d                                                        d < e
        bucket(d) = min(n/2 - 1, e + ⌊(n/2 - e) ln(d/e) / ln(m/e)⌋)          d ≥ e

    and a boundary `s` on the right is the first distance of a bucket, `1 - s` that of
    the left. Position 0 belongs to the left. The first bucket of the right half holds
    the distance 0, which never occurs there, so at most `num_buckets - 1` buckets are
    in use, and the list has at most `num_buckets - 2` entries: fewer where
    `max_distance` is too small for all of them.

    Args:
        num_buckets: even integer, buckets on both sides together.
        max_distance: integer, a distance in tokens that is in the last bucket, as are
            all larger ones; the bucket may begin before it.

    Returns:
        List of integers in increasing order, for `bucket_functions`.

    Raises:
        TypeError: if a number is not an integer.
        ValueError: if `num_buckets` is odd or below 4, or `max_distance` not above
            `num_buckets / 4`.

    Example:

    >>> t5_boundaries()[-3:], len(t5_boundaries())
    ([46, 64, 91], 30)

    Reference:
        Raffel et al., "Exploring the limits of transfer learning", section 2.1;
        used by the relative attention bias of Tian et al., "Shatter", section 2.
    """
    starts = sorted(set(_t5_side_starts(num_buckets, max_distance)))
    return [1 - x for x in reversed(starts)] + starts


def t5_buckets(
    relative_positions: Tensor, num_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    """The index of T5's bucket of each bidirectional relative position.

    Position 0 and those to the left have the buckets from 0, by distance; those to
    the right from `num_buckets / 2`, the first of which is never used:

        index(x) = bucket(|x|),                 x ≤ 0
        index(x) = bucket(x) + num_buckets/2,   x > 0

    with `bucket`, which is logarithmic at large distances, of `t5_boundaries`.

    Args:
        relative_positions: integer tensor of any shape: `j - i` in tokens.
        num_buckets: even integer, buckets on both sides together.
        max_distance: integer, a distance in tokens that is in the last bucket, as are
            all larger ones; the bucket may begin before it.

    Returns:
        int32 tensor of the same shape.

    Raises:
        TypeError, ValueError: as `t5_boundaries`.

    Example:

    >>> from keras import ops
    >>> buckets = t5_buckets(ops.convert_to_tensor([-1, 0, 1, 128]))
    >>> ops.convert_to_numpy(buckets).tolist()
    [1, 0, 17, 31]

    Reference:
        Raffel et al., "Exploring the limits of transfer learning", section 2.1.
    """
    x = ops.cast(relative_positions, "int32")
    starts = _t5_side_starts(num_buckets, max_distance)
    last = starts[-1]
    buckets = np.searchsorted(starts, np.arange(last + 1), side="right")
    # Not `ops.minimum`: Keras on JAX makes a float of it where floats are bfloat16.
    distance = ops.abs(ops.clip(x, -last, last))
    right = ops.cast(x > 0, "int32") * (num_buckets // 2)
    return ops.take(ops.convert_to_tensor(buckets, "int32"), distance) + right


def _t5_side_starts(num_buckets: int, max_distance: int) -> list[int]:
    """The first distance of each bucket but 0, or of the next one in use."""
    check_t5_buckets(num_buckets, max_distance)
    half = num_buckets // 2
    exact = half // 2

    def bucket(distance):
        if distance < exact:
            return distance
        growth = math.log(distance / exact) / math.log(max_distance / exact)
        return min(half - 1, exact + int(growth * (half - exact)))

    distances = range(max_distance + 1)
    return [bisect.bisect_left(distances, x, key=bucket) for x in range(1, half)]
