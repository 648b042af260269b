"""A function of queries and keys, applied to one block of queries after another.

Tensors over pairs exist for one block at a time, also in the backward pass, which
recomputes each block. So memory grows with the length, not with its square.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from tfeff.ops.kernels.backends import after, cond, custom_gradient, pull_back, scan
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.masking import at_least_float32
from tfeff.ops.slicing import slice_axis
from tfeff.utils.types import Tensor


def over_query_blocks(
    function: Callable,
    queries: Any,
    relative: Any,
    keys: Any,
    like: Tensor,
    block_size: int | None = None,
    near: tuple[int, int] | None = None,
    longest: int | None = None,
) -> Tensor:
    """`function(queries, relative, keys, None)`, by blocks of queries, recomputed.

    Equals the function itself, values and gradients. Every tensor that gets a gradient
    must be in the arguments of the function, which are nested structures of tensors and
    `None`.

    Args:
        function: gives context vectors `[B, N, t, H]` of `t` queries. When the backward
            pass recomputes it, its last argument is its first result: it may return
            that and compute only what the gradient needs.
        queries: tensors `[..., T, x]`, split into blocks along the last axis but one.
        relative: tensors `[T + S, ...]` at the relative positions `1 - T … S` to the
            first query. A block of `t` queries gets its `t + S` rows.
        keys: all other tensors. Every block gets them whole.
        like: tensor `[B, N, S, H]` with the dtype of the result.
        block_size: integer `t`; `None` for one block with all queries, which the
            backward pass recomputes.
        near: integers `(reach, W)`: a block of `t` queries from position `i` on gets
            the `t + W` rows of `relative` for the `W` keys from
            `clip(i - reach, 0, S - W)` on. `relative` is then given at `-P … P`, with
            `P = t + W`. `None` for all keys.
        longest: integer, for queries of unknown number: up to so many are computed at
            once. `None` if all numbers of queries are in blocks.

    Returns:
        Tensor `[B, N, T, H]`.

    Reference:
        Rabe and Staats, "Self-attention does not need O(n²) memory"; Korthikanti et
        al., "Reducing activation recomputation in large Transformer models", section
        5, for one block.
    """
    structures = queries, relative, keys
    counts = [len(_present(part)) for part in structures]
    inputs = [x for part in structures for x in _present(part)]
    floats = [index for index, x in enumerate(inputs) if _is_float(x)]

    def apply(inputs, context=None):
        inputs = iter(inputs)
        return function(*(_filled(part, inputs) for part in structures), context)

    def pull(inputs, context, upstream):
        """The gradients of the floats among the inputs."""

        def differentiable(*values):
            return apply(_replaced(inputs, floats, values), context)

        return pull_back(differentiable, [inputs[index] for index in floats], upstream)

    blocks = block_size and _Blocks(
        inputs, counts, block_size, near, ops.shape(like)[2]
    )

    def by_number(in_blocks, at_once, *operands):
        if not blocks:
            return at_once(*operands)
        if longest is None:
            return in_blocks(*operands)
        # Within the custom gradient, not around it: XLA cannot save tensors of unknown
        # shape from a branch.
        return cond(blocks.length > longest, in_blocks, at_once, operands)

    @custom_gradient
    def attend(*values):
        def values_in_blocks(inputs):
            return blocks.values(apply, inputs, like)

        given = _replaced(inputs, floats, values)
        context = by_number(values_in_blocks, apply, given)

        def gradient(upstream):
            def in_blocks(inputs, context, upstream):
                with after([upstream]):
                    return blocks.gradients(pull, inputs, floats, context, upstream)

            def at_once(inputs, context, upstream):
                # Recomputed, not saved.
                one = barrier_one(upstream)
                delayed = [
                    inputs[index] * ops.cast(one, inputs[index].dtype)
                    for index in floats
                ]
                return pull(_replaced(inputs, floats, delayed), context, upstream)

            return tuple(by_number(in_blocks, at_once, given, context, upstream))

        return context, gradient

    return attend(*(inputs[index] for index in floats))


class _Blocks:
    """Inputs in blocks of queries: `queries`, then `relative`, then `keys`."""

    def __init__(self, inputs, counts, size, near, num_keys):
        self.size = size
        self.near = near
        self.num_keys = num_keys
        self.ends = counts[0], counts[0] + counts[1]
        self.length = ops.shape(inputs[0])[-2]
        self.count = (self.length + size - 1) // size
        self.missing = self.count * size - self.length

    def values(self, apply, inputs, like):
        """The results of all blocks."""
        block_of = self._parts(inputs)

        def step(carry, x):
            return carry, [apply(block_of(*x))]

        shape = (*like.shape[:2], self.size, like.shape[3])
        _, (values,) = scan(step, [], [self._starts()], [(like.dtype, shape)])
        return self._joined(values)

    def gradients(self, pull, inputs, floats, context, upstream):
        """The gradients of the inputs with the indices `floats`."""
        block_of = self._parts(inputs)
        query_floats = [index for index in floats if index < self.ends[0]]
        others = floats[len(query_floats) :]
        results = [self._full(x) for x in (context, upstream)]

        def step(sums, x):
            (start,) = x
            block_results = [self._rows(x, start) for x in results]
            gradients = pull(block_of(start), *block_results)
            added = zip(others, sums, gradients[len(query_floats) :])
            sums = [self._added(index, start, total, y) for index, total, y in added]
            return sums, gradients[: len(query_floats)]

        # Half precision would lose digits in sums over many blocks.
        sums = [
            ops.zeros_like(at_least_float32(self._padded(index, inputs[index])))
            for index in others
        ]
        sums, gradients = scan(
            step,
            sums,
            [self._starts()],
            [
                (x.dtype, (*x.shape[:-2], self.size, x.shape[-1]))
                for x in map(inputs.__getitem__, query_floats)
            ],
        )
        gradients = [self._joined(gradient) for gradient in gradients]
        for index, total in zip(others, sums):
            if index < self.ends[1] and not self.near:
                total = slice_axis(total, 0, self.missing)
            gradients.append(ops.cast(total, inputs[index].dtype))
        return gradients

    def _parts(self, inputs):
        """A function from a block's first query to its inputs."""
        first, last = self.ends
        queries = [self._full(x) for x in inputs[:first]]
        relative = [self._padded(first, x) for x in inputs[first:last]]

        def block_of(start):
            rows = [self._rows(x, start) for x in queries]
            windows = [
                ops.slice(x, self._corner(start, x), self._window_shape(x))
                for x in relative
            ]
            return [*rows, *windows, *inputs[last:]]

        return block_of

    def _starts(self):
        """The first query of each block."""
        return self.size * ops.arange(self.count, dtype="int32")

    def _padded(self, index, x):
        """Pads relative positions at their start, if the last block is not full."""
        if not self.ends[0] <= index < self.ends[1] or self.near:
            return x
        return ops.pad(x, ((self.missing, 0), *((0, 0) for _ in x.shape[1:])))

    def _corner(self, start, x):
        """The start of a block's window in the padded relative positions."""
        corner = (self.count - 1) * self.size - start
        if self.near:
            corner = first_near(start, *self.near, self.num_keys) - start
            corner = corner + self.near[1] + 1
        return [corner, *(ops.zeros_like(start) for _ in x.shape[1:])]

    def _window_shape(self, x):
        rows = (
            self.size + self.near[1]
            if self.near
            else (ops.shape(x)[0] - (self.count - 1) * self.size)
        )
        return [rows, *ops.shape(x)[1:]]

    def _added(self, index, start, total, x):
        x = ops.cast(x, total.dtype)
        if index >= self.ends[1]:
            return total + x
        corner = self._corner(start, total)
        x = x + ops.slice(total, corner, self._window_shape(total))
        return ops.slice_update(total, corner, x)

    def _full(self, x):
        """`[..., T, x]`, padded to full blocks."""
        sides = [(0, 0) for _ in x.shape]
        sides[-2] = 0, self.missing
        return ops.pad(x, sides)

    def _rows(self, x, start):
        """The queries of a block, `[..., t, x]`."""
        *leading, _, width = ops.shape(x)
        zero = ops.zeros_like(start)
        corner = [*(zero for _ in leading), start, zero]
        return ops.slice(x, corner, (*leading, self.size, width))

    def _joined(self, x):
        """`[A, ..., t, x]` to `[..., T, x]`."""
        x = ops.moveaxis(x, 0, -3)
        *leading, count, size, width = ops.shape(x)
        x = ops.reshape(x, (*leading, count * size, width))
        return slice_axis(x, -2, 0, self.length)


def first_near(start, reach: int, width: int, num_keys: int):
    """The first near key of a block of queries that starts at a position."""
    # Keras' maximum of integers and a number is of floats on JAX in half precision.
    return ops.clip(start - reach, 0, num_keys - width)


def _present(structure):
    return [x for x in tree.flatten(structure) if x is not None]


def _filled(structure, values):
    """The structure with the next values in place of its tensors."""
    flat = [None if x is None else next(values) for x in tree.flatten(structure)]
    return tree.pack_sequence_as(structure, flat)


def _replaced(values, indices, others):
    values = list(values)
    for index, other in zip(indices, others):
        values[index] = other
    return values


def _is_float(x):
    return keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype))
