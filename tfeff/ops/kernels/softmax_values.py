"""Softmax and the sum of values, as one operation that saves only the weights."""

from keras import ops

from tfeff.ops.attention import weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.near_far import (
    NearFar,
    add_near,
    far_rows,
    near_entries,
)
from tfeff.ops.kernels.relative_products import (
    relative_products,
    relative_sums,
    relative_values,
)
from tfeff.ops.masking import at_least_float32, masked_scores, softmax
from tfeff.utils.types import Tensor


def softmax_values(
    scores: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    partition: Tensor | None = None,
    keep: Tensor | None = None,
    rows: Tensor | None = None,
    context: Tensor | None = None,
) -> Tensor:
    """Equals `tfeff.ops.softmax_values`: `X̄[h] = (A[h] ⊙ F[h]) V[h]`.

    With `G` the gradient of `X̄`, the gradients are `(A ⊙ F)ᵀ G` for the values and
    `A ⊙ (F ⊙ (G Vᵀ) - δ)`, `δ[i] = G[i] · X̄[i]`, for the scores. So the backward pass
    saves only `A` and needs no reduction over it.

    `context` is `X̄` if a recomputation has it already; it is then not computed.

    Reference:
        Dao et al., "FlashAttention", section B.2, for the rearranged gradient.
    """
    dtype = scores.dtype
    visible = None if mask is None else ops.any(mask, axis=-1, keepdims=True)

    def with_factors(x, one=1.0):
        if partition is not None:
            x = x * (one * ops.cast(partition, x.dtype))
        return x if keep is None else ops.where(keep, x, ops.cast(one - 1.0, x.dtype))

    def zero_unseen(x):
        """`x` `[B, N, t, H]` with zeros in rows without a visible key."""
        return x if visible is None else x * ops.cast(visible, x.dtype)

    first = width = None
    if isinstance(rows, NearFar):
        value, first, width = value + far_rows(rows), rows.first, rows.width
        rows = rows.near

    def near_weights(weights):
        """The weights of the keys that have own rows, all or the near ones."""
        return weights if first is None else near_entries(weights, first, width)

    @custom_gradient
    def attend(scores, value, *rows):
        probs = ops.cast(softmax(masked_scores(scores, mask)), dtype)
        result = context
        if result is None:
            weights = with_factors(probs)
            result = weighted_values(weights, value)
            if rows:
                result = result + relative_values(near_weights(weights), *rows)
            result = zero_unseen(result)

        def gradient(upstream):
            upstream = zero_unseen(upstream)
            mean = at_least_float32(upstream) * at_least_float32(result)
            mean = ops.sum(mean, axis=-1, keepdims=True)
            one = barrier_one(upstream)
            weights = with_factors(probs, one)  # Recomputed, not saved.
            grads = [ops.einsum("bnts,bnth->bnsh", weights, upstream)]
            grad_probs = ops.einsum("bnth,bnsh->bnts", upstream, value)
            if rows:
                grads.append(relative_sums(near_weights(weights), upstream))
                products = relative_products(upstream, *rows)
                if first is None:
                    grad_probs = grad_probs + products
                else:
                    grad_probs = add_near(grad_probs, products, first)
            grad_probs = at_least_float32(with_factors(grad_probs, one))
            grad_scores = at_least_float32(probs) * (grad_probs - mean)
            return ops.cast(grad_scores, dtype), *grads

        return result, gradient

    if rows is None:
        return attend(scores, value)
    return attend(scores, value, rows)
