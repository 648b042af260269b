"""Near and far keys: relative terms are constant beyond some distance.

A block of `t` consecutive queries has `W` consecutive near keys, from the key `first`
on, with a row of relative terms for each relative position. All keys to the left have
one row, and all to the right another. These are added to the far keys or values
themselves, `S` vectors, so that of the `t S` scores only the near ones are changed.

Shapes: B batch, t queries, S keys, W near keys, N heads, n parts, H head size.
"""

from typing import Any, NamedTuple

from keras import ops

from tfeff.ops.attention import dot_product_scores
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.relative_products import relative_products
from tfeff.utils.types import Tensor


class NearFar(NamedTuple):
    """Rows of relative terms for a block of queries.

    Attributes:
        near: tensor `[t + W, ...]` at the relative positions of the near keys to the
            first query, as the rows of `tfeff.ops.relative_terms`.
        left, right: tensors `[1, ...]` of all keys before and after the near ones.
        first: scalar integer tensor, the first near key.
        length: integer `S`.
        width: integer `W`.
    """

    near: Any
    left: Any
    right: Any
    first: Any
    length: int
    width: int


def without_gradient(rows):
    """Rows, `NearFar` or not, that get no gradient."""
    if isinstance(rows, NearFar):
        return NearFar(*map(ops.stop_gradient, rows[:3]), *rows[3:])
    return ops.stop_gradient(rows)


def add_near(x, near, first, axis: int = -1):
    """Adds `near` to the entries of `x` from `first` on.

    Args:
        x: tensor `[..., S]`; or `S` is another axis.
        near: tensor broadcastable to `[..., W]`, with `W` at that axis.
        first: scalar integer tensor, the first entry that is added to.
        axis: integer, the axis of keys.

    Returns:
        Tensor like `x`.
    """
    shape = [*ops.shape(x)]
    shape[axis] = width = ops.shape(near)[axis]
    near = ops.broadcast_to(near, shape)

    @custom_gradient
    def add(x, near):
        def gradient(upstream):
            return upstream, near_entries(upstream, first, width, axis)

        near = near_entries(x, first, width, axis) + near
        return ops.slice_update(x, _corner(x, first, axis), near), gradient

    return add(x, near)


def near_entries(x, first, width: int, axis: int = -1):
    """The entries of an axis from `first` on, `W` of them."""
    shape = [*ops.shape(x)]
    shape[axis] = width
    return ops.slice(x, _corner(x, first, axis), shape)


def near_keys(key, rows: NearFar):
    """The near keys `[B, N, W, H]` of keys `[B, N, S, H]`."""
    width, first = rows.width, rows.first

    @custom_gradient
    def take(key):
        def gradient(upstream):
            corner = _corner(key, first, -2)
            return ops.slice_update(ops.zeros_like(key), corner, upstream)

        return near_entries(key, first, width, -2), gradient

    return take(key)


def far_rows(rows: NearFar):
    """The row of each far key, 0 at near keys.

    Args:
        rows: `NearFar` of rows `[..., N, H]`, or `[..., H]` for all heads.

    Returns:
        Tensor `[N, S, H]`, or `[S, H]`.
    """
    return ops.matmul(far_sides(rows), _side_rows(rows))


def far_products(key, rows: NearFar):
    """Products of each far key with its row, 0 at near keys.

    Args:
        key: float tensor `[B, N, S, H]`.
        rows: as in `far_rows`.

    Returns:
        Tensor `[B, N, 1, S]`.
    """
    products = ops.matmul(key, ops.swapaxes(_side_rows(rows), -1, -2))
    products = ops.sum(products * far_sides(rows), axis=-1)
    return products[:, :, None]


def join_near_far(near, left, right, first, length: int):
    """Near and far columns side by side.

    Args:
        near: tensor `[..., t, W]`.
        left, right: tensors broadcastable to `[..., t, S]`, for the columns before and
            after the near ones.
        first: scalar integer tensor, the first near column.
        length: integer `S`.

    Returns:
        Tensor `[..., t, S]`.
    """
    sides = ops.where(ops.arange(length, dtype="int32") < first, left, right)
    sides = ops.broadcast_to(sides, (*ops.shape(near)[:-1], length))
    return ops.slice_update(sides, _corner(sides, first, -1), near)


def _corner(x, first, axis):
    """The start of the near entries: `first` on the axis of keys, 0 on all others."""
    corner = [ops.zeros_like(first) for _ in x.shape]
    corner[axis] = first
    return corner


def _side_rows(rows: NearFar):
    """The rows of both sides, `[..., 2, H]`."""
    return ops.moveaxis(ops.concatenate(rows[1:3], axis=0), 0, -2)


def far_sides(rows: NearFar):
    """`[S, 2]`: 1 at keys before the near ones, and at keys after them."""
    keys = ops.arange(rows.length, dtype="int32")
    sides = keys < rows.first, keys >= rows.first + rows.width
    return ops.cast(ops.stack(sides, axis=-1), rows.near.dtype)


def near_far_one_head_scores(
    query: Tensor, key: Tensor, partition: NearFar, bias_embeddings: Tensor
) -> Tensor:
    """Equals `tfeff.ops.one_head_scores` with a bias.

    Args:
        query, key, bias_embeddings: as there.
        partition: `NearFar` of rows `[..., n]`.

    Returns:
        Tensor `[B, 1, t, S]`.
    """
    part_products = ops.einsum("bmtd,nd->bmtn", query, bias_embeddings)
    # One head has fewer scores, `t S`, than features of its keys, `S H`.
    far = ops.matmul(part_products, ops.swapaxes(_side_rows(partition), 0, 1))
    far = ops.matmul(far, ops.swapaxes(far_sides(partition), 0, 1))
    near = relative_products(part_products, partition.near)
    return add_near(dot_product_scores(query, key) + far, near, partition.first)
