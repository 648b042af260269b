"""Values by part of the sequence, as one operation that saves the scores alone."""

import keras
from keras import ops

from tfeff.ops.attention import apply_keep_mask, weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.near_far import add_near, far_sides, near_entries
from tfeff.ops.kernels.normalizers import WITH_GRADIENT
from tfeff.ops.relative import toeplitz_rows
from tfeff.utils.types import Tensor


def part_values(
    scores: Tensor,
    value: Tensor,
    partition: Tensor,
    normalizer: str = "sigmoid_l2",
    mask: Tensor | None = None,
    keep: Tensor | None = None,
    context: Tensor | None = None,
) -> Tensor:
    """Equals `tfeff.ops.part_values`: `X̄[h] = (φ(S) ⊙ N[h]) V[h]`.

    The weights of the parts, `n` times as large as the scores, are recomputed in the
    backward pass. `context` is the result, if a recomputation has it already.
    """
    dtype = keras.backend.standardize_dtype(scores.dtype)
    half = dtype in ("float16", "bfloat16")

    def combine(weights, value):
        return weighted_values(weights * partition, value)

    def gradients(weights, value, upstream, one):
        # XLA on CPUs would repeat the partition for each sequence, and save that; on
        # TPUs, which compute in half precision, the factor only costs time.
        parts = partition if half else partition * one
        grad_value = ops.einsum("bnts,bnth->bnsh", weights * parts, upstream)
        grad_parts = ops.einsum("bnth,bnsh->bnts", upstream, value) * parts
        return ops.sum(grad_parts, axis=1, keepdims=True), grad_value

    return _weigh_and_recompute(
        combine, gradients, scores, value, normalizer, mask, keep, context
    )


def near_far_part_values(
    scores: Tensor,
    value: Tensor,
    partition: Tensor,
    outer: tuple[int, int],
    normalizer: str = "sigmoid_l2",
    mask: Tensor | None = None,
    keep: Tensor | None = None,
    context: Tensor | None = None,
) -> Tensor:
    """Equals `tfeff.ops.part_values` where the far keys of a side have one part.

    The values of both far sides are side by side, `[B, S, 2 H]`, and 0 for other keys:
    one product weights them.

    Args:
        scores, value, normalizer, mask, keep, context: as in `part_values`.
        partition: `NearFar` of rows `[..., n]`. It gets no gradient.
        outer: integers `(l, r)`, the parts of all keys before and after the near ones,
            whose function is 1 there.

    Returns:
        Tensor `[B, n, t, H]`.
    """
    first, near = partition.first, toeplitz_rows(scores, partition.near)
    num_parts, width = ops.shape(near)[0], partition.width
    sides = ops.repeat(far_sides(partition), value.shape[-1], axis=-1)

    def gather_outer(x):
        """The outer parts of `[B, n, ..., H]`, `[B, ..., 2 H]`."""
        return ops.concatenate([x[:, part] for part in outer], axis=-1)

    def scatter_outer(x):
        """The reverse: `[B, n, ..., H]`, which is 0 for all other parts."""
        halves = ops.split(x, 2, axis=-1)
        parts = [ops.zeros_like(halves[0]) for _ in range(num_parts)]
        for part, half in zip(outer, halves):
            parts[part] = parts[part] + half
        return ops.stack(parts, axis=1)

    def near_and_far(weights, value):
        """The near weights of each part and the near values; the far values."""
        near_weights = near_entries(weights, first, width) * near
        near_value = near_entries(value, first, width, -2)
        return near_weights, near_value, gather_outer(value) * sides

    def combine(weights, value):
        near_weights, near_value, far_value = near_and_far(weights, value)
        context = weighted_values(near_weights, near_value)
        return context + scatter_outer(ops.matmul(weights[:, 0], far_value))

    def gradients(weights, value, upstream, one):
        near_weights, near_value, far_value = near_and_far(weights, value)
        far_upstream = gather_outer(upstream)
        grad_near = ops.einsum("bnts,bnth->bnsh", near_weights, upstream)
        grad_far = ops.einsum("bts,bth->bsh", weights[:, 0], far_upstream) * sides
        grad_value = add_near(scatter_outer(grad_far), grad_near, first, -2)
        grad_near = ops.einsum("bnth,bnsh->bnts", upstream, near_value) * near
        grad_near = ops.sum(grad_near, axis=1, keepdims=True)
        grad_weights = ops.einsum("bth,bsh->bts", far_upstream, far_value)
        return add_near(grad_weights[:, None], grad_near, first), grad_value

    return _weigh_and_recompute(
        combine, gradients, scores, value, normalizer, mask, keep, context
    )


def _weigh_and_recompute(
    combine, gradients, scores, value, normalizer, mask, keep, context
):
    """Values combined by normalised scores; the backward pass saves the scores alone.

    Args:
        combine: function of weights `[B, 1, t, S]` and values, with the result.
        gradients: function of weights, values, the upstream gradient and a factor of 1
            (`barrier_one`), with the gradients of weights and of values.
        scores, value, normalizer, mask, keep, context: as in `part_values`.
    """
    normalize = WITH_GRADIENT[normalizer]

    @custom_gradient
    def attend(scores, value):
        result = context
        if result is None:
            weights, _ = normalize(scores, mask)
            result = combine(apply_keep_mask(weights, keep), value)

        def gradient(upstream):
            one = barrier_one(upstream)
            weights, grad_scores = normalize(scores * one, mask)
            weights = apply_keep_mask(weights, keep)
            grad_weights, grad_value = gradients(weights, value, upstream, one)
            return grad_scores(apply_keep_mask(grad_weights, keep)), grad_value

        return result, gradient

    return attend(scores, value)
