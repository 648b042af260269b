"""What an attention is asked, and what its equations are given."""

from typing import Any, NamedTuple


class AttentionInputs(NamedTuple):
    """What an attention is asked.

    Shapes: B batch, M queries, S keys, D hidden size.

    Attributes:
        query: float tensor `[B, M, D]`, what queries are made of.
        hidden: float tensor `[B, S, D]`, what keys and values are made of.
        visible: bool tensor `[B, S]`, false at padding, or `None`.
        mask: bool tensor broadcastable to `[B, M, S]`, true where the query sees the
            key, or `None`.
        query_ranks, key_ranks: integer tensors `[B, M]` and `[B, S]`: a query sees the
            keys of lower rank only; or `None`.
        positions: integer tensor `[B, M]`, the positions of the queries; `None` if the
            queries are those of all `S` positions, in order. Queries of one position
            are equal.
        positional: whether queries have a position. If not, all keys are alike to
            them, whatever depends on relative positions is left out, and `M` is any.
        segment_ids: integer tensor `[B, S]`, or `None`.
        layer_index: integer, the place of the layer in its stack in this call, or
            `None` for the layer's own.
        training: whether dropout is active.
        recompute: whether scores and weights are recomputed for the gradient.
    """

    query: Any
    hidden: Any
    visible: Any = None
    mask: Any = None
    query_ranks: Any = None
    key_ranks: Any = None
    positions: Any = None
    positional: bool = True
    segment_ids: Any = None
    layer_index: int | None = None
    training: bool | None = None
    recompute: bool = False


class Queries(NamedTuple):
    """Queries: all, a block of them in a row, or a few. Their axis is the last but one.

    Shapes: B batch, N heads, t queries, S keys, H head size.

    Attributes:
        vectors: float tensor `[B, N, t, H]`.
        relative: dict of what the layer's `relative_terms` gave, at the relative
            positions `1 - t … S` to the first query, `[t + S, ...]` each; `None` for
            queries without a position, or at positions of their own.
        positions: integer tensor `[t, 1]` or `[B, t, 1]`; `None` without positions.
        segment_ids: integer tensor `[B, 1, t, 1]`, or `None`.
        ranks: integer tensor `[B, 1, t, 1]`, or `None`.
        mask: bool tensor `[B or 1, 1, t, S]`, or `None`.
        dropout_bits: integer tensor `[B, N, t, 1]`, or `None` if nothing is dropped.
        context: float tensor `[B, N, t, H]`, what was computed for these queries, where
            a gradient computes again what led to it; or `None`.
    """

    vectors: Any
    relative: dict | None = None
    positions: Any = None
    segment_ids: Any = None
    ranks: Any = None
    mask: Any = None
    dropout_bits: Any = None
    context: Any = None


class Keys(NamedTuple):
    """Keys and their values, and the weights that scores and values need.

    Attributes:
        vectors: float tensor `[B, N, S, H]`.
        values: float tensor `[B, N, S, H]`.
        weights: dict of weights of the layer that scores and values need.
        visible: bool tensor `[B, N or 1, 1, S]`, or `None`.
        segment_ids: integer tensor `[B, 1, 1, S]`, or `None`.
        ranks: integer tensor `[B, 1, 1, S]`, or `None`.
    """

    vectors: Any
    values: Any
    weights: dict = {}
    visible: Any = None
    segment_ids: Any = None
    ranks: Any = None
