"""Partitions of unity over relative positions (Shatter, sections 3.1 and A.1).

A partition of unity is a group of functions `f_0 … f_{n-1}` of the relative
position `x = j - i`, none negative, that add up to 1 everywhere.
"""

import math
from collections.abc import Callable, Sequence

import keras
import numpy as np
from keras import ops

from tfeff.ops.shifting import relative_positions, toeplitz
from tfeff.utils.checks import check_integer, check_ordered, is_number
from tfeff.utils.types import Tensor

# The interval of the last layer's parts, in tokens (section A.1).
SPACING = 12.0
# The absolute values of the constants that float32 can compute with.
_SMALLEST, _LARGEST = 1e-6, 1e6
# Machine epsilon by dtype.
EPSILONS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
# Below this `α`, the terms with `e^α` are small beside others, or would overflow.
_STEEP = -8.0


def check_partition(
    num_parts: int,
    layer_index: int = 0,
    num_layers: int = 1,
    boundaries=None,
    alpha: float | None = None,
    beta: float | None = None,
    spacing: float = SPACING,
) -> None:
    """Raises unless the arguments describe a partition of unity.

    Raises:
        ValueError: if `num_parts` is odd without `boundaries`, `layer_index` is not
            in `[0, num_layers)`, `boundaries` are not `num_parts - 1` increasing
            finite numbers, `alpha`, `beta` or `spacing` is out of range, or one of
            these is given to a partition without it.
        TypeError: if `num_parts`, `layer_index` or `num_layers` is not an integer.
    """
    num_parts = check_integer("num_parts", num_parts)
    num_layers = check_integer("num_layers", num_layers)
    layer_index = check_integer(
        "layer_index", layer_index, minimum=0, maximum=num_layers - 1
    )
    _check_constants(num_parts, boundaries, alpha, beta, spacing)
    if boundaries is None:
        if num_parts % 2:
            raise ValueError(
                "`num_parts` must be even: half of the parts lie on each side of a "
                f"position. Received: num_parts={num_parts}"
            )
        return
    _check_boundaries(num_parts, boundaries)


def _check_constants(num_parts, boundaries, alpha, beta, spacing):
    """Raises if a constant is out of range, or has no effect on the partition."""
    given = {"alpha": alpha, "beta": beta}
    for name, value in given.items():
        if value is not None and not _in_range(value, -1):
            raise ValueError(
                f"`{name}` must be None, or a number from {-_LARGEST:g} to "
                f"{-_SMALLEST:g}. Received: {name}={value!r:.80}"
            )
    if not _in_range(spacing, 1):
        raise ValueError(
            f"`spacing` must be a number from {_SMALLEST:g} to {_LARGEST:g}. "
            f"Received: spacing={spacing!r:.80}"
        )
    given["spacing"] = None if spacing == SPACING else spacing
    if boundaries is not None or num_parts == 2:
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"`{name}` must be left out for step functions, as with "
                    f"`boundaries` or two parts. Received: {name}={value!r}, "
                    f"num_parts={num_parts}, boundaries={boundaries!r}"
                )
    if beta is not None and given["spacing"] is not None:
        raise ValueError(
            "`spacing` must be left out where `beta` is given, which it would "
            f"determine. Received: spacing={spacing!r}, beta={beta!r}"
        )


def _in_range(value, sign):
    return is_number(value) and _SMALLEST <= sign * value <= _LARGEST


def _check_boundaries(num_parts, boundaries):
    listed = isinstance(boundaries, (Sequence, np.ndarray))
    if (
        not listed
        or len(boundaries) != num_parts - 1
        or not all(map(is_number, boundaries))
        or not all(abs(b) < math.inf for b in boundaries)
        or not all(a < b for a, b in zip(boundaries, boundaries[1:]))
    ):
        raise ValueError(
            "`boundaries` must be `num_parts` - 1 finite numbers in increasing "
            f"order. Received: boundaries={boundaries!r:.80}, num_parts={num_parts}"
        )


def partition_functions(
    relative_positions: Tensor,
    num_parts: int,
    layer_index: int = 0,
    num_layers: int = 12,
    alpha: float | None = None,
    beta: float | None = None,
    spacing: float = SPACING,
) -> Tensor:
    """The Bernstein partition of one layer, at any relative positions.

    With `D = n/2 - 1`, `p = (k + 1) / L` and, unless they are given, `α = -p D` and
    `β = -(1/D) (D/s)^p`, the half-line `x ≥ 0` is mapped to `[0, 1]` by

        u(x) = ln(e^{βx} (1 - e^α) + e^α) / α

    and the right half of the partition is `f_ν(x) = C(D, ν) u^ν (1 - u)^(D - ν)`
    for `x > 0`. The left half mirrors it, `f_{n/2 + ν}(x) = f_ν(-x)`. Position 0
    counts half to either side, so that the sum is 1 there too. Parts are ordered
    from 0 outwards, right half first. Two parts are two step functions.

    Args:
        relative_positions: integer or float tensor of any shape `[...]`: `j - i`
            in tokens.
        num_parts: even integer `n ≥ 2`.
        layer_index: integer `k`, the layer's index in the stack, from 0.
        num_layers: integer `L > k`, the number of layers of the stack.
        alpha: float `α < 0`, the bend of `u`: near 0 it is `1 - e^{βx}`, and far below
            0 it is `min(x β / α, 1)`. `None` for the paper's.
        beta: float `β < 0`, how fast parts widen with the distance; `None` for the
            paper's.
        spacing: float `s > 0`, about the interval of the last layer's parts in tokens.

    Returns:
        Tensor `[n, ...]`, float32 (float64 for float64 positions).

    Raises:
        ValueError: if `num_parts` is odd, `layer_index` is not below `num_layers`,
            `alpha` or `beta` is not from -1e6 to -1e-6, `spacing` is not from 1e-6 to
            1e6, or one of these is given to a partition without it: two parts have
            none, and `beta` takes the place of `spacing`.

    Example:

    >>> from keras import ops
    >>> f = partition_functions(ops.arange(-3, 4), num_parts=8)
    >>> bool(ops.all(ops.abs(ops.sum(f, axis=0) - 1) < 1e-6))
    True

    Reference:
        Tian et al., "Shatter", sections 3.1 and A.1.
    """
    check_partition(num_parts, layer_index, num_layers, None, alpha, beta, spacing)
    dtype = keras.backend.standardize_dtype(
        getattr(relative_positions, "dtype", "float32")
    )
    x = ops.cast(relative_positions, "float64" if dtype == "float64" else "float32")
    right = 0.5 * (1.0 + ops.sign(x))
    degree = num_parts // 2 - 1
    if degree:
        progress = (layer_index + 1) / num_layers
        constants = _constants(degree, progress, alpha, beta, spacing)
        unit_interval = _unit_interval(ops.abs(x), *constants)
    else:
        unit_interval = ops.zeros_like(x), ops.ones_like(x)
    bernstein = _bernstein(unit_interval, degree)
    return ops.concatenate([bernstein * right, bernstein * (1.0 - right)], axis=0)


def partition_reach(
    num_parts: int,
    layer_index: int,
    num_layers: int,
    dtype: str = "float32",
    alpha: float | None = None,
    beta: float | None = None,
    spacing: float = SPACING,
) -> int:
    """The distance beyond which the inner parts vanish to the rounding of a dtype.

    The outer part of a side is `f(x) = u(x)^D`, which rises to 1, and the inner parts
    of the side sum to `1 - u(x)^D`. The reach is the largest `x` where this sum exceeds
    half of the dtype's epsilon, the rounding of 1.

    Args:
        num_parts, layer_index, num_layers: as in `partition_functions`.
        dtype: dtype of the partition.
        alpha, beta, spacing: as in `partition_functions`.

    Returns:
        Integer, in tokens.

    Raises:
        ValueError: as `partition_functions`.

    Example:

    >>> partition_reach(num_parts=12, layer_index=11, num_layers=12)
    259
    """
    check_partition(num_parts, layer_index, num_layers, None, alpha, beta, spacing)
    degree = num_parts // 2 - 1
    if degree == 0:
        return 0
    progress = (layer_index + 1) / num_layers
    alpha, beta = _constants(degree, progress, alpha, beta, spacing)
    rounding = EPSILONS[keras.backend.standardize_dtype(dtype)] / 2

    def is_near(x):
        # `1 - u`, as in `_unit_interval`.
        if alpha < _STEEP:
            z = beta * x - alpha + math.log1p(-math.exp(alpha))
            rest = (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) / -alpha
        else:
            rest = math.log1p(math.exp(beta * x) * math.expm1(-alpha)) / -alpha
        inner = -math.expm1(degree * math.log1p(-rest)) if rest < 1 else 1.0
        return inner > rounding

    # The inner parts decrease with the distance: near at `low`, and not at `high`.
    low, high = 0, 1
    while is_near(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_near(middle) else (low, middle)
    return low


def _constants(degree, progress, alpha, beta, spacing):
    """`α` and `β`, as given or the paper's."""
    if alpha is None:
        alpha = -progress * degree
    if beta is None:
        beta = -((degree / spacing) ** progress) / degree
    return float(alpha), float(beta)


def _unit_interval(distance, alpha, beta):
    """`(u, 1 - u)` of a distance, each without cancellation."""
    bx = beta * distance
    if alpha < _STEEP:
        # e^{βx}(1 - e^α) + e^α is e^{βx} (1 + (e^{α - βx} - e^α)), near x = 0, and
        # e^α (1 + e^{βx - α + ln(1 - e^α)}), far from it.
        near = ops.exp(ops.minimum(alpha - bx, 0.0)) - math.exp(alpha)
        u = (bx + ops.log1p(near)) / alpha
        rest = ops.softplus(bx - alpha + math.log1p(-math.exp(alpha))) / -alpha
    else:
        # The same is 1 + (e^{βx} - 1)(1 - e^α), and e^α (1 + e^{βx}(e^{-α} - 1)).
        u = ops.log1p(ops.expm1(bx) * -math.expm1(alpha)) / alpha
        rest = ops.log1p(ops.exp(bx) * math.expm1(-alpha)) / -alpha
    # Take the form that is exact here, and the other as its complement.
    u = ops.clip(ops.where(u < 0.5, u, 1.0 - rest), 0.0, 1.0)
    return u, ops.where(u < 0.5, 1.0 - u, ops.clip(rest, 0.0, 1.0))


def _bernstein(unit_interval, degree):
    """`B_ν(u) = C(D, ν) u^ν (1 - u)^(D - ν)` stacked over ν on a new first axis."""
    u, rest = unit_interval
    return ops.stack(
        [
            math.comb(degree, nu) * u**nu * rest ** (degree - nu)
            for nu in range(degree + 1)
        ],
        axis=0,
    )


def bucket_functions(relative_positions: Tensor, boundaries: Sequence[float]) -> Tensor:
    """The hard partition: step functions between given boundaries.

    `f_h(x) = 1` if `b_h ≤ x < b_{h+1}`, else 0, where `b_1 … b_{n-1}` are
    `boundaries`, `b_0 = -∞` and `b_n = ∞`. Parts are ordered from left to right.

    Args:
        relative_positions: integer or float tensor of any shape `[...]`: `j - i`
            in tokens.
        boundaries: `n - 1` numbers in increasing order.

    Returns:
        float32 tensor `[n, ...]`.

    Raises:
        TypeError: if `boundaries` is no list.
        ValueError: if they are not finite numbers in increasing order.

    Example:

    >>> from keras import ops
    >>> f = bucket_functions(ops.arange(-2, 3), boundaries=[0, 1])
    >>> ops.convert_to_numpy(f).tolist()[1]
    [0.0, 0.0, 1.0, 0.0, 0.0]

    Reference:
        Tian et al., "Shatter", section 3.1.
    """
    boundaries = list(check_ordered("boundaries", boundaries, "a list of numbers"))
    check_partition(len(boundaries) + 1, boundaries=boundaries)
    x = ops.cast(relative_positions, "float32")
    edges = [-math.inf, *boundaries, math.inf]
    return ops.stack(
        [
            ops.cast(ops.logical_and(x >= low, x < high), "float32")
            for low, high in zip(edges, edges[1:])
        ],
        axis=0,
    )


def partition_mask(
    functions: Callable[[Tensor], Tensor], length: Tensor | int
) -> Tensor:
    """Evaluates functions of the relative position at all pairs of positions.

    `N[h, i, j] = f_h(j - i)`.

    Args:
        functions: callable from an integer tensor `[R]` of relative positions to a
            tensor `[n, R]`, such as `partition_functions`.
        length: integer or integer tensor `T`.

    Returns:
        Tensor `[n, T, T]` in the dtype that `functions` returns.

    Example:

    >>> from keras import ops
    >>> mask = partition_mask(lambda x: bucket_functions(x, [1]), 3)
    >>> ops.convert_to_numpy(mask[1]).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]

    Reference:
        Tian et al., "Shatter", section 3.1.
    """
    return toeplitz(functions(relative_positions(length)))
