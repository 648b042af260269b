"""Products over three tensors, a few features at a time."""

import math

from keras import ops

from tfeff.ops.attention import dot_product_scores, scaled
from tfeff.ops.kernels.backends import custom_gradient, in_turn, scan
from tfeff.ops.kernels.near_far import NearFar, add_near, far_rows, near_keys
from tfeff.ops.masking import at_least_float32
from tfeff.ops.shifting import relative_unshift, toeplitz
from tfeff.utils.types import Tensor

# Features of one step.
_FEATURES = 8


def gated_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.gated_scores`: `s[i, j] = Σ_h q_i[h] k_j[h] a_x[h] / sqrt(H)`.

    This is no matrix product. The sum runs over a few features at a time, also in the
    backward pass, so that all pairs with all features, `[B, N, t, S, H]`, never exist
    at once.
    """
    if isinstance(rows, NearFar):
        near = gated_scores(query, near_keys(key, rows), rows.near)
        far = dot_product_scores(query, key * far_rows(rows))
        return add_near(far, near, rows.first)
    rows = rows[:, None] if len(rows.shape) == 2 else rows
    size = query.shape[-1]
    together = math.gcd(size, _FEATURES)

    def by_features(x):
        x = ops.transpose(x, (3, 0, 1, 2))
        return ops.reshape(x, (size // together, together, *ops.shape(x)[1:]))

    # The rows are scaled, not the queries: they are fewer. ONNX Runtime, to 1.32 at
    # least, ends the process where the loop takes a quantized table without arithmetic
    # between.
    rows = ops.transpose(scaled(rows), (2, 1, 0))
    rows = ops.reshape(rows, (size // together, together, *ops.shape(rows)[1:]))
    return _gated(by_features(query), by_features(key), rows)


@custom_gradient
def _gated(query, key, rows):
    """The scores, from `[H / f, f, B, N, t or S]` and `[H / f, f, N or 1, t + S]`."""
    dtype, features = query.dtype, query.shape[1]
    count = ops.shape(query)[-1]

    def add(carry, parts):
        (scores,) = carry
        for f in range(features):
            one_query, one_key, row = in_turn([x[f] for x in parts], [scores])
            pairs = _outer(one_query, one_key) * toeplitz(row, count)
            scores = scores + at_least_float32(pairs)
        # TensorFlow requires that the loop keeps the static shape.
        return [ops.reshape(scores, shape)], []

    zeros = [at_least_float32(ops.zeros_like(x[0, 0])) for x in (query, key)]
    scores = _outer(*zeros)
    shape = ops.shape(scores)
    (scores,), _ = scan(add, [scores], [query, key, rows], [])

    def gradient(upstream):
        shared = rows.shape[2] == 1

        def step_gradients(carry, parts):
            grads = []
            for f in range(features):
                last = grads[-1] if grads else []
                one_query, one_key, row = in_turn([x[f] for x in parts], last)
                gated = upstream * toeplitz(row, count)
                pairs = upstream * _outer(one_query, one_key)
                pairs = ops.sum(pairs, axis=(0, 1) if shared else 0)
                pairs = ops.sum(relative_unshift(pairs), axis=-2)
                grads.append(
                    [
                        ops.einsum("bnij,bnj->bni", gated, one_key),
                        ops.einsum("bnij,bni->bnj", gated, one_query),
                        pairs[None] if shared else pairs,
                    ]
                )
            return carry, [ops.stack(x) for x in zip(*grads)]

        like = [(x.dtype, x.shape[1:]) for x in (query, key, rows)]
        _, gradients = scan(step_gradients, [], [query, key, rows], like)
        return tuple(gradients)

    return ops.cast(scores, dtype), gradient


def _outer(query, key):
    """Products of all pairs, of `[..., t]` and `[..., S]`."""
    return ops.expand_dims(query, -1) * ops.expand_dims(key, -2)
