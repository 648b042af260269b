"""Relative positions in attention scores, without a tensor over T × T × H.

Whatever depends on positions through `x = j - i` alone has only `2T - 1` different
values in a sequence of T. The functions here compute with those and lay the results
out over all pairs by a shift of rows, or by products (`tfeff.ops.waves`). `embed` is a
function from relative positions `[R]` to embeddings `[R, …]`, such as
`tfeff.layers.RelativeEmbedding`.

Shapes: B batch, T queries and keys, N heads, H head size, R relative positions.
"""

import math
from collections.abc import Callable

import keras
from keras import ops

from tfeff.ops.gathering import take_positions
from tfeff.ops.masking import at_least_float32, one_after
from tfeff.ops.slicing import cut
from tfeff.ops.waves import moved_products, moved_sums, moved_values

# Positions of a block, within which rows move one by one: a TPU's row of lanes.
_BLOCK = 128
# Features that `gated_scores` takes at once.
_FEATURES = 8


def relative_positions(length):
    """The relative positions `1 - T … T` of the columns that `relative_shift` takes.

    Args:
        length: integer `T`, or a scalar tensor.

    Returns:
        Integer tensor `[2T]`.

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(relative_positions(3)).tolist()
    [-2, -1, 0, 1, 2, 3]
    """
    return ops.arange(1 - length, length + 1)


def relative_shift(x):
    """From columns by relative position to columns by key.

    `y[..., i, j] = x[..., i, j - i + T - 1]`.

    Args:
        x: tensor `[..., T, T + S]`, whose columns stand for the relative positions
            `1 - T … S` (the last is never read).

    Returns:
        Tensor `[..., T, S]`.

    Example:

    >>> from keras import ops
    >>> x = ops.broadcast_to(relative_positions(3), (3, 6))
    >>> ops.convert_to_numpy(relative_shift(x)).tolist()
    [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]

    Reference:
        Dai et al., "Transformer-XL", appendix B; Huang et al., "Music transformer".
    """
    *leading, length, width = ops.shape(x)
    # Rows of T + S, read back in rows of one less, move right by one a row: no gather.
    x = ops.reshape(x, (*leading, length * width))
    x = cut(x, -1, 0, -length)
    x = ops.reshape(x, (*leading, length, width - 1))
    return cut(x, -1, length - 1)


def relative_unshift(x):
    """The inverse of `relative_shift`: from columns by key to relative position.

    `y[..., i, j - i + T - 1] = x[..., i, j]`, and 0 elsewhere.

    Args:
        x: tensor `[..., T, S]`.

    Returns:
        Tensor `[..., T, T + S]`.

    Example:

    >>> from keras import ops
    >>> y = relative_unshift(ops.ones((2, 2)))
    >>> ops.convert_to_numpy(y).tolist()
    [[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    """
    *leading, length, keys = ops.shape(x)
    before = [(0, 0) for _ in leading]
    # Rows of T + S + 1, read back in rows of one less, move right by one a row. They
    # are to move left, so they are turned about before and after.
    x = ops.pad(ops.flip(x, axis=-1), (*before, (0, 0), (1, length)))
    x = ops.reshape(x, (*leading, length * (length + keys + 1)))
    x = ops.reshape(cut(x, -1, 0, -length), (*leading, length, length + keys))
    return ops.flip(x, axis=-1)


def toeplitz(values):
    """Lays values by relative position out over all pairs of positions.

    `y[..., i, j] = values[..., j - i + T - 1]`.

    Args:
        values: tensor `[..., 2T]` at the relative positions `1 - T … T`.

    Returns:
        Tensor `[..., T, T]`.

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(toeplitz(relative_positions(2))).tolist()
    [[0, 1], [-1, 0]]
    """
    leading, width = ops.shape(values)[:-1], ops.shape(values)[-1]
    length = width // 2
    block, starts = _blocks(length)
    rows = ops.broadcast_to(values[..., None, :], (*leading, block, width))
    rows = relative_shift(rows)
    # Later rows repeat the first block of them, further to the right.
    return ops.concatenate([rows[..., x : x + length] for x in starts], axis=-2)


def sinusoids(positions, dim: int, layout: str = "interleaved"):
    """Fixed sinusoid embeddings of positions, absolute or relative.

    With the frequencies `ω_m = 10000^(-2m / dim)`, `m = 0 … dim/2 - 1`, the row of
    `x` is `sin(ω_0 x), cos(ω_0 x), sin(ω_1 x), …` when interleaved, and all sines
    before all cosines when concatenated.

    Args:
        positions: integer or float tensor `[R]`, in tokens.
        dim: even integer, size of an embedding.
        layout: `"interleaved"` or `"concatenated"`.

    Returns:
        Tensor `[R, dim]`, float32 (float64 for float64 positions).

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(sinusoids(ops.zeros((1,)), 4)).tolist()
    [[0.0, 1.0, 0.0, 1.0]]

    Reference:
        Vaswani et al., "Attention is all you need", section 3.5; Huang et al.,
        "Improve Transformer models with better relative position embeddings",
        equations 1 and 2.
    """
    dtype = keras.backend.standardize_dtype(positions.dtype)
    dtype = "float64" if dtype == "float64" else "float32"
    frequencies = [10000.0 ** (-2.0 * m / dim) for m in range(dim // 2)]
    angles = ops.cast(positions, dtype)[:, None] * ops.convert_to_tensor(
        frequencies, dtype
    )
    waves = [ops.sin(angles), ops.cos(angles)]
    if layout == "concatenated":
        return ops.concatenate(waves, axis=-1)
    return ops.reshape(ops.stack(waves, axis=-1), (-1, dim))


def dot_product_scores(query, key):
    """`s[i, j] = q_i · k_j / sqrt(H)`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, S, N, H]`.

    Returns:
        Tensor `[B, N, T, S]`.
    """
    return ops.einsum("btnh,bsnh->bnts", _scaled(query), key)


def relative_products(x, embed: Callable):
    """Products of each position with the embedding of every relative one.

    `y[i, j] = x_i · a_{j - i}`.

    Where 128 divides the length, positions go in blocks of so many, each with the
    `T + 128` relative positions that it meets; else all `2T` are taken.

    Args:
        x: float tensor `[B, T, N, H]`.
        embed: gives `a` at relative positions, `[R]` to `[R, N, H]`, or to `[R, H]`
            for all heads.

    Returns:
        Tensor `[B, N, T, T]`.
    """
    batch, length, heads, size = ops.shape(x)
    block, starts = _blocks(length)
    windows = _windows(embed(relative_positions(length)), length + block, starts)
    blocks = (batch, heads, len(starts), block, size)
    x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), blocks)
    if _by_waves(x):
        products = moved_products(x, windows)
    else:
        products = relative_shift(ops.matmul(x, windows))
    return ops.reshape(products, (batch, heads, length, length))


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


def relative_values(weights, embed: Callable):
    """What relative embeddings of the values add: `y_i = Σ_j A[i, j] a_{j - i}`.

    Args:
        weights: float tensor `A` `[B, N, T, T]`.
        embed: gives `a` at relative positions, `[R]` to `[R, N, H]`.

    Returns:
        Tensor `[B, T, N, H]`.

    Reference:
        Shaw et al., "Self-attention with relative position representations",
        equation 3.
    """
    batch, heads, length, _ = ops.shape(weights)
    block, starts = _blocks(length)
    windows = _windows(embed(relative_positions(length)), length + block, starts)
    weights = ops.reshape(weights, (batch, heads, len(starts), block, length))
    if _by_waves(weights):
        mixed = moved_values(weights, windows)
    else:
        weights = relative_unshift(weights)
        mixed = ops.matmul(weights, ops.swapaxes(windows, -1, -2))
    mixed = ops.reshape(mixed, (batch, heads, length, windows.shape[-2]))
    return ops.transpose(mixed, (0, 2, 1, 3))


def relative_sums(weights, x):
    """What `relative_values` gives back to its embeddings: `y_r = Σ_i A[i, i + r] x_i`.

    Summed over the batch, too. With `x` the gradient of the values, `y` is that of `a`.

    Args:
        weights: float tensor `A` `[B, N, T, T]`.
        x: float tensor `[B, T, N, H]`.

    Returns:
        Tensor `[2T, N, H]` at the relative positions `1 - T … T`.
    """
    batch, heads, length, _ = ops.shape(weights)
    block, starts = _blocks(length)
    blocks = (batch, heads, len(starts), block)
    weights = ops.reshape(weights, (*blocks, length))
    x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (*blocks, x.shape[-1]))
    if _by_waves(weights):
        windows = moved_sums(weights, x)
    else:
        weights = relative_unshift(weights * one_after(x))
        windows = ops.einsum("bnaiw,bnaih->nahw", weights, x)
    if len(starts) == 1:
        return ops.transpose(windows[:, 0], (2, 0, 1))
    sides = [(start, length - block - start) for start in starts]
    parts = [
        ops.pad(windows[:, index], ((0, 0), (0, 0), side))
        for index, side in enumerate(sides)
    ]
    return ops.transpose(sum(parts), (2, 0, 1))


def _blocks(length):
    """Positions in a block, and the first relative position of each as a column.

    All are one block where the length is not known or 128 does not divide it.
    """
    if not isinstance(length, int) or length % _BLOCK:
        return length, [0]
    return _BLOCK, range(length - _BLOCK, -1, -_BLOCK)


def _by_waves(x):
    """Whether rows move by products: in half precision, if blocks of 128 have them.

    Half precision is for hardware to which products are cheap and moving is not.
    """
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return half and x.shape[-2] == _BLOCK


def _windows(rows, width, starts):
    """Columns of relative positions, `[2T, N, H]` or `[2T, H]`, for each block.

    Tensor `[N, A, H, width]`, or `[A, H, width]`.
    """
    rows = ops.transpose(rows, (1, 2, 0) if len(rows.shape) == 3 else (1, 0))
    return ops.stack([cut(rows, -1, x, x + width) for x in starts], axis=-3)


def _scaled(x):
    return x * (1.0 / math.sqrt(x.shape[-1]))


def _laid_out(key, embed):
    """Embeddings `[R, ...]` over all pairs of positions, `[..., T, T]`."""
    rows = embed(relative_positions(ops.shape(key)[1]))
    return toeplitz(ops.moveaxis(rows, 0, -1))
