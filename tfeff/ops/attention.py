"""Softmax and one-head attention cores: from projections to mixed values.

Shapes: B batch, T queries, S keys, N heads, n parts, D hidden size, H = D / N.
"""

import math
from collections.abc import Callable

from keras import ops

from tfeff.ops.masking import l2_normalized_sigmoid, masked_softmax
from tfeff.ops.relative import dot_product_scores

NORMALIZERS = {"softmax": masked_softmax, "sigmoid_l2": l2_normalized_sigmoid}


def split_heads(x, num_heads: int):
    """`[B, T, D]` to `[B, T, N, D / N]`: head `h` has the columns from `h D / N`."""
    batch, length, size = ops.shape(x)
    return ops.reshape(x, (batch, length, num_heads, size // num_heads))


def merge_heads(x):
    """`[B, T, N, H]` to `[B, T, N H]`, the inverse of `split_heads`."""
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


def softmax_attention(
    query,
    key,
    value,
    num_heads: int,
    mask=None,
    partition=None,
    dropout: Callable | None = None,
):
    """Multi-head softmax attention, optionally cut into parts.

    `A[h] = softmax(Q[h] K[h]ᵀ / sqrt(H)) ⊙ N[h]` and `X̄[h] = A[h] V[h]`, with
    `N = 1` unless a partition is given.

    Args:
        query: float tensor `[B, T, D]`.
        key: float tensor `[B, S, D]`.
        value: float tensor `[B, S, D]`.
        num_heads: integer that divides `D`.
        mask: bool tensor broadcastable to `[B, N, T, S]`, true where a key is
            visible.
        partition: float tensor `[N, T, S]`, the partition mask.
        dropout: function applied to the normalised scores.

    Returns:
        `(mixed, scores)`: `X̄` `[B, T, D]` and `A` `[B, N, T, S]`.

    Example:

    >>> x = ops.ones((2, 5, 8))
    >>> mixed, scores = softmax_attention(x, x, x, num_heads=2)
    >>> tuple(mixed.shape), tuple(scores.shape)
    ((2, 5, 8), (2, 2, 5, 5))

    Reference:
        Tian et al., "Shatter", equations 1, 2, 3 and 5.
    """
    scores = dot_product_scores(
        split_heads(query, num_heads), split_heads(key, num_heads)
    )
    scores = masked_softmax(scores, mask)
    if dropout is not None:
        scores = dropout(scores)
    if partition is not None:
        scores = scores * partition
    return merge_heads(weighted_values(scores, split_heads(value, num_heads))), scores


def one_head_attention(
    query,
    key,
    value,
    mask=None,
    partition=None,
    bias_embeddings=None,
    part_values=None,
    normalizer: str = "sigmoid_l2",
    dropout: Callable | None = None,
):
    """One matrix of scores for all parts, optionally with partition embeddings.

    With `N` the partition, `R` its embeddings and `φ` the normaliser:

        B[i, j]     = Σ_h (Q Rᵀ)[i, h] N[h, i, j]
        A[h]        = φ(Q Xᵀ / sqrt(D) + B) ⊙ N[h]
        X̄[h]        = A[h] V[h]
        result[i]   = X̄[i] + Σ_h (Σ_j A[h, i, j]) V_part[h]

    Without a partition, every part would have the same scores: `result = A V`.

    Args:
        query: float tensor `Q` `[B, T, D]`.
        key: float tensor `[B, S, D]`; the hidden state `X` itself in Shatter.
        value: float tensor `V` `[B, S, D]`.
        mask: bool tensor broadcastable to `[B, T, S]`, true where a key is visible.
        partition: float tensor `N` `[n, T, S]`, or `None`.
        bias_embeddings: float tensor `R` `[n, D]` for the bias `B`, or `None`.
        part_values: float tensor `V_part = R W^V` `[n, D]`, or `None`.
        normalizer: `"sigmoid_l2"` or `"softmax"`.
        dropout: function applied to the normalised scores, before the partition.

    Returns:
        `(mixed, scores)`: `[B, T, D]` and `A` `[B, n, T, S]` (`n = 1` without a
        partition).

    Example:

    >>> x = ops.ones((2, 5, 8))
    >>> n = ops.ones((4, 5, 5)) / 4
    >>> mixed, scores = one_head_attention(x, x, x, partition=n)
    >>> tuple(mixed.shape), tuple(scores.shape)
    ((2, 5, 8), (2, 4, 5, 5))

    Reference:
        Tian et al., "Shatter", sections 3.2 (equation 6) and 3.3.
    """
    scale = 1.0 / math.sqrt(query.shape[-1])
    scores = ops.matmul(query * scale, ops.transpose(key, (0, 2, 1)))
    if bias_embeddings is not None:
        # The bias stands outside the fraction: it is not scaled.
        part_scores = ops.matmul(query, ops.transpose(bias_embeddings))
        scores = scores + ops.einsum("bth,hts->bts", part_scores, partition)
    scores = NORMALIZERS[normalizer](scores, mask)
    if dropout is not None:
        scores = dropout(scores)
    if partition is None:
        return ops.matmul(scores, value), scores[:, None]
    scores = scores[:, None] * partition
    mixed = weighted_values(scores, split_heads(value, partition.shape[0]))
    mixed = merge_heads(mixed)
    if part_values is not None:
        attention_to_parts = ops.transpose(ops.sum(scores, axis=-1), (0, 2, 1))
        mixed = mixed + ops.matmul(attention_to_parts, part_values)
    return mixed, scores
