"""Masks of permutation language modelling."""

from keras import ops

from tfeff.utils.types import Tensor


def permutation_masks(
    ranks: Tensor, visible: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention masks for predicting the tokens of a sequence in any order.

    The rank of a position is its index in that order. The content stream of `i` attends
    to every `j` with `rank_j ≤ rank_i`, itself included; its query stream, which
    predicts the token, to every `j` with `rank_j < rank_i`. Positions that are not
    predicted share one rank below all others: all positions attend to them, and they
    attend only to each other.

    Args:
        ranks: integer tensor `[B, T]`.
        visible: bool tensor `[B, T]`, false at padding, or `None`.

    Returns:
        `(content, query)`: bool tensors `[B, T, T]`, true where `i` attends to `j`.

    Example:

    >>> from keras import ops
    >>> content, query = permutation_masks(ops.convert_to_tensor([[1, 0, -1]]))
    >>> ops.convert_to_numpy(query[0]).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]

    Reference:
        Yang et al., "XLNet", sections 2.2 and 2.3.
    """
    query_ranks, key_ranks = ops.expand_dims(ranks, 2), ops.expand_dims(ranks, 1)
    content, query = key_ranks <= query_ranks, key_ranks < query_ranks
    if visible is None:
        return content, query
    visible = ops.expand_dims(visible, 1)
    return ops.logical_and(content, visible), ops.logical_and(query, visible)
