"""Attention scores with relative positions, for all keys or near and far ones.

`rows` are those of all relative positions, as in `tfeff.ops.relative`, or `NearFar`:
far rows are then added to the keys, and near terms to the near scores alone.
"""

from keras import ops

from tfeff.ops import relative
from tfeff.ops.attention import dot_product_scores, scaled
from tfeff.ops.kernels.near_far import (
    NearFar,
    add_near,
    far_products,
    far_rows,
    join_near_far,
    near_keys,
)
from tfeff.ops.kernels.relative_products import key_products, relative_products
from tfeff.utils.types import Tensor


def shaw_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.shaw_scores`: `s[i, j] = q_i · (k_j + a_x) / sqrt(H)`."""
    if isinstance(rows, NearFar):
        scores = dot_product_scores(query, key + far_rows(rows))
        near = relative_products(scaled(query), rows.near)
        return add_near(scores, near, rows.first)
    return dot_product_scores(query, key) + relative_products(scaled(query), rows)


def bias_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.bias_scores`: `s[i, j] = q_i · k_j / sqrt(H) + a_x`."""
    if not isinstance(rows, NearFar):
        return relative.bias_scores(query, key, rows)
    far = ops.swapaxes(far_rows(_as_vectors(rows)), -1, -2)
    scores = dot_product_scores(query, key) + far
    return add_near(scores, toeplitz_rows(query, rows.near), rows.first)


def scaled_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.scaled_scores`: `s[i, j] = (q_i · k_j) a_x / sqrt(H)`."""
    if not isinstance(rows, NearFar):
        return relative.scaled_scores(query, key, rows)
    near = scaled_scores(query, near_keys(key, rows), rows.near)
    far = dot_product_scores(query, key * far_rows(_as_vectors(rows)))
    return add_near(far, near, rows.first)


def pairwise_scores(query: Tensor, key: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.pairwise_scores`.

    `s[i, j] = (q_i · k_j + q_i · a_x + k_j · a_x) / sqrt(H)`.
    """
    count = ops.shape(query)[2]
    if isinstance(rows, NearFar):
        scores = dot_product_scores(query, key + far_rows(rows))
        scores = scores + far_products(scaled(key), rows)
        near = relative_products(scaled(query), rows.near)
        near_key = scaled(near_keys(key, rows))
        near = near + key_products(near_key, rows.near, count)
        return add_near(scores, near, rows.first)
    return shaw_scores(query, key, rows) + key_products(scaled(key), rows, count)


def xlnet_scores(
    query: Tensor,
    key: Tensor,
    rows: Tensor,
    content_bias: Tensor,
    position_bias: Tensor,
) -> Tensor:
    """Equals `tfeff.ops.xlnet_scores`.

    `s[i, j] = ((q_i + u) · k_j + (q_i + v) · r_x) / sqrt(H)`.
    """
    if content_bias is None:
        return shaw_scores(query, key, rows)
    content_query = relative.with_bias(query, content_bias)
    position_query = scaled(relative.with_bias(query, position_bias))
    if isinstance(rows, NearFar):
        far = far_rows(rows)
        # The far rows, added to the keys, are multiplied with `u` instead of `v`.
        bias_difference = scaled(position_bias - content_bias)[:, None]
        scores = dot_product_scores(content_query, key + far)
        scores = scores + ops.matmul(bias_difference, ops.swapaxes(far, -1, -2))
        return add_near(
            scores, relative_products(position_query, rows.near), rows.first
        )
    scores = dot_product_scores(content_query, key)
    return scores + relative_products(position_query, rows)


def toeplitz_rows(query: Tensor, rows: Tensor) -> Tensor:
    """Equals `tfeff.ops.toeplitz_rows`: rows by relative position at all pairs."""
    if not isinstance(rows, NearFar):
        return relative.toeplitz_rows(query, rows)
    near = relative.toeplitz_rows(query, rows.near)
    left, right = (ops.moveaxis(x, 0, -1)[..., None] for x in rows[1:3])
    return join_near_far(near, left, right, rows.first, rows.length)


def _as_vectors(rows):
    """Scalars `[..., N]` as vectors `[..., N, 1]`."""
    return NearFar(*(x[..., None] for x in rows[:3]), *rows[3:])
