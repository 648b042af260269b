"""XLNet's two streams over a stack of blocks."""

import numpy as np

from tests.reference.attention import (
    NORMALIZERS,
    linear,
    merge,
    partition_bias,
    scaled_products,
    split,
    value_contribution,
    weighted_values,
)
from tests.reference.encoder import after_attention, part_of


def content_pairs(ranks, visible):
    """`sees[i, j]`: key j is visible and not later than i in the order."""
    return np.array(
        [[v and r <= rank for r, v in zip(ranks, visible)] for rank in ranks]
    )


def query_pairs(ranks, visible):
    """`sees[i, j]`: key j is visible and earlier than i in the order."""
    return np.array(
        [[v and r < rank for r, v in zip(ranks, visible)] for rank in ranks]
    )


def two_stream_blocks(hidden, visible, ranks, mask_embedding, block_weights, attend):
    """Both streams after the last block, [T, D] each.

    Args:
        hidden: [T, D], where the content stream starts.
        visible: [T].
        ranks: [T], the place of each position in the factorisation order.
        mask_embedding: [D], where the query stream starts at every position, or
            [T, D], where it starts at each.
        block_weights: the weights of each block.
        attend: `attend(queries, hidden, sees, attention_weights, place)` gives
            [T, D]; `place` is the number of the block, from 0.
    """
    content = hidden
    query = np.broadcast_to(mask_embedding, hidden.shape)
    for place, weights in enumerate(block_weights):
        attention = part_of(weights, "attention")
        of_query = attend(query, content, query_pairs(ranks, visible), attention, place)
        of_content = attend(
            content, content, content_pairs(ranks, visible), attention, place
        )
        query = after_attention(query, of_query, weights)
        content = after_attention(content, of_content, weights)
    return content, query


def one_head_pairs(queries, hidden, sees, weights, mask, normalizer):
    """Shatter's one-head attention, bias and value included, of visible pairs."""
    query = linear(queries, weights, "query")
    raw = scaled_products(query, hidden)
    raw = raw + partition_bias(query, weights["partition_embeddings"], mask)
    rows = [
        NORMALIZERS[normalizer](raw[i : i + 1], sees[i])[0] for i in range(len(raw))
    ]
    scores = mask * np.stack(rows)
    value = split(linear(hidden, weights, "value"), len(mask))
    context = merge(weighted_values(scores, value)) + value_contribution(
        scores, weights["partition_embeddings"], weights["value/kernel"]
    )
    return linear(context, weights, "output")
