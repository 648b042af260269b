"""Blockwise attention: only the blocks of the score matrix that are wanted.

Shapes: B batch, T positions in n blocks of t, N heads, H head size.
"""

import math
from collections.abc import Callable, Sequence

from keras import ops

from tfeff.ops.masking import masked_softmax


def blockwise_attention(
    query,
    key,
    value,
    head_blocks: Sequence[int],
    mask=None,
    dropout: Callable | None = None,
):
    """Softmax attention in which a block of queries reads one block of keys.

    The sequence is cut into `n` blocks of `t = T / n`. A head of shift `s` lets the
    queries of block `b` read the keys of block `b + s`, counted in a circle:

        A[h, b] = softmax(Q[h, b] K[h, b + s]ᵀ / sqrt(H))       [t, t]
        X̄[h, b] = A[h, b] V[h, b + s]

    so that `n` blocks of `t × t` scores a head exist, and never `T × T`.

    Args:
        query: float tensor `[B, T, N, H]`.
        key: float tensor `[B, T, N, H]`.
        value: float tensor `[B, T, N, H]`.
        head_blocks: how many heads have the shifts `0, 1, … n - 1`, in this order;
            they add up to `N`, and their number `n` divides `T`.
        mask: bool tensor `[B, T]`, true at visible keys, or `None`.
        dropout: function applied to the normalised scores.

    Returns:
        `(mixed, scores)`: `[B, T, N, H]` and `A` `[B, N, n, t, t]`.

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding",
        section 3.
    """
    num_blocks = len(head_blocks)
    query = _blocks(query, num_blocks) * (1.0 / math.sqrt(query.shape[-1]))
    key = _shifted(_blocks(key, num_blocks), head_blocks)
    value = _shifted(_blocks(value, num_blocks), head_blocks)
    if mask is not None:
        mask = ops.repeat(mask[:, :, None, None], sum(head_blocks), axis=2)
        mask = _shifted(_blocks(mask, num_blocks), head_blocks)
        mask = ops.transpose(mask, (0, 3, 1, 4, 2))
    scores = masked_softmax(ops.einsum("bcqnh,bcknh->bncqk", query, key), mask)
    if dropout is not None:
        scores = dropout(scores)
    mixed = ops.einsum("bncqk,bcknh->bcqnh", scores, value)
    batch, _, block, heads, size = ops.shape(mixed)
    return ops.reshape(mixed, (batch, num_blocks * block, heads, size)), scores


def dense_scores(scores, head_blocks: Sequence[int]):
    """Lays the scores of `blockwise_attention` out over all pairs of positions.

    Args:
        scores: float tensor `[B, N, n, t, t]`.
        head_blocks: as in `blockwise_attention`.

    Returns:
        Tensor `[B, N, T, T]`, zero outside of the blocks.
    """
    num_blocks = len(head_blocks)
    batch, heads, _, block, _ = ops.shape(scores)
    # reads[s, b, c]: whether, with the shift s, block b reads block c.
    reads = [
        [
            [float((b + s) % num_blocks == c) for c in range(num_blocks)]
            for b in range(num_blocks)
        ]
        for s in range(num_blocks)
    ]
    by_head = [reads[s] for s, count in enumerate(head_blocks) for _ in range(count)]
    dense = ops.einsum(
        "bhnqk,hnm->bhnqmk", scores, ops.convert_to_tensor(by_head, scores.dtype)
    )
    length = num_blocks * block
    return ops.reshape(dense, (batch, heads, length, length))


def _blocks(x, num_blocks):
    """`[B, T, N, H]` to `[B, n, t, N, H]`."""
    batch, length, heads, size = ops.shape(x)
    return ops.reshape(x, (batch, num_blocks, length // num_blocks, heads, size))


def _shifted(x, head_blocks):
    """Turns the blocks, axis 1, of each head, axis 3, by the head's shift."""
    parts, first = [], 0
    for shift, count in enumerate(head_blocks):
        part = x[:, :, :, first : first + count]
        if shift and count:
            part = ops.concatenate([part[:, shift:], part[:, :shift]], axis=1)
        parts.append(part)
        first += count
    return ops.concatenate(parts, axis=3)
