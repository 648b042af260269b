"""The inputs of an attention, and the queries and keys of its equations."""

from typing import Any, NamedTuple


class AttentionInputs(NamedTuple):
    """Queries over a sequence, and their masks.

    Shapes: B batch, M queries, S keys, D hidden size.

    Attributes:
        query: float tensor `[B, M, D]`, from which queries are projected.
        hidden: float tensor `[B, S, D]`, from which keys and values are projected.
        visible: bool tensor `[B, S]`, false at padding, or `None`.
        query_ranks, key_ranks: integer tensors `[B, M]` and `[B, S]`: a query attends
            only to keys of lower rank; or `None`.
        positions: integer tensor `[B, M]`, the positions of the queries; `None` if the
            queries are those of all `S` positions, in order. Queries of one position
            are equal.
        positional: whether queries have a position. If not, relative terms are left
            out, and `M` is any.
        segment_ids: integer tensor `[B, S]`, or `None`.
        layer_index: integer, the index of the layer in its stack in this call, or
            `None` for the layer's own.
        training: whether dropout is active.
        recompute: whether the backward pass recomputes scores and weights.
        head_mask: float tensor `[N]`, a factor of each head's output, or `None`.
    """

    query: Any
    hidden: Any
    visible: Any = None
    query_ranks: Any = None
    key_ranks: Any = None
    positions: Any = None
    positional: bool = True
    segment_ids: Any = None
    layer_index: int | None = None
    training: bool | None = None
    recompute: bool = False
    head_mask: Any = None


class Queries(NamedTuple):
    """All queries, a consecutive block or a few, along the last axis but one.

    Shapes: B batch, N heads, t queries, S keys, H head size.

    Attributes:
        vectors: float tensor `[B, N, t, H]`.
        relative: dict of the layer's `relative_terms` at the relative positions
            `1 - t … S` to the first query, `[t + S, ...]` each, or `NearFar`s of
            them in long sequences where the layer has a `reach`; `None` for queries
            without a position, or at given positions.
        positions: integer tensor `[t, 1]` or `[B, t, 1]`; `None` without positions.
        segment_ids: integer tensor `[B, 1, t, 1]`, or `None`.
        ranks: integer tensor `[B, 1, t, 1]`, or `None`.
        dropout_bits: integer tensor `[B, N, t, 1]`, or `None` if nothing is dropped.
        context: float tensor `[B, N, t, H]`, the result for these queries if a
            recomputation has it already; or `None`.
    """

    vectors: Any
    relative: Any = None
    positions: Any = None
    segment_ids: Any = None
    ranks: Any = None
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
