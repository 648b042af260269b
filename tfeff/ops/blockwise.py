"""Blockwise attention: only the blocks of the score matrix that are wanted.

Blocks of a sequence become sequences of their own, `[B, T, …]` to `[B n, t, …]`, so
that any attention on these is one by blocks, and `T × T` scores never exist.

Shapes: B batch, T positions in n blocks of t, N heads, H head size.
"""

import itertools
from collections.abc import Sequence

from keras import ops


def query_blocks(x, num_blocks: int):
    """Cuts sequences into blocks, one below the other.

    Args:
        x: tensor `[B, T, …]`.
        num_blocks: integer `n` that divides `T`.

    Returns:
        Tensor `[B n, T / n, …]`.

    Example:

    >>> from keras import ops
    >>> tuple(query_blocks(ops.ones((2, 6, 4)), 3).shape)
    (6, 2, 4)
    """
    batch, length, *rest = ops.shape(x)
    return ops.reshape(x, (batch * num_blocks, length // num_blocks, *rest))


def from_blocks(x, num_blocks: int):
    """Joins blocks again, the inverse of `query_blocks`.

    Args:
        x: tensor `[B n, t, …]`.
        num_blocks: integer `n`.

    Returns:
        Tensor `[B, n t, …]`.

    Example:

    >>> from keras import ops
    >>> tuple(from_blocks(ops.ones((6, 2, 4)), 3).shape)
    (2, 6, 4)
    """
    batch, length, *rest = ops.shape(x)
    return ops.reshape(x, (batch // num_blocks, num_blocks * length, *rest))


def key_blocks(x, head_blocks: Sequence[int]):
    """For each block of queries and each head, the block that it reads.

    A head of shift `s` lets the queries of block `b` read the keys and values of block
    `b + s`, counted in a circle:

        A[h, b] = softmax(Q[h, b] K[h, b + s]ᵀ / sqrt(H))       [t, t]
        X̄[h, b] = A[h, b] V[h, b + s]

    Args:
        x: tensor `[B n, N, t, …]`, keys, values or their mask in blocks.
        head_blocks: how many heads have the shifts `0, 1, … n - 1`, in this order;
            they add up to `N`.

    Returns:
        Tensor `[B n, N, t, …]`, the blocks that are read.

    Example:

    >>> from keras import ops
    >>> x = ops.reshape(ops.arange(4), (2, 1, 2))
    >>> ops.convert_to_numpy(key_blocks(x, [0, 1]))[:, 0].tolist()
    [[2, 3], [0, 1]]

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding",
        section 3.
    """
    num_blocks = len(head_blocks)
    if num_blocks == 1:
        return x
    shape = ops.shape(x)
    x = ops.reshape(x, (shape[0] // num_blocks, num_blocks, *shape[1:]))
    # Cut at once: on CPUs the gradients of single slices took as long as the scores.
    parts = ops.split(x, list(itertools.accumulate(head_blocks[:-1])), axis=2)
    parts = [ops.roll(part, -shift, axis=1) for shift, part in enumerate(parts)]
    return ops.reshape(ops.concatenate(parts, axis=2), shape)


def dense_scores(scores, head_blocks: Sequence[int]):
    """Lays the scores of blocks out over all pairs of positions.

    Args:
        scores: float tensor `[B n, N, t, t]`.
        head_blocks: as in `key_blocks`.

    Returns:
        Tensor `[B, N, T, T]`, zero outside of the blocks.
    """
    num_blocks = len(head_blocks)
    batch, heads, block, _ = ops.shape(scores)
    scores = ops.reshape(scores, (batch // num_blocks, num_blocks, heads, block, block))
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
        "bnhqk,hnm->bhnqmk", scores, ops.convert_to_tensor(by_head, scores.dtype)
    )
    length = num_blocks * block
    return ops.reshape(dense, (batch // num_blocks, heads, length, length))
