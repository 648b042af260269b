"""Softmax and the sum of values over two groups of keys, as one operation."""

from collections.abc import Sequence

from keras import ops

from tfeff.ops.attention import apply_keep_mask, weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.masking import MASKED, at_least_float32, masked_scores
from tfeff.utils.types import Tensor


def window_values(
    scores: Sequence[Tensor],
    values: Sequence[Tensor],
    masks: Sequence[Tensor | None],
    keep: Sequence[Tensor | None] = (None, None),
    context: Tensor | None = None,
) -> Tensor:
    """Values weighted by one softmax over the keys of a window and those of all.

    Equals `tfeff.ops.softmax_values` of both groups of keys concatenated, but shared
    keys exist once. The gradients are those of `tfeff.ops.kernels.softmax_values`: the
    backward pass saves only the weights.

    Shapes: B batch, N heads, W windows of t queries and c keys, S shared keys.

    Args:
        scores: float tensors `[B, N, W, t, c]` and `[B, N, W, t, S]`.
        values: float tensors `[B, N, W, c, H]` and `[B, N, S, H]`.
        masks: bool tensors `[B or 1, 1, W, 1, c]` and `[B or 1, 1, 1, 1, S]`, true
            where a key is visible; `None` for the latter if all shared keys are.
        keep: bool tensors like the scores, false at dropped weights, or `None` twice.
            Kept weights are not scaled up here.
        context: the result if a recomputation has it already, or `None`.

    Returns:
        Tensor `[B, N, W, t, H]`.
    """
    dtype = scores[0].dtype
    visible = None
    if masks[1] is not None:
        visible = [ops.any(mask, axis=-1, keepdims=True) for mask in masks]
        # As numbers: LiteRT cannot broadcast bools of more than four dimensions.
        visible = ops.maximum(*(ops.cast(x, dtype) for x in visible))

    def zero_unseen(x):
        """`x` with zeros in windows without a visible key."""
        return x if visible is None else x * visible

    def with_dropout(probs, one=1.0):
        return [
            x if kept is None else ops.where(kept, x, ops.cast(one - 1.0, x.dtype))
            for x, kept in zip(probs, keep)
        ]

    @custom_gradient
    def attend(*inputs):
        scores, (own, shared) = inputs[:2], inputs[2:]
        probs = [ops.cast(x, dtype) for x in _softmax(scores, masks)]
        result = context
        if result is None:
            own_weights, shared_weights = with_dropout(probs)
            result = ops.einsum("bnwtc,bnwch->bnwth", own_weights, own)
            products = weighted_values(_joined(shared_weights), shared)
            result = zero_unseen(result + ops.reshape(products, ops.shape(result)))

        def gradient(upstream):
            upstream = zero_unseen(upstream)
            mean = at_least_float32(upstream) * at_least_float32(result)
            mean = ops.sum(mean, axis=-1, keepdims=True)
            rows = _joined(upstream)
            # Recomputed, not saved.
            own_weights, shared_weights = with_dropout(probs, barrier_one(upstream))
            grad_values = (
                ops.einsum("bnwtc,bnwth->bnwch", own_weights, upstream),
                ops.einsum("bnts,bnth->bnsh", _joined(shared_weights), rows),
            )
            grad_probs = (
                ops.einsum("bnwth,bnwch->bnwtc", upstream, own),
                ops.einsum("bnth,bnsh->bnts", rows, shared),
            )
            grad_scores = []
            for prob, grad, kept in zip(probs, grad_probs, keep):
                grad = apply_keep_mask(ops.reshape(grad, ops.shape(prob)), kept)
                grad = at_least_float32(prob) * (at_least_float32(grad) - mean)
                grad_scores.append(ops.cast(grad, dtype))
            return *grad_scores, *grad_values

        return result, gradient

    return attend(*scores, *values)


def _softmax(scores, masks):
    """The softmax over the last axes of both groups, in float32 or better."""
    scores = [masked_scores(x, mask) for x, mask in zip(scores, masks)]
    top = (ops.max(x, axis=-1, keepdims=True, initial=MASKED) for x in scores)
    top = ops.maximum(*top)
    powers = [ops.exp(x - top) for x in scores]
    total = sum(ops.sum(x, axis=-1, keepdims=True) for x in powers)
    return [x / total for x in powers]


def _joined(x):
    """`[B, N, W, t, x]` to `[B, N, W t, x]`: one product for all windows is faster."""
    batch, heads, count, size, width = ops.shape(x)
    return ops.reshape(x, (batch, heads, count * size, width))
