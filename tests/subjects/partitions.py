"""A user's partition of unity."""

import math

from keras import ops

from tfeff.layers import register_partition

TENTS = {"name": "tents_of_tests", "width": 1.5}


def tents_reach(num_parts, width=2.0):
    """Where the outer tents are 1."""
    return math.ceil(width * (num_parts - 1) / 2)


@register_partition("tents_of_tests", reach=tents_reach)
@register_partition("tents_without_reach")
def tents(relative_positions, num_parts, width=2.0):
    """Linear between knots that are `width` apart, from left to right, around 0."""
    position = relative_positions / width + (num_parts - 1) / 2
    position = ops.clip(position, 0, num_parts - 1)
    return ops.stack(
        [ops.maximum(0.0, 1.0 - ops.abs(position - h)) for h in range(num_parts)]
    )
