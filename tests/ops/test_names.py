"""What operations are told by name is one of the names that they know."""

import pytest
from keras import ops

from tfeff.ops import fixed_pattern, part_values, sinusoids, xlnet_scores_at

ONES = ops.ones((1, 1, 2, 4))
CALLS = {
    "layout": lambda name: sinusoids(ops.arange(3), 4, name),
    "pattern": lambda name: fixed_pattern(6, 2, 1, name),
    "sinusoid": lambda name: xlnet_scores_at(
        ops.zeros((1, 2), "int32"), ONES, ONES, ops.eye(4), None, None, name
    ),
    "normalizer": lambda name: part_values(
        ONES[..., :2], ONES, ops.ones((1, 2, 2)), name
    ),
}


@pytest.mark.parametrize("argument", CALLS)
def test_other_names_are_refused(argument):
    for name in ("concat", "sparse", None, 3):
        with pytest.raises(ValueError, match=f"`{argument}` must be one of"):
            CALLS[argument](name)
