"""Products with relative embeddings: the equations.

A block of `t` consecutive queries meets `S` keys at the relative positions `1 - t … S`
to its first query. `rows` hold the embedding of each; the last is not used.
`tfeff.ops.kernels.relative_products` has equal, faster versions.

Shapes: B batch, t queries, S keys, N heads, H head size.
"""

from keras import ops

from tfeff.ops.shifting import relative_shift, relative_unshift
from tfeff.utils.types import Tensor


def relative_products(x: Tensor, rows: Tensor) -> Tensor:
    """Products of each query with the embedding of every relative position.

    `y[i, j] = x_i · a_{j - i}`.

    Args:
        x: float tensor `[B, N, t, H]`.
        rows: float tensor `a` `[t + S, N, H]`, or `[t + S, H]` for all heads.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones = ops.ones((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> ops.convert_to_numpy(relative_products(ones, x)[0, 0]).tolist()
    [[0.0, 4.0], [-4.0, 0.0]]

    Reference:
        Shaw et al., "Self-attention with relative position representations", section 3.
    """
    equation = "bnth,rnh->bntr" if len(rows.shape) == 3 else "bnth,rh->bntr"
    return relative_shift(ops.einsum(equation, x, rows))


def key_products(key: Tensor, rows: Tensor, count: Tensor | int) -> Tensor:
    """Products of each key with the embedding of its position relative to a query.

    `y[i, j] = k_j · a_{j - i}`.

    Args:
        key: float tensor `[B, N, S, H]`.
        rows: float tensor `a` `[t + S, N, H]`, or `[t + S, H]` for all heads.
        count: integer `t`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> ones = ops.ones((1, 1, 2, 4))
    >>> x = ops.repeat(ops.convert_to_tensor([[-1.0], [0.0], [1.0], [2.0]]), 4, axis=1)
    >>> ops.convert_to_numpy(key_products(ones, x, count=2)[0, 0]).tolist()
    [[0.0, 4.0], [-4.0, 0.0]]

    Reference:
        Shaw et al., "Self-attention with relative position representations", section 3.
    """
    # Relative to the key, the query is at -x.
    rows = ops.concatenate([ops.flip(rows[:-1], axis=0), rows[-1:]], axis=0)
    return ops.swapaxes(relative_products(key, rows), -1, -2)


def relative_values(weights: Tensor, rows: Tensor) -> Tensor:
    """The weighted sum of relative embeddings: `y_i = Σ_j A[i, j] a_{j - i}`.

    Args:
        weights: float tensor `A` `[B, N, t, S]`.
        rows: float tensor `a` `[t + S, N, H]`.

    Returns:
        Tensor `[B, N, t, H]`.

    Example:

    >>> from keras import ops
    >>> weights = ops.ones((1, 1, 2, 2)) / 2
    >>> x = ops.convert_to_tensor([-1.0, 0.0, 1.0, 2.0])
    >>> ops.convert_to_numpy(relative_values(weights, x[:, None, None])[0, 0]).tolist()
    [[0.5], [-0.5]]

    Reference:
        Shaw et al., "Self-attention with relative position representations",
        equation 3.
    """
    return ops.einsum("bntr,rnh->bnth", relative_unshift(weights), rows)
