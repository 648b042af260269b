"""The partition of unity of Shatter, sections 3.1 and A.1."""

import functools
import math

import numpy as np


def bernstein(degree, nu, u):
    """`B_nu(u)`, the Bernstein polynomial."""
    return math.comb(degree, nu) * u**nu * (1.0 - u) ** (degree - nu)


def layer_constants(
    degree, layer_index, num_layers, alpha=None, beta=None, spacing=12.0
):
    """`alpha` and `beta` of layer `layer_index` (from 0) of `num_layers`.

    They are "hyper-parameters": either may be given, and so may the 12.
    """
    depth = (layer_index + 1) / num_layers
    if alpha is None:
        alpha = -depth * degree
    if beta is None:
        beta = -(1.0 / degree) * (degree / spacing) ** depth
    return alpha, beta


def unit_coordinate(x, alpha, beta):
    """`u(x)`, which takes [0, inf] to [0, 1]."""
    u = math.log(math.exp(beta * x) * (1 - math.exp(alpha)) + math.exp(alpha)) / alpha
    return min(max(u, 0.0), 1.0)


def right_function(nu, x, num_parts, layer_index, num_layers, *constants):
    """The `nu`-th function of the right half, counted outwards, for `x > 0`."""
    degree = num_parts // 2 - 1
    if degree == 0:
        return 1.0
    alpha, beta = layer_constants(degree, layer_index, num_layers, *constants)
    return bernstein(degree, nu, unit_coordinate(x, alpha, beta))


def partition_function(h, x, num_parts, layer_index=0, num_layers=12, *constants):
    """`f_h(x)`: the right half first, then its mirror image on the left.

    `constants` are those of `layer_constants`.
    """
    half = num_parts // 2
    if x == 0:
        # The two innermost functions share relative position 0.
        return 0.5 if h in (0, half) else 0.0
    if h < half:
        if x < 0:
            return 0.0
        return right_function(h, x, num_parts, layer_index, num_layers, *constants)
    if x > 0:
        return 0.0
    return right_function(h - half, -x, num_parts, layer_index, num_layers, *constants)


def bucket_function(h, x, boundaries):
    """`f_h(x)` of the hard buckets: 1 where `b_h <= x < b_{h+1}`."""
    b = [-math.inf, *boundaries, math.inf]
    return 1.0 if b[h] <= x < b[h + 1] else 0.0


@functools.cache
def partition_mask(
    length, num_parts, layer_index=0, num_layers=12, boundaries=None, *constants
):
    """`N[h, i, j] = f_h(j - i)`, [n, T, T]; `boundaries` must be a tuple.

    `constants` are those of `layer_constants`.
    """
    mask = np.zeros((num_parts, length, length))
    for h in range(num_parts):
        for i in range(length):
            for j in range(length):
                if boundaries is None:
                    value = partition_function(
                        h, j - i, num_parts, layer_index, num_layers, *constants
                    )
                else:
                    value = bucket_function(h, j - i, boundaries)
                mask[h, i, j] = value
    mask.flags.writeable = False
    return mask


@functools.cache
def tent_mask(length, num_parts, width):
    """`N[h, i, j]` of the tents that the tests register: `width` apart, around 0."""
    mask = np.zeros((num_parts, length, length))
    for h in range(num_parts):
        for i in range(length):
            for j in range(length):
                mask[h, i, j] = tent(h, j - i, num_parts, width)
    mask.flags.writeable = False
    return mask


def tent(h, x, num_parts, width):
    """Linear from 1 at its knot to 0 at its neighbours'; 1 beyond the outer knots."""
    position = x / width + (num_parts - 1) / 2
    if h == 0 and position < 0 or h == num_parts - 1 and position > num_parts - 1:
        return 1.0
    return max(0.0, 1.0 - abs(position - h))
