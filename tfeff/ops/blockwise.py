"""Blockwise attention: only some blocks of the score matrix are computed.

Blocks become sequences of the batch, `[B, T, …]` to `[B n, t, …]`: any attention over
these is blockwise, and `T × T` scores never exist.

Shapes: B batch, T positions in n blocks of t, N heads, H head size.
"""

import itertools
from collections.abc import Sequence

from keras import ops


def query_blocks(x, num_blocks: int):
    """Splits sequences into blocks, stacked along the batch.

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
    """Concatenates blocks, the inverse of `query_blocks`.

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
    """The block of keys that each block of queries attends to, by head.

    In a head of shift `s`, the queries of block `b` attend to the keys and values of
    block `b + s`, modulo the number of blocks:

        A[h, b] = softmax(Q[h, b] K[h, b + s]ᵀ / sqrt(H))       [t, t]
        X̄[h, b] = A[h, b] V[h, b + s]

    Args:
        x: tensor `[B n, N, t, …]`, keys, values or their mask in blocks.
        head_blocks: the number of heads of each shift `0, 1, … n - 1`; they add up to
            `N`.

    Returns:
        Tensor `[B n, N, t, …]`, the blocks attended to.

    Example:

    >>> from keras import ops
    >>> x = ops.reshape(ops.arange(4), (2, 1, 2))
    >>> ops.convert_to_numpy(key_blocks(x, [0, 1]))[:, 0].tolist()
    [[2, 3], [0, 1]]

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding",
        equation 3.
    """
    num_blocks = len(head_blocks)
    if num_blocks == 1:
        return x
    shape = ops.shape(x)
    x = ops.reshape(x, (shape[0] // num_blocks, num_blocks, *shape[1:]))
    # One split: on CPUs the gradients of separate slices took as long as the scores.
    parts = ops.split(x, list(itertools.accumulate(head_blocks[:-1])), axis=2)
    parts = [ops.roll(part, -shift, axis=1) for shift, part in enumerate(parts)]
    return ops.reshape(ops.concatenate(parts, axis=2), shape)


def dense_scores(scores, head_blocks: Sequence[int]):
    """Scatters the scores of blocks into a matrix of all pairs of positions.

    Args:
        scores: float tensor `[B n, N, t, t]`.
        head_blocks: as in `key_blocks`.

    Returns:
        Tensor `[B, N, T, T]`, zero outside of the blocks.
    """
    num_blocks = len(head_blocks)
    batch, heads, block, _ = ops.shape(scores)
    scores = ops.reshape(scores, (batch // num_blocks, num_blocks, heads, block, block))
    # attends[s, b, c]: whether block b attends to block c in a head of shift s.
    attends = [
        [
            [float((b + s) % num_blocks == c) for c in range(num_blocks)]
            for b in range(num_blocks)
        ]
        for s in range(num_blocks)
    ]
    by_head = [attends[s] for s, count in enumerate(head_blocks) for _ in range(count)]
    dense = ops.einsum(
        "bnhqk,hnm->bhnqmk", scores, ops.convert_to_tensor(by_head, scores.dtype)
    )
    length = num_blocks * block
    return ops.reshape(dense, (batch // num_blocks, heads, length, length))
