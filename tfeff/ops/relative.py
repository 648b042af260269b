"""Attention scores with relative positions.

`embed` is a function from relative positions `[R]` to embeddings `[R, …]`, such as
`tfeff.layers.RelativeEmbedding`.

Shapes: B batch, T queries and keys, N heads, H head size, R relative positions.
"""

import math
from collections.abc import Callable

import keras
from keras import ops

from tfeff.ops.gathering import take_positions
from tfeff.ops.kernels.relative_products import relative_products
from tfeff.ops.masking import at_least_float32
from tfeff.ops.shifting import relative_positions, relative_unshift, toeplitz
from tfeff.ops.sinusoid import sinusoids

# Features that `gated_scores` takes at once.
_FEATURES = 8


def dot_product_scores(query, key):
    """`s[i, j] = q_i · k_j / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, S, N, H]`.

    Returns:
        Tensor `[B, N, T, S]`.
    """
    return ops.einsum("btnh,bsnh->bnts", _scaled(query), key)


def shaw_scores(query, key, embed: Callable):
    """Relative embeddings added to the keys: `s[i, j] = q_i · (k_j + a_x) / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions `x = j - i`, `[R]` to `[R, N, H]`, or
            to `[R, H]` for all heads.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Shaw et al., "Self-attention with relative position representations";
        Huang et al., equation 5.
    """
    return dot_product_scores(query, key) + relative_products(_scaled(query), embed)


def bias_scores(query, key, embed: Callable):
    """A bias by relative position: `s[i, j] = q_i · k_j / sqrt(H) + a_x`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions `x = j - i`, `[R]` to `[R, N]`.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Raffel et al., "Exploring the limits of transfer learning", section 2.1.
    """
    return dot_product_scores(query, key) + _laid_out(key, embed)


def scaled_scores(query, key, embed: Callable):
    """A factor by relative position: `s[i, j] = (q_i · k_j) a_x / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions `x = j - i`, `[R]` to `[R, N]`, or to
            `[R]` for all heads.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Huang et al., methods 1 and 2, equations 11 to 13.
    """
    return dot_product_scores(query, key) * _laid_out(key, embed)


def gated_scores(query, key, embed: Callable):
    """A factor by relative position and feature.

    `s[i, j] = Σ_h q_i[h] k_j[h] a_x[h] / sqrt(H)`. This is a product over three
    tensors, which no matrix product gives: it is summed over a few features at a time,
    in the gradient, too, so that all pairs with all features, `[B, N, T, T, H]`, never
    exist at once.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions `x = j - i`, `[R]` to `[R, N, H]`, or
            to `[R, H]` for all heads.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Huang et al., method 3, equations 14 and 15.
    """
    rows = embed(relative_positions(ops.shape(key)[1]))
    if len(rows.shape) == 2:
        rows = rows[:, None]
    batch, length, heads, size = ops.shape(query)
    together = math.gcd(size, _FEATURES)
    count = size // together
    query, key = (
        ops.reshape(
            ops.transpose(x, (3, 0, 2, 1)), (count, together, batch, heads, length)
        )
        for x in (_scaled(query), key)
    )
    rows = ops.transpose(rows, (2, 1, 0))
    rows = ops.reshape(rows, (count, together, *ops.shape(rows)[1:]))
    return _gated(query, key, rows)


@ops.custom_gradient
def _gated(query, key, rows):
    """`gated_scores` of `[H / f, f, B, N, T]` and rows `[H / f, f, N or 1, 2T]`."""
    dtype, features = query.dtype, query.shape[1]

    def add(step, scores):
        some = [ops.take(x, step, axis=0) for x in (query, key, rows)]
        gates = toeplitz(some[2])
        for f in range(features):
            pairs = some[0][f, ..., :, None] * some[1][f, ..., None, :] * gates[f]
            scores = scores + at_least_float32(pairs)
        # TensorFlow wants to see that the loop keeps the shape.
        return ops.reshape(scores, shape)

    zeros = at_least_float32(ops.zeros_like(query[0, 0])[..., None])
    scores = zeros + ops.swapaxes(zeros, -1, -2)
    shape = ops.shape(scores)
    scores = ops.fori_loop(0, query.shape[0], add, scores)

    def gradient(*args, upstream=None):
        upstream = args[0] if upstream is None else upstream
        shared = rows.shape[2] == 1

        def derive(some):
            query, key, rows = some
            gates = toeplitz(rows)
            of_query, of_key, of_gates = [], [], []
            for f in range(features):
                gated = upstream * gates[f]
                of_query.append(ops.einsum("bnij,bnj->bni", gated, key[f]))
                of_key.append(ops.einsum("bnij,bni->bnj", gated, query[f]))
                pairs = upstream * query[f, ..., :, None] * key[f, ..., None, :]
                pairs = ops.sum(pairs, axis=(0, 1) if shared else 0)
                pairs = ops.sum(relative_unshift(pairs), axis=-2)
                of_gates.append(pairs[None] if shared else pairs)
            return tuple(map(ops.stack, (of_query, of_key, of_gates)))

        return ops.map(derive, (query, key, rows))

    return ops.cast(scores, dtype), gradient


def pairwise_scores(query, key, embed: Callable):
    """All products of two among query, key and relative embedding.

    `s[i, j] = (q_i · k_j + q_i · a_x + k_j · a_x) / sqrt(H)`, which is
    `((q_i + a_x) · (k_j + a_x) - a_x · a_x) / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions `x = j - i`, `[R]` to `[R, N, H]`, or
            to `[R, H]` for all heads.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Huang et al., method 4, equations 16 and 17.
    """
    # Seen from the key, the other position lies at -x.
    of_key = relative_products(_scaled(key), lambda positions: embed(-positions))
    return shaw_scores(query, key, embed) + ops.transpose(of_key, (0, 1, 3, 2))


def xlnet_scores(query, key, embed: Callable, content_bias, position_bias):
    """Sinusoid relative positions with two global biases.

    `s[i, j] = ((q_i + u) · k_j + (q_i + v) · r_x) / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        embed: gives `r`, the projected sinusoids, at relative positions `x = j - i`,
            `[R]` to `[R, N, H]`.
        content_bias: `u`, float tensor `[N, H]`.
        position_bias: `v`, float tensor `[N, H]`.

    Returns:
        Tensor `[B, N, T, T]`.

    Reference:
        Yang et al., "XLNet", section 2.5; Huang et al., section 3.4.
    """
    # As tensors: Keras may add a variable of one column along another axis.
    content_bias, position_bias = map(
        ops.convert_to_tensor, (content_bias, position_bias)
    )
    of_position = relative_products(_scaled(query + position_bias), embed)
    return dot_product_scores(query + content_bias, key) + of_position


def xlnet_scores_at(
    positions,
    query,
    key,
    kernel,
    content_bias,
    position_bias,
    sinusoid: str = "interleaved",
):
    """`xlnet_scores` of queries at some positions only, without limit of distance.

    The waves of a difference are those of the key's position, turned by the query's,
    `s_{i - j} = R_i s_j`. So queries need not be in order for a shift:

        (q_i + v) · W s_{i - j} = (R_iᵀ Wᵀ (q_i + v)) · s_j

    That costs `D` products a pair and head instead of `H`, which is less than all
    queries cost where few are wanted.

    Args:
        positions: integer tensor `[B, M]`, the positions `i` of the queries.
        query: float tensor `[B, M, N, H]`.
        key: float tensor `[B, T, N, H]`, of the positions `j = 0 … T - 1`.
        kernel: `W`, float tensor `[D, N · H]`, which projects sinusoids to `r`.
        content_bias: `u`, float tensor `[N, H]`.
        position_bias: `v`, float tensor `[N, H]`.
        sinusoid: layout of the sinusoids, as in `sinusoids`.

    Returns:
        Tensor `[B, N, M, T]`.

    Reference:
        Yang et al., "XLNet", sections 2.3 and 2.5.
    """
    content_bias, position_bias = map(
        ops.convert_to_tensor, (content_bias, position_bias)
    )
    heads, size = query.shape[-2:]
    dim = kernel.shape[0]
    if sinusoid == "interleaved":
        kernel = ops.reshape(kernel, (dim // 2, 2, heads, size))
        kernel = ops.transpose(kernel, (1, 0, 2, 3))
    kernel = ops.reshape(kernel, (dim, heads, size))
    turned = ops.einsum("bmnh,dnh->bmnd", _scaled(query + position_bias), kernel)
    of_sine, of_cosine = ops.split(turned, 2, axis=-1)

    batch, count = ops.shape(positions)
    dtype = keras.backend.result_type(query.dtype, "float32")
    waves = sinusoids(
        ops.reshape(ops.cast(positions, dtype), (-1,)), dim, "concatenated"
    )
    waves = ops.reshape(ops.cast(waves, query.dtype), (batch, count, 1, dim))
    sine, cosine = ops.split(waves, 2, axis=-1)
    # sin(a - b) = sin a cos b - cos a sin b, cos(a - b) = cos a cos b + sin a sin b.
    turned = ops.concatenate(
        [of_cosine * sine - of_sine * cosine, of_sine * sine + of_cosine * cosine],
        axis=-1,
    )
    waves = sinusoids(ops.arange(ops.shape(key)[1], dtype=dtype), dim, "concatenated")
    of_position = ops.einsum("bmnd,td->bnmt", turned, ops.cast(waves, query.dtype))
    return dot_product_scores(query + content_bias, key) + of_position


def segment_scores(query, segment_ids, embeddings, bias, positions=None):
    """XLNet's relative segments: `s[i, j] = (q_i + b) · e_{[g_i ≠ g_j]} / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`, or `[B, M, N, H]` at `positions`.
        segment_ids: integer tensor `g` `[B, T]`.
        embeddings: float tensor `e` `[2, N, H]`: of a pair in the same segment, and
            of one in different segments.
        bias: `b`, float tensor `[N, H]`.
        positions: integer tensor `[B, M]`, positions `i` of the queries; `None` means
            all, in order.

    Returns:
        Tensor `[B, N, T, T]`, or `[B, N, M, T]`.

    Reference:
        Yang et al., "XLNet", section 2.5, relative segment encodings.
    """
    query = _scaled(query + ops.convert_to_tensor(bias))
    scores = ops.einsum("btnh,rnh->bntr", query, embeddings)
    of_query = segment_ids
    if positions is not None:
        of_query = take_positions(segment_ids, positions)
    differ = of_query[:, None, :, None] != segment_ids[:, None, None, :]
    return ops.where(differ, scores[..., 1:], scores[..., :1])


def _scaled(x):
    return x * (1.0 / math.sqrt(x.shape[-1]))


def _laid_out(key, embed):
    """Embeddings `[R, ...]` over all pairs of positions, `[..., T, T]`."""
    rows = embed(relative_positions(ops.shape(key)[1]))
    return toeplitz(ops.moveaxis(rows, 0, -1))
