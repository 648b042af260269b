"""Near and far: what depends on the relative position is constant beyond some distance.

A block of `t` queries in a row meets its near keys, `W` in a row from the key `first`
on, with all that positions bring. To the left and to the right of these all keys are
alike to it: what positions bring is one row a side.

Shapes: B batch, t queries, S keys, W near keys, N heads, n parts, H head size.
"""

from typing import Any, NamedTuple

from keras import ops

from tfeff.ops.attention import dot_product_scores, dropped, weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.normalizers import WITH_GRADIENT
from tfeff.ops.shifting import toeplitz


class NearFar(NamedTuple):
    """What belongs to relative positions, for a block of queries.

    Attributes:
        near: tensor `[t + W, ...]` at the relative positions of the near keys to the
            first query, as the rows of `tfeff.ops.relative_terms`.
        left, right: tensors `[1, ...]` of all keys before and after the near ones.
        first: scalar integer tensor, the first near key.
        length: integer `S`.
    """

    near: Any
    left: Any
    right: Any
    first: Any
    length: int


def without_gradient(rows):
    """Rows, near and far or not, that no weight has a part in."""
    if isinstance(rows, NearFar):
        return NearFar(*map(ops.stop_gradient, rows[:3]), *rows[3:])
    return ops.stop_gradient(rows)


def place(near, left, right, first, length: int):
    """Near and far columns side by side.

    Args:
        near: tensor `[..., t, W]`.
        left, right: tensors broadcastable to `[..., t, S]`, of which the columns before
            and after the near ones are read.
        first: scalar integer tensor, the first near column.
        length: integer `S`.

    Returns:
        Tensor `[..., t, S]`.
    """
    *leading, count, width = ops.shape(near)
    columns = ops.arange(length, dtype="int32")
    zero = ops.zeros_like(first)
    corner = [*(zero for _ in leading), zero, first]

    @custom_gradient
    def side_by_side(near, left, right):
        sides = ops.where(columns < first, left, right)
        sides = ops.broadcast_to(sides, (*leading, count, length))
        placed = ops.slice_update(sides, corner, near)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            sides = columns < first, columns >= first + width
            return (
                ops.slice(upstream, corner, [*leading, count, width]),
                *_grads_of_sides((left, right), sides, upstream),
            )

        return placed, gradient

    return side_by_side(near, left, right)


def as_heads(row):
    """A row `[1, N, H]` or `[1, H]` beside vectors `[B, N, t, H]`."""
    return ops.swapaxes(row, 0, 1) if len(row.shape) == 3 else row


def far_sums(weights, first, width):
    """Sums `[..., t, 1]` of weights `[..., t, S]` before and after the near keys."""
    columns = ops.arange(ops.shape(weights)[-1], dtype="int32")
    sides = ops.stack([columns < first, columns >= first + width], axis=-1)
    sums = ops.matmul(weights, ops.cast(sides, weights.dtype))
    return [sums[..., :1], sums[..., 1:]]


def near_columns(x, first, width: int):
    """The near columns of `[..., S]`, `[..., W]`."""
    shape = ops.shape(x)
    zero = ops.zeros_like(first)
    return ops.slice(x, [*(zero for _ in shape[1:]), first], [*shape[:-1], width])


def near_keys(x, first, width: int):
    """The near keys of `[B, N, S, H]`, `[B, N, W, H]`."""
    batch, heads, _, size = ops.shape(x)
    zero = ops.zeros_like(first)
    return _sliced(x, [zero, zero, first, zero], [batch, heads, width, size])


def _sliced(x, corner, shape):
    """A slice at a place that is known when it runs; its gradient runs under XLA."""

    @custom_gradient
    def slice_of(x):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return ops.slice_update(ops.zeros_like(x), corner, upstream)

        return ops.slice(x, corner, shape), gradient

    return slice_of(x)


def _grads_of_sides(values, sides, gradient):
    """The gradients of what stands in columns before and after the near ones.

    Args:
        values: two tensors broadcastable to `[..., t, S]`.
        sides: bool tensors `[S]`, true at the columns of each.
        gradient: tensor `[..., t, S]`.
    """
    masks = [ops.cast(side, gradient.dtype) for side in sides]
    if values[0].shape[-1] == 1:
        # One product for both instead of a sum over pairs each.
        sums = ops.matmul(gradient, ops.stack(masks, axis=-1))
        return [
            _summed_like(value, sums[..., index : index + 1])
            for index, value in enumerate(values)
        ]
    return [_summed_like(value, gradient) * mask for value, mask in zip(values, masks)]


def _summed_like(x, gradient):
    """The gradient of `x` from that of its broadcast form."""
    rank = len(gradient.shape)
    shape = (1,) * (rank - len(x.shape)) + tuple(x.shape)
    axes = [i for i in range(rank) if shape[i] == 1 and gradient.shape[i] != 1]
    gradient = ops.sum(gradient, axis=axes, keepdims=True) if axes else gradient
    return ops.reshape(gradient, ops.shape(x))


def near_far_one_head_scores(query, key, partition, bias_embeddings):
    """Equals `tfeff.ops.one_head_scores` with a bias.

    Args:
        query, key, bias_embeddings: as there.
        partition: `NearFar` of rows `[..., n]`.

    Returns:
        Tensor `[B, 1, t, S]`.
    """
    of_parts = ops.einsum("bmtd,nd->bmtn", query, bias_embeddings)
    near = _near_partition(partition, ops.shape(query)[2])
    near = ops.einsum("bmtn,ntw->bmtw", of_parts, near)
    sides = [ops.sum(of_parts * row, -1, True) for row in partition[1:3]]
    return dot_product_scores(query, key) + place(near, *sides, *partition[3:])


def _near_partition(partition, count):
    """`[n, t, W]` of rows `[t + W, n]`."""
    return toeplitz(ops.moveaxis(partition.near, 0, -1), count)


def near_far_part_values(
    scores,
    value,
    partition,
    outer,
    embeddings=None,
    normalizer="sigmoid_l2",
    mask=None,
    keep=None,
    context=None,
):
    """Equals `tfeff.ops.part_values` where the far keys of a side have one part.

    Args:
        scores, value, embeddings, normalizer, mask, keep, context: as in
            `tfeff.ops.kernels.part_values`.
        partition: `NearFar` of rows `[..., n]`. It gets no gradient.
        outer: integers `(l, r)`, the parts of all keys before and after the near ones,
            whose function is 1 there.

    Returns:
        Tensor `[B, n, t, H]`.
    """
    near = _near_partition(partition, ops.shape(scores)[2])
    first, length = partition.first, partition.length
    num_parts, _, width = ops.shape(near)
    columns = ops.arange(length, dtype="int32")
    sides = columns < first, columns >= first + width
    ones = [ops.one_hot(part, num_parts, dtype=scores.dtype) for part in outer]

    def of_sides(x):
        return [ops.where(side, x, ops.zeros_like(x)) for side in sides]

    def at_part(x, one):
        """`[B, t, ...]` as that of one part, `[B, n, t, ...]`."""
        return x[:, None] * ops.reshape(one, (num_parts, *(1 for _ in x.shape[1:])))

    @custom_gradient
    def attend(scores, value, *embeddings):
        near_value = near_keys(value, first, width)
        weights = dropped(WITH_GRADIENT[normalizer](scores, mask)[0], keep)
        near_weights = near_columns(weights, first, width)
        if embeddings:
            shares = ops.einsum("bmts,nts->btn", near_weights, near)
            for total, one in zip(far_sums(weights, first, width), ones):
                shares = shares + total[:, 0] * one
        result = context
        if result is None:
            result = weighted_values(near_weights * near, near_value)
            for x, part, one in zip(of_sides(weights), outer, ones):
                of_part = ops.matmul(x[:, 0], value[:, part])
                result = result + at_part(of_part, one)
            if embeddings:
                result = result + ops.einsum("btn,nkh->bkth", shares, *embeddings)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            # Recomputed, not saved.
            again = scores * barrier_one(upstream)
            weights, grad_scores = WITH_GRADIENT[normalizer](again, mask)
            weights = dropped(weights, keep)
            near_weights = near_columns(weights, first, width)
            of_near = ops.einsum("bnts,bnth->bnsh", near_weights * near, upstream)
            zero = ops.zeros_like(first)
            grad_value = ops.slice_update(
                ops.zeros_like(value), [zero, zero, first, zero], of_near
            )
            grad_near = ops.einsum("bnth,bnsh->bnts", upstream, near_value) * near
            grad_sides = []
            for x, part, one in zip(of_sides(weights), outer, ones):
                of_part = ops.einsum("bts,bth->bsh", x[:, 0], upstream[:, part])
                grad_value = grad_value + at_part(of_part, one)
                grad_sides.append(
                    ops.einsum("bth,bsh->bts", upstream[:, part], value[:, part])
                )
            grad_near = ops.sum(grad_near, axis=1)
            grads = [grad_value]
            if embeddings:
                grad_shares = ops.einsum("bkth,nkh->btn", upstream, *embeddings)
                grad_near = grad_near + ops.einsum("btn,nts->bts", grad_shares, near)
                for index, part in enumerate(outer):
                    grad_side = grad_shares[..., part, None]
                    grad_sides[index] = grad_sides[index] + grad_side
                grads.append(ops.einsum("btn,bkth->nkh", shares, upstream))
            grad_weights = place(grad_near, *grad_sides, first, length)[:, None]
            return grad_scores(dropped(grad_weights, keep)), *grads

        return result, gradient

    if embeddings is None:
        return attend(scores, value)
    return attend(scores, value, embeddings)
