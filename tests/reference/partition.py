"""The partition of unity of Shatter, sections 3.1 and A.1."""

import functools
import math

import numpy as np


def bernstein(degree, nu, u):
    """`B_nu(u)`, the Bernstein polynomial."""
    return math.comb(degree, nu) * u**nu * (1.0 - u) ** (degree - nu)


def layer_constants(degree, layer_index, num_layers):
    """`alpha` and `beta` of layer `layer_index` (from 0) of `num_layers`."""
    depth = (layer_index + 1) / num_layers
    alpha = -depth * degree
    beta = -(1.0 / degree) * (degree / 12.0) ** depth
    return alpha, beta


def unit_coordinate(x, alpha, beta):
    """`u(x)`, which takes [0, inf] to [0, 1]."""
    u = math.log(math.exp(beta * x) * (1 - math.exp(alpha)) + math.exp(alpha)) / alpha
    return min(max(u, 0.0), 1.0)


def right_function(nu, x, num_parts, layer_index, num_layers):
    """The `nu`-th function of the right half, counted outwards, for `x > 0`."""
    degree = num_parts // 2 - 1
    if degree == 0:
        return 1.0
    alpha, beta = layer_constants(degree, layer_index, num_layers)
    return bernstein(degree, nu, unit_coordinate(x, alpha, beta))


def partition_function(h, x, num_parts, layer_index=0, num_layers=12):
    """`f_h(x)`: the right half first, then its mirror image on the left."""
    half = num_parts // 2
    if x == 0:
        # The two innermost functions share relative position 0.
        return 0.5 if h in (0, half) else 0.0
    if h < half:
        if x < 0:
            return 0.0
        return right_function(h, x, num_parts, layer_index, num_layers)
    if x > 0:
        return 0.0
    return right_function(h - half, -x, num_parts, layer_index, num_layers)


def bucket_function(h, x, boundaries):
    """`f_h(x)` of the hard buckets: 1 where `b_h <= x < b_{h+1}`."""
    b = [-math.inf, *boundaries, math.inf]
    return 1.0 if b[h] <= x < b[h + 1] else 0.0


@functools.cache
def partition_mask(length, num_parts, layer_index=0, num_layers=12, boundaries=None):
    """`N[h, i, j] = f_h(j - i)`, [n, T, T]; `boundaries` must be a tuple."""
    mask = np.zeros((num_parts, length, length))
    for h in range(num_parts):
        for i in range(length):
            for j in range(length):
                if boundaries is None:
                    value = partition_function(
                        h, j - i, num_parts, layer_index, num_layers
                    )
                else:
                    value = bucket_function(h, j - i, boundaries)
                mask[h, i, j] = value
    mask.flags.writeable = False
    return mask
