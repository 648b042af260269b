"""Softmax and one-head attention cores: from projections to mixed values.

Shapes: B batch, T queries, S keys, N heads, n parts, D hidden size, H = D / N.
"""

import math

from keras import ops

from tfeff.ops.kernels.relative_products import (
    relative_products,
    relative_sums,
    relative_values,
)
from tfeff.ops.masking import (
    at_least_float32,
    barrier_one,
    l2_normalized_sigmoid,
    l2_sigmoid_and_gradient,
    masked_softmax,
    softmax_and_gradient,
)

NORMALIZERS = {"softmax": masked_softmax, "sigmoid_l2": l2_normalized_sigmoid}
_WITH_GRADIENT = {
    "softmax": softmax_and_gradient,
    "sigmoid_l2": l2_sigmoid_and_gradient,
}


def split_heads(x, num_heads: int):
    """Cuts vectors into heads: head `h` has the columns from `h D / N`.

    Args:
        x: tensor `[B, T, D]`.
        num_heads: integer `N` that divides `D`.

    Returns:
        Tensor `[B, T, N, D / N]`.

    Example:

    >>> from keras import ops
    >>> tuple(split_heads(ops.ones((2, 3, 8)), 4).shape)
    (2, 3, 4, 2)
    """
    batch, length, size = ops.shape(x)
    return ops.reshape(x, (batch, length, num_heads, size // num_heads))


def merge_heads(x):
    """Joins heads again, the inverse of `split_heads`.

    Args:
        x: tensor `[B, T, N, H]`.

    Returns:
        Tensor `[B, T, N H]`.

    Example:

    >>> from keras import ops
    >>> tuple(merge_heads(ops.ones((2, 3, 4, 2))).shape)
    (2, 3, 8)
    """
    batch, length, heads, size = ops.shape(x)
    return ops.reshape(x, (batch, length, heads * size))


def weighted_values(weights, value):
    """`y[i, h] = Σ_j A[h, i, j] v[j, h]`.

    Args:
        weights: float tensor `A` `[B, N, T, S]`.
        value: float tensor `v` `[B, S, N, H]`.

    Returns:
        Tensor `[B, T, N, H]`.
    """
    # No axis moves outside of the product: the compiler folds it into that.
    return ops.einsum("bnts,bsnh->btnh", weights, value)


def softmax_values(scores, value, mask=None, partition=None, kept=None, relative=None):
    """Values mixed by the softmax of scores, as one operation.

    `X̄[h] = (A[h] ⊙ F[h]) V[h]` with `A[h] = softmax(S[h])`, where `F` is the product of
    `partition` and `kept`, each 1 if not given. Rows without a visible key give 0. With
    `relative` embeddings, the value of `j` for `i` is `V[j, h] + a_{j - i}[h]`.

    With `G` the gradient of `X̄`, the gradients are `(A ⊙ F)ᵀ G` for the values and
    `A ⊙ (F ⊙ (G Vᵀ) - δ)`, `δ[i] = G[i] · X̄[i]`, for the scores. So nothing over pairs
    is summed for the gradient, or held besides `A`.

    Args:
        scores: float tensor `S` `[B, N, T, S]`.
        value: float tensor `V` `[B, S, N, H]`.
        mask: bool tensor `[B or 1, N or 1, T or 1, S]`, true where a key is visible,
            or `None` when all are.
        partition: float tensor `[N, T, S]`, or `None`. It gets no gradient.
        kept: bool tensor `[B, N, T, S]`, false at what dropout drops, or `None`. What
            is kept is not scaled up here.
        relative: float tensor `a` `[2T, N, H]` at the relative positions `1 - T … T`,
            where `S = T`, or `None`.

    Returns:
        Tensor `X̄` `[B, T, N, H]`.

    Example:

    >>> from keras import ops
    >>> mixed = softmax_values(ops.zeros((2, 1, 3, 4)), ops.ones((2, 4, 1, 8)))
    >>> tuple(mixed.shape), float(mixed[0, 0, 0, 0])
    ((2, 3, 1, 8), 1.0)

    Reference:
        Dao et al., "FlashAttention", section B.2, for the rearranged gradient.
    """
    dtype = scores.dtype
    visible = None if mask is None else ops.any(mask, axis=-1, keepdims=True)

    def with_factors(x, one=1.0):
        if partition is not None:
            x = x * (one * ops.cast(partition, x.dtype))
        return x if kept is None else ops.where(kept, x, ops.cast(one - 1.0, x.dtype))

    def of_visible(x):
        """Zeros in rows `[B, T, N, H]` that see no key."""
        if visible is None:
            return x
        return x * ops.cast(ops.transpose(visible, (0, 2, 1, 3)), x.dtype)

    @ops.custom_gradient
    def mix(scores, value, *relative):
        precise = at_least_float32(scores)
        if mask is not None:
            # A finite number, not -inf: a row of -inf would give NaN.
            precise = ops.where(mask, precise, -1e30)
        shares = ops.cast(ops.softmax(precise, axis=-1), dtype)
        weights = with_factors(shares)
        mixed = weighted_values(weights, value)
        if relative:
            mixed = mixed + relative_values(weights, lambda _: relative[0])
        mixed = of_visible(mixed)

        def gradient(*args, upstream=None):
            upstream = of_visible(args[0] if upstream is None else upstream)
            mean = at_least_float32(upstream) * at_least_float32(mixed)
            mean = ops.transpose(ops.sum(mean, axis=-1), (0, 2, 1))[..., None]
            one = barrier_one(upstream)
            weights = with_factors(shares, one)  # Again, not to be held.
            of_value = [ops.einsum("bnts,btnh->bsnh", weights, upstream)]
            of_shares = ops.einsum("btnh,bsnh->bnts", upstream, value)
            if relative:
                of_value.append(relative_sums(weights, upstream))
                of_shares = of_shares + relative_products(
                    upstream, lambda _: relative[0]
                )
            of_shares = at_least_float32(with_factors(of_shares, one))
            of_scores = at_least_float32(shares) * (of_shares - mean)
            return ops.cast(of_scores, dtype), *of_value

        return mixed, gradient

    return mix(scores, value) if relative is None else mix(scores, value, relative)


def one_head_scores(query, key, partition=None, bias_embeddings=None):
    """One matrix of scores for all parts, before they are normalised.

    With `N` the partition and `R` its embeddings:

        B[i, j] = Σ_h (Q Rᵀ)[i, h] N[h, i, j]
        S       = Q Xᵀ / sqrt(D) + B

    Args:
        query: float tensor `Q` `[B, T, D]`.
        key: float tensor `[B, S, D]`; the hidden state `X` itself in Shatter.
        partition: float tensor `N` `[n, T, S]`, read for the bias only.
        bias_embeddings: float tensor `R` `[n, D]` for the bias `B`, or `None`.

    Returns:
        Tensor `S` `[B, T, S]`.

    Reference:
        Tian et al., "Shatter", sections 3.2 (equation 6) and 3.3.
    """
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = ops.einsum("btd,bsd->bts", query * scale, key)
    if bias_embeddings is not None:
        # The bias stands outside the fraction: it is not scaled.
        part_scores = ops.einsum("btd,nd->btn", query, bias_embeddings)
        scores = scores + ops.einsum("btn,nts->bts", part_scores, partition)
    return scores


def part_values(
    scores,
    value,
    partition,
    embeddings=None,
    normalizer="sigmoid_l2",
    mask=None,
    kept=None,
):
    """Values mixed part by part, by the same normalised scores, as one operation.

    With the partition `N`, partition embeddings `E` and the normaliser `φ`:

        A         = φ(S), and 0 where `kept` is false
        X̄[h]      = (A ⊙ N[h]) V[h]
        result[i] = concat_h(X̄[h])[i] + Σ_h (Σ_j A[i, j] N[h, i, j]) E[h]

    Of all that is over pairs, the scores alone are held for the gradient, which forms
    the rest again: the weights of the parts are as large as the scores of all heads.

    Args:
        scores: float tensor `S` `[B, T, S]`.
        value: float tensor `V` `[B, S, n, H]`.
        partition: float tensor `N` `[n, T, S]`. It gets no gradient.
        embeddings: float tensor `E` `[n, n, H]`, for each part a vector of the width
            of all, or `None`.
        normalizer: `"sigmoid_l2"` or `"softmax"`.
        mask: bool tensor broadcastable to `[B, T, S]`, true where a key is visible,
            or `None` when all are.
        kept: bool tensor `[B, T, S]`, false at what dropout drops, or `None`. What is
            kept is not scaled up here.

    Returns:
        Tensor `[B, T, n, H]`.

    Example:

    >>> from keras import ops
    >>> n = ops.ones((4, 5, 5)) / 4
    >>> tuple(part_values(ops.ones((2, 5, 5)), ops.ones((2, 5, 4, 2)), n).shape)
    (2, 5, 4, 2)

    Reference:
        Tian et al., "Shatter", sections 3.1 to 3.3.
    """

    def normalize(scores):
        return _WITH_GRADIENT[normalizer](scores, mask)

    def drop(x):
        return x if kept is None else ops.where(kept, x, ops.zeros_like(x))

    @ops.custom_gradient
    def mix(scores, value, *embeddings):
        weights = drop(normalize(scores)[0])
        mixed = weighted_values(weights[:, None] * partition, value)
        if embeddings:
            shares = ops.einsum("bts,nts->btn", weights, partition)
            mixed = mixed + ops.einsum("btn,nmh->btmh", shares, *embeddings)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            # Again, not to be held.
            weights, of_scores = normalize(scores * barrier_one(upstream))
            parts = drop(weights)[:, None] * partition
            of_value = [ops.einsum("bnts,btnh->bsnh", parts, upstream)]
            of_parts = ops.einsum("btnh,bsnh->bnts", upstream, value) * partition
            of_weights = ops.sum(of_parts, axis=1)
            if embeddings:
                of_shares = ops.einsum("btmh,nmh->btn", upstream, *embeddings)
                of_weights = of_weights + ops.einsum(
                    "btn,nts->bts", of_shares, partition
                )
                of_value.append(ops.einsum("btn,btmh->nmh", shares, upstream))
            return of_scores(drop(of_weights)), *of_value

        return mixed, gradient

    return mix(scores, value) if embeddings is None else mix(scores, value, embeddings)
