"""Values by part of the sequence as one operation that saves the scores alone."""

import keras
from keras import ops

from tfeff.ops.attention import apply_keep_mask, weighted_values
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.ops.kernels.normalizers import WITH_GRADIENT


def part_values(
    scores,
    value,
    partition,
    normalizer="sigmoid_l2",
    mask=None,
    keep=None,
    context=None,
):
    """Equals `tfeff.ops.part_values`: `X̄[h] = (φ(S) ⊙ N[h]) V[h]`.

    The weights of the parts, `n` times as large as the scores, are recomputed for the
    gradient. `context` is the result, where a gradient computes again what led to it.
    """

    dtype = keras.backend.standardize_dtype(scores.dtype)
    half = dtype in ("float16", "bfloat16")

    def normalize(scores):
        return WITH_GRADIENT[normalizer](scores, mask)

    @custom_gradient
    def attend(scores, value):
        result = context
        if result is None:
            weights = apply_keep_mask(normalize(scores)[0], keep)
            result = weighted_values(weights * partition, value)

        def gradient(upstream):
            # Recomputed, not saved.
            one = barrier_one(upstream)
            weights, grad_scores = normalize(scores * one)
            # XLA on CPUs would repeat the partition for each sequence, and hold that;
            # on TPUs, which compute in half precision, the factor only costs time.
            again = partition if half else partition * one
            parts = apply_keep_mask(weights, keep) * again
            grad_value = ops.einsum("bnts,bnth->bnsh", parts, upstream)
            grad_parts = ops.einsum("bnth,bnsh->bnts", upstream, value) * again
            grad_weights = ops.sum(grad_parts, axis=1, keepdims=True)
            return grad_scores(apply_keep_mask(grad_weights, keep)), grad_value

        return result, gradient

    return attend(scores, value)
