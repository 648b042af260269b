"""Attention scores with relative positions.

A block of `t` consecutive queries meets `S` keys at the relative positions `1 - t … S`
to its first query; `rows` hold the embedding of each (`tfeff.ops.relative_terms`).

Shapes: B batch, t queries, S keys, N heads, H head size.
"""

import keras
from keras import ops

from tfeff.ops.attention import dot_product_scores, scaled
from tfeff.ops.relative_terms import key_products, relative_products
from tfeff.ops.shifting import toeplitz
from tfeff.ops.sinusoid import LAYOUTS, sinusoids
from tfeff.utils.checks import check_choice
from tfeff.utils.types import Tensor


def shaw_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Relative embeddings added to the keys: `s[i, j] = q_i · (k_j + a_x) / sqrt(H)`.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N, H]`, or `[t + S, H]` for all heads, by
            `x = j - i`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones, zeros = ops.ones((1, 1, 2, 4)), ops.zeros((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> ops.convert_to_numpy(shaw_scores(ones, zeros, x)[0, 0]).tolist()
    [[0.0, 2.0], [-2.0, 0.0]]

    Reference:
        Shaw et al., "Self-attention with relative position representations",
        equation 4; Huang et al., equation 7.
    """
    return dot_product_scores(query, key) + relative_products(scaled(query), rows)


def bias_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """A bias by relative position: `s[i, j] = q_i · k_j / sqrt(H) + a_x`.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N]`, by `x = j - i`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones, zeros = ops.ones((1, 1, 2, 4)), ops.zeros((1, 1, 2, 4))
    >>> x = ops.convert_to_tensor([-1.0, 0.0, 1.0, 2.0])
    >>> ops.convert_to_numpy(bias_scores(ones, zeros, x[:, None])[0, 0]).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]

    Reference:
        Raffel et al., "Exploring the limits of transfer learning", section 2.1; Tian
        et al., "Shatter", section 2, relative attention bias.
    """
    return dot_product_scores(query, key) + toeplitz_rows(query, rows)


def scaled_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """A factor by relative position: `s[i, j] = (q_i · k_j) a_x / sqrt(H)`.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N]`, or `[t + S]` for all heads, by `x = j - i`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones = ops.ones((1, 1, 2, 4))
    >>> x = ops.convert_to_tensor([-1.0, 0.0, 1.0, 2.0])
    >>> ops.convert_to_numpy(scaled_scores(ones, ones, x)[0, 0]).tolist()
    [[0.0, 2.0], [-2.0, 0.0]]

    Reference:
        Huang et al., methods 1 and 2, equations 11 to 13.
    """
    return dot_product_scores(query, key) * toeplitz_rows(query, rows)


def gated_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """A factor by relative position and feature.

    `s[i, j] = Σ_h q_i[h] k_j[h] a_x[h] / sqrt(H)`. This computes all pairs with all
    features at once; `tfeff.ops.kernels.gated_scores` does not.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N, H]`, or `[t + S, H]` for all heads, by
            `x = j - i`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones = ops.ones((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> ops.convert_to_numpy(gated_scores(ones, ones, x)[0, 0]).tolist()
    [[0.0, 2.0], [-2.0, 0.0]]

    Reference:
        Huang et al., method 3, equations 14 and 15.
    """
    gates = toeplitz_rows(query, rows)  # [N, H, t, S], or [H, t, S]
    gates = gates if len(gates.shape) == 4 else ops.expand_dims(gates, 0)
    pairs = ops.einsum("bnth,bnsh->bnhts", scaled(query), key)
    return ops.sum(pairs * gates, axis=2)


def pairwise_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """All pairwise products of query, key and relative embedding.

    `s[i, j] = (q_i · k_j + q_i · a_x + k_j · a_x) / sqrt(H)`, which is
    `((q_i + a_x) · (k_j + a_x) - a_x · a_x) / sqrt(H)`.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N, H]`, or `[t + S, H]` for all heads, by
            `x = j - i`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones = ops.ones((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> ops.convert_to_numpy(pairwise_scores(ones, ones, x)[0, 0]).tolist()
    [[2.0, 6.0], [-2.0, 2.0]]

    Reference:
        Huang et al., method 4, equations 16 and 17.
    """
    count = ops.shape(query)[2]
    return shaw_scores(query, key, rows) + key_products(scaled(key), rows, count)


def xlnet_scores(
    query: Tensor,
    key: Tensor,
    rows: Tensor,
    content_bias: Tensor | None,
    position_bias: Tensor | None,
) -> Tensor:
    """Sinusoid relative positions with two global biases.

    `s[i, j] = ((q_i + u) · k_j + (q_i + v) · r_x) / sqrt(H)`. Without the biases this
    is `shaw_scores` of the projected sinusoids.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.
        rows: `r`, the projected sinusoids, float tensor `[t + S, N, H]` by
            `x = j - i`.
        content_bias, position_bias: `u` and `v`, float tensors `[N, H]`, or `None`
            both for 0.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones, zeros = ops.ones((1, 1, 2, 4)), ops.zeros((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> scores = xlnet_scores(ones, zeros, x[:, None], None, None)
    >>> ops.convert_to_numpy(scores[0, 0]).tolist()
    [[0.0, 2.0], [-2.0, 0.0]]

    Reference:
        Dai et al., "Transformer-XL", section 3.3; Yang et al., "XLNet", section 2.4;
        Huang et al., equation 10.
    """
    scores = dot_product_scores(with_bias(query, content_bias), key)
    return scores + relative_products(scaled(with_bias(query, position_bias)), rows)


def xlnet_scores_at(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    kernel: Tensor,
    content_bias: Tensor | None,
    position_bias: Tensor | None,
    sinusoid: str = "interleaved",
) -> Tensor:
    """`xlnet_scores` of queries at given positions, without clipping of distances.

    The sinusoids of a difference are those of the key's position, rotated by the
    query's, `s_{i - j} = R_i s_j`. So there is no shift, which needs queries in order:

        (q_i + v) · W s_{i - j} = (R_iᵀ Wᵀ (q_i + v)) · s_j

    That costs `D` multiplications a pair and head instead of `H`; a few queries still
    cost less than all.

    Args:
        positions: integer tensor `[B, t]`, the positions `i` of the queries.
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`, of the positions `j = 0 … S - 1`.
        kernel: `W`, float tensor `[D, N · H]`, which projects sinusoids to `r`.
        content_bias, position_bias: `u` and `v`, float tensors `[N, H]`, or `None`
            both for 0.
        sinusoid: layout of the sinusoids, as in `sinusoids`.

    Returns:
        Tensor `[B, N, t, S]`.

    Raises:
        ValueError: if `sinusoid` is another one.

    Example:

    >>> from keras import ops
    >>> positions = ops.convert_to_tensor([[1]])
    >>> query, key, kernel = ops.ones((1, 1, 1, 4)), ops.ones((1, 1, 3, 4)), ops.eye(4)
    >>> tuple(xlnet_scores_at(positions, query, key, kernel, None, None).shape)
    (1, 1, 1, 3)

    Reference:
        Yang et al., "XLNet", sections 2.3 and 2.4.
    """
    check_choice("sinusoid", sinusoid, LAYOUTS)
    heads, size = ops.shape(query)[1], query.shape[-1]
    dim = kernel.shape[0]
    if sinusoid == "interleaved":
        kernel = ops.reshape(kernel, (dim // 2, 2, heads, size))
        kernel = ops.transpose(kernel, (1, 0, 2, 3))
    kernel = ops.reshape(kernel, (dim, heads, size))
    position_query = scaled(with_bias(query, position_bias))
    rotated = ops.einsum("bnth,dnh->bntd", position_query, kernel)
    sine_query, cosine_query = ops.split(rotated, 2, axis=-1)

    dtype = keras.backend.result_type(query.dtype, "float32")
    waves = sinusoids(
        ops.cast(ops.expand_dims(positions, 1), dtype), dim, "concatenated"
    )
    sine, cosine = ops.split(ops.cast(waves, query.dtype), 2, axis=-1)
    # sin(a - b) = sin a cos b - cos a sin b, cos(a - b) = cos a cos b + sin a sin b.
    rotated = ops.concatenate(
        [
            cosine_query * sine - sine_query * cosine,
            sine_query * sine + cosine_query * cosine,
        ],
        axis=-1,
    )
    waves = sinusoids(ops.arange(ops.shape(key)[2], dtype=dtype), dim, "concatenated")
    waves = ops.cast(waves, query.dtype)
    position_scores = ops.einsum("bntd,sd->bnts", rotated, waves)
    return dot_product_scores(with_bias(query, content_bias), key) + position_scores


def segment_scores(
    query: Tensor,
    query_segments: Tensor,
    key_segments: Tensor,
    embeddings: Tensor,
    bias: Tensor | None,
) -> Tensor:
    """XLNet's relative segments: `s[i, j] = (q_i + b) · e_{[g_i ≠ g_j]} / sqrt(H)`.

    Args:
        query: float tensor `[B, N, t, H]`.
        query_segments: integer tensor `g` of the queries `[B, 1, t, 1]`.
        key_segments: integer tensor `g` of the keys `[B, 1, 1, S]`.
        embeddings: float tensor `e` `[2, N, H]`: of a pair in the same segment, and
            of one in different segments.
        bias: `b`, float tensor `[N, H]`, or `None` for 0.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> segments = ops.convert_to_tensor([0, 1])
    >>> embeddings = ops.stack([ops.zeros((1, 4)), ops.ones((1, 4))])
    >>> scores = segment_scores(
    ...     ops.ones((1, 1, 2, 4)), segments[:, None], segments, embeddings, None
    ... )
    >>> ops.convert_to_numpy(scores[0, 0]).tolist()
    [[0.0, 2.0], [2.0, 0.0]]

    Reference:
        Yang et al., "XLNet", section 2.5, relative segment encodings.
    """
    query = scaled(with_bias(query, bias))
    scores = ops.einsum("bnth,rnh->bntr", query, embeddings)
    return ops.where(query_segments != key_segments, scores[..., 1:], scores[..., :1])


def with_bias(query, bias):
    """Adds a bias `[N, H]` of the heads to queries `[B, N, t, H]`; `None` adds none."""
    return query if bias is None else query + bias[:, None]


def toeplitz_rows(query: Tensor, rows: Tensor) -> Tensor:
    """Expands rows by relative position to pairs: `y[..., i, j] = rows[j - i, ...]`.

    Args:
        query: tensor `[B, N, t, H]`, of which the length `t` alone is read.
        rows: tensor `[t + S, ...]` at the relative positions `1 - t … S`.

    Returns:
        Tensor `[..., t, S]` in the dtype of `rows`.

    Example:

    >>> from keras import ops
    >>> x = ops.convert_to_tensor([-1.0, 0.0, 1.0, 2.0])
    >>> pairs = toeplitz_rows(ops.ones((1, 1, 2, 4)), x)
    >>> ops.convert_to_numpy(pairs).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    return toeplitz(ops.moveaxis(rows, 0, -1), ops.shape(query)[2])
