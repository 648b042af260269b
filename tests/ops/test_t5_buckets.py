"""T5's buckets and their boundaries against the buckets of all distances."""

import keras
import numpy as np
import pytest

from tfeff.ops import t5_boundaries, t5_buckets


def t5_bucket(x, num_buckets, max_distance):
    """T5's bidirectional bucket of `x`, in exact integer arithmetic."""
    half = num_buckets // 2
    exact = half // 2
    distance = abs(x)
    bucket = min(distance, exact)
    # Above `exact` distances grow by equal factors: step m is reached when
    # (distance / exact)^(half - exact) >= (max_distance / exact)^m.
    steps = half - exact
    for m in range(1, steps):
        if distance**steps * exact**m >= max_distance**m * exact**steps:
            bucket = exact + m
    return bucket + (half if x > 0 else 0)


@pytest.mark.parametrize("num_buckets, max_distance", [(32, 128), (16, 64), (8, 20)])
def test_t5_boundaries(num_buckets, max_distance):
    boundaries = t5_boundaries(num_buckets, max_distance)
    positions = range(-2 * max_distance, 2 * max_distance + 1)
    buckets = [t5_bucket(x, num_buckets, max_distance) for x in positions]
    changes = [
        x for x, old, new in zip(positions[1:], buckets, buckets[1:]) if old != new
    ]
    assert list(boundaries) == changes
    found = t5_buckets(np.reshape(positions, (1, -1, 1)), num_buckets, max_distance)
    assert keras.ops.convert_to_numpy(found).ravel().tolist() == buckets


def test_far_t5_buckets():
    """The work hardly grows with the distance."""
    far = 10**8
    boundaries = t5_boundaries(32, far)
    assert boundaries[14:24] == [*range(9), 62]
    x = boundaries[-1]
    found = t5_buckets(keras.ops.convert_to_tensor([-far, 1 - x, x - 1, x]), 32, far)
    assert keras.ops.convert_to_numpy(found).tolist() == [15, 14, 30, 31]


def test_t5_defaults():
    """32 buckets up to 128: the last ones start at a distance of 91."""
    boundaries = list(t5_boundaries())
    assert boundaries == list(t5_boundaries(32, 128))
    assert boundaries[-1] == 91
    assert boundaries[0] == -90
    assert len(boundaries) == 30
