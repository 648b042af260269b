"""Softmax and one-head attention, from scores to context vectors: the equations.

Shapes: B batch, t queries, S keys, N heads, n parts, D hidden size, H = D / N. Heads
come before positions. `tfeff.ops.kernels` has equal, faster versions of
`softmax_values` and `part_values`.
"""

import math

from keras import ops

from tfeff.ops.masking import l2_normalized_sigmoid, masked_softmax
from tfeff.ops.relative_terms import relative_values
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.types import Tensor

NORMALIZERS = {"softmax": masked_softmax, "sigmoid_l2": l2_normalized_sigmoid}


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Splits vectors into heads: head `h` has the columns from `h D / N`.

    Args:
        x: tensor `[B, T, D]`.
        num_heads: integer `N` that divides `D`.

    Returns:
        Tensor `[B, T, N, D / N]`.

    Raises:
        TypeError: if `num_heads` is not an integer.
        ValueError: if it is below 1, or does not divide `D`.

    Example:

    >>> from keras import ops
    >>> tuple(split_heads(ops.ones((2, 3, 8)), 4).shape)
    (2, 3, 4, 2)
    """
    num_heads = check_integer("num_heads", num_heads)
    batch, length, size = ops.shape(x)
    known = x.shape[-1]
    if known is not None and known % num_heads:
        raise ValueError(
            "`num_heads` must divide the last axis of `x`. Received: num_heads="
            f"{num_heads}, x.shape={tuple(x.shape)}"
        )
    return ops.reshape(x, (batch, length, num_heads, size // num_heads))


def merge_heads(x: Tensor) -> Tensor:
    """Concatenates heads, the inverse of `split_heads`.

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


def scaled(x):
    """`x / sqrt(H)`, of vectors of size `H`."""
    return x * (1.0 / math.sqrt(x.shape[-1]))


def dot_product_scores(query: Tensor, key: Tensor) -> Tensor:
    """`s[i, j] = q_i · k_j / sqrt(H)`.

    Args:
        query: float tensor `[B, N, t, H]`.
        key: float tensor `[B, N, S, H]`.

    Returns:
        Tensor `[B, N, t, S]`.

    Example:

    >>> from keras import ops
    >>> query, key = ops.ones((1, 1, 1, 4)), ops.ones((1, 1, 3, 4))
    >>> ops.convert_to_numpy(dot_product_scores(query, key)[0, 0]).tolist()
    [[2.0, 2.0, 2.0]]

    Reference:
        Vaswani et al., "Attention is all you need", section 3.2.1.
    """
    # If all axes had names, Keras would transpose the keys, TensorFlow their gradient.
    return ops.einsum("...th,...sh->...ts", scaled(query), key)


def weighted_values(weights: Tensor, value: Tensor) -> Tensor:
    """`y[h, i] = Σ_j A[h, i, j] v[h, j]`.

    Args:
        weights: float tensor `A` `[B, N, t, S]`.
        value: float tensor `v` `[B, N, S, H]`.

    Returns:
        Tensor `[B, N, t, H]`.

    Example:

    >>> from keras import ops
    >>> weights = ops.convert_to_tensor([[[[0.25, 0.75]]]])
    >>> value = ops.convert_to_tensor([[[[1.0], [2.0]]]])
    >>> float(weighted_values(weights, value)[0, 0, 0, 0])
    1.75

    Reference:
        Vaswani et al., "Attention is all you need", section 3.2.1.
    """
    return ops.einsum("bnts,bnsh->bnth", weights, value)


def softmax_values(
    scores: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    partition: Tensor | None = None,
    keep: Tensor | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """Values weighted by the softmax of scores.

    `X̄[h] = (A[h] ⊙ F[h]) V[h]` with `A[h] = softmax(S[h])`, where `F` is the product of
    `partition` and `keep`, each 1 if not given. Rows without a visible key give 0. With
    `rows` `a` of relative embeddings, the value of `j` for `i` is
    `V[h, j] + a_{j - i}[h]`.

    Args:
        scores: float tensor `S` `[B, N, t, S]`.
        value: float tensor `V` `[B, N, S, H]`.
        mask: bool tensor `[B or 1, N or 1, t or 1, S]`, true where a key is visible,
            or `None` when all are.
        partition: float tensor `[N, t, S]`, or `None`. It gets no gradient.
        keep: bool tensor `[B, N, t, S]`, false at dropped weights, or `None`. Kept
            weights are not scaled up here.
        rows: float tensor `a` `[t + S, N, H]` at the relative positions `1 - t … S` to
            the first query, or `None`.

    Returns:
        Tensor `X̄` `[B, N, t, H]`.

    Example:

    >>> from keras import ops
    >>> scores = ops.zeros((1, 1, 1, 2))
    >>> value = ops.convert_to_tensor([[[[1.0], [3.0]]]])
    >>> float(softmax_values(scores, value)[0, 0, 0, 0])
    2.0
    >>> mask = ops.convert_to_tensor([[[[True, False]]]])
    >>> float(softmax_values(scores, value, mask)[0, 0, 0, 0])
    1.0

    Reference:
        Vaswani et al., "Attention is all you need", section 3.2.1; Tian et al.,
        "Shatter", equation 5; Shaw et al., equation 3.
    """
    weights = apply_keep_mask(masked_softmax(scores, mask), keep)
    if partition is not None:
        weights = weights * partition
    context = weighted_values(weights, value)
    return context if rows is None else context + relative_values(weights, rows)


def one_head_scores(
    query: Tensor,
    key: Tensor,
    partition: Tensor | None = None,
    bias_embeddings: Tensor | None = None,
) -> Tensor:
    """One matrix of scores for all parts, before normalisation.

    With `N` the partition and `R` its embeddings:

        B[i, j] = Σ_h (Q Rᵀ)[i, h] N[h, i, j]
        S       = Q Xᵀ / sqrt(D) + B

    Args:
        query: float tensor `Q` `[B, 1, t, D]`.
        key: float tensor `[B, 1, S, D]`; the hidden state `X` itself in Shatter.
        partition: float tensor `N` `[n, t, S]`, used for the bias only.
        bias_embeddings: float tensor `R` `[n, D]` for the bias `B`, or `None`.

    Returns:
        Tensor `S` `[B, 1, t, S]`.

    Example:

    >>> from keras import ops
    >>> vectors, partition = ops.ones((1, 1, 2, 4)), ops.ones((2, 2, 2)) / 2
    >>> scores = one_head_scores(vectors, vectors, partition, ops.ones((2, 4)))
    >>> ops.convert_to_numpy(scores[0, 0]).tolist()
    [[6.0, 6.0], [6.0, 6.0]]

    Reference:
        Tian et al., "Shatter", sections 3.2 (equation 6) and 3.3.
    """
    scores = dot_product_scores(query, key)
    if bias_embeddings is None:
        return scores
    # The bias is not scaled.
    part_products = ops.einsum("bmtd,nd->bmtn", query, bias_embeddings)
    return scores + ops.einsum("bmtn,nts->bmts", part_products, partition)


def part_values(
    scores: Tensor,
    value: Tensor,
    partition: Tensor,
    normalizer: str = "sigmoid_l2",
    mask: Tensor | None = None,
    keep: Tensor | None = None,
) -> Tensor:
    """Values weighted part by part, by the same normalised scores.

    With the partition `N` and the normaliser `φ`:

        A    = φ(S), and 0 where `keep` is false
        X̄[h] = (A ⊙ N[h]) V[h]

    Args:
        scores: float tensor `S` `[B, 1, t, S]`.
        value: float tensor `V` `[B, n, S, H]`.
        partition: float tensor `N` `[n, t, S]`. It gets no gradient.
        normalizer: `"sigmoid_l2"` or `"softmax"`.
        mask: bool tensor broadcastable to `[B, 1, t, S]`, true where a key is visible,
            or `None` when all are.
        keep: bool tensor `[B, 1, t, S]`, false at dropped weights, or `None`. Kept
            weights are not scaled up here.

    Returns:
        Tensor `X̄` `[B, n, t, H]`.

    Raises:
        ValueError: if `normalizer` is another one.

    Example:

    >>> from keras import ops
    >>> value = ops.ones((1, 2, 2, 1))
    >>> partition = ops.convert_to_tensor([[[1.0, 0.25]], [[0.0, 0.75]]])
    >>> context = part_values(ops.zeros((1, 1, 1, 2)), value, partition, "softmax")
    >>> ops.convert_to_numpy(context[0, :, 0, 0]).tolist()
    [0.625, 0.375]

    Reference:
        Tian et al., "Shatter", sections 3.1 to 3.3.
    """
    check_choice("normalizer", normalizer, NORMALIZERS)
    weights = apply_keep_mask(NORMALIZERS[normalizer](scores, mask), keep)
    return weighted_values(weights * partition, value)


def apply_keep_mask(x: Tensor, keep: Tensor | None) -> Tensor:
    """`x` with zeros where `keep` is false.

    Args:
        x: tensor of any shape and dtype.
        keep: bool tensor that broadcasts to `x`; `None` keeps all.

    Returns:
        Tensor like `x`.

    Example:

    >>> from keras import ops
    >>> keep = ops.convert_to_tensor([True, False, True])
    >>> ops.convert_to_numpy(apply_keep_mask(ops.ones(3), keep)).tolist()
    [1.0, 0.0, 1.0]
    """
    return x if keep is None else ops.where(keep, x, ops.zeros_like(x))
