"""Values by part of the sequence as one operation that saves the scores alone."""

from keras import ops

from tfeff.ops.attention import dropped, weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.normalizers import WITH_GRADIENT


def part_values(
    scores,
    value,
    partition,
    embeddings=None,
    normalizer="sigmoid_l2",
    mask=None,
    keep=None,
    context=None,
):
    """Equals `tfeff.ops.part_values`: `X̄[h] = (φ(S) ⊙ N[h]) V[h]`, and the embeddings.

    The weights of the parts, `n` times as large as the scores, are recomputed for the
    gradient. `context` is the result, where a gradient computes again what led to it.
    """

    def normalize(scores):
        return WITH_GRADIENT[normalizer](scores, mask)

    @custom_gradient
    def attend(scores, value, *embeddings):
        weights = dropped(normalize(scores)[0], keep)
        if embeddings:
            shares = ops.einsum("bmts,nts->bmtn", weights, partition)
        result = context
        if result is None:
            result = weighted_values(weights * partition, value)
            if embeddings:
                result = result + ops.einsum("bmtn,nkh->bkth", shares, *embeddings)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            # Recomputed, not saved.
            weights, grad_scores = normalize(scores * barrier_one(upstream))
            parts = dropped(weights, keep) * partition
            grads = [ops.einsum("bnts,bnth->bnsh", parts, upstream)]
            grad_parts = ops.einsum("bnth,bnsh->bnts", upstream, value) * partition
            grad_weights = ops.sum(grad_parts, axis=1, keepdims=True)
            if embeddings:
                grad_shares = ops.einsum("bkth,nkh->btn", upstream, *embeddings)
                grad_weights = grad_weights + ops.expand_dims(
                    ops.einsum("btn,nts->bts", grad_shares, partition), 1
                )
                grads.append(ops.einsum("bmtn,bkth->nkh", shares, upstream))
            return grad_scores(dropped(grad_weights, keep)), *grads

        return result, gradient

    if embeddings is None:
        return attend(scores, value)
    return attend(scores, value, embeddings)
