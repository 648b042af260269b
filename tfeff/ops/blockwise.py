"""Blockwise attention: only some blocks of the score matrix are computed.

Blocks become sequences of the batch, `[B, T, …]` to `[B n, t, …]`: any attention over
these is blockwise, and `T × T` scores never exist.

Shapes: B batch, T positions in n blocks of t, N heads, H head size.
"""

import itertools
import math
from collections.abc import Sequence

from keras import ops

from tfeff.utils.types import Tensor


def query_blocks(x: Tensor, num_blocks: int) -> Tensor:
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


def from_blocks(x: Tensor, num_blocks: int) -> Tensor:
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


def head_permutations(head_blocks: Sequence) -> list[tuple[int, ...]]:
    """The permutation `π` of the blocks in each head.

    The queries of block `b` attend to the keys of block `π(b)`:

        M[i, j] = 1 if π(⌊i n / T⌋) = ⌊j n / T⌋, else 0

    Args:
        head_blocks: the number of heads of each shift `0, 1, … n - 1`, of which `s` is
            `π(b) = b + s`, modulo `n`; or `π` of each head, `n` integers from 0.

    Returns:
        List of `N` tuples of `n` integers.

    Example:

    >>> head_permutations([2, 1])
    [(0, 1), (0, 1), (1, 0)]
    >>> head_permutations([[0, 2, 1], [2, 1, 0]])
    [(0, 2, 1), (2, 1, 0)]

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding",
        equation 2, which counts from 1.
    """
    if any(isinstance(entry, Sequence) for entry in head_blocks):
        return [tuple(permutation) for permutation in head_blocks]
    num_blocks = len(head_blocks)
    return [
        tuple((b + shift) % num_blocks for b in range(num_blocks))
        for shift, count in enumerate(head_blocks)
        for _ in range(count)
    ]


def key_blocks(x: Tensor, head_blocks: Sequence) -> Tensor:
    """The block of keys that each block of queries attends to, by head.

    In a head of the permutation `π`, the queries of block `b` attend to the keys and
    values of block `π(b)`:

        A[h, b] = softmax(Q[h, b] K[h, π(b)]ᵀ / sqrt(H))       [t, t]
        X̄[h, b] = A[h, b] V[h, π(b)]

    Args:
        x: tensor `[B n, N, t, …]`, keys, values or their mask in blocks.
        head_blocks: the number of heads of each shift, or the permutation of each head,
            as for `head_permutations`.

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
    permutations = head_permutations(head_blocks)
    num_blocks = len(permutations[0])
    if num_blocks == 1:
        return x
    runs = [len(list(heads)) for _, heads in itertools.groupby(permutations)]
    size = math.gcd(*runs)  # Heads that move together.
    parts = range(0, len(permutations), size)
    # One split: on CPUs the gradients of separate slices took as long as the scores.
    # Rolling would do for shifts, but LiteRT has no such operator.
    shape = ops.shape(x)
    x = ops.reshape(
        x, (shape[0] // num_blocks, num_blocks * len(parts), size, *shape[2:])
    )
    pieces = ops.split(x, num_blocks * len(parts), axis=1)
    order = [
        permutations[head][block] * len(parts) + part
        for block in range(num_blocks)
        for part, head in enumerate(parts)
    ]
    return ops.reshape(ops.concatenate([pieces[i] for i in order], axis=1), shape)


def dense_scores(scores: Tensor, head_blocks: Sequence) -> Tensor:
    """Scatters the scores of blocks into a matrix of all pairs of positions.

    Args:
        scores: float tensor `[B n, N, t, t]`.
        head_blocks: as in `key_blocks`.

    Returns:
        Tensor `[B, N, T, T]`, zero outside of the blocks, which are `1 / n` of it.

    Example:

    >>> from keras import ops
    >>> scores = dense_scores(ops.ones((2, 1, 1, 1)), [(1, 0)])
    >>> ops.convert_to_numpy(scores[0, 0]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    permutations = head_permutations(head_blocks)
    num_blocks = len(permutations[0])
    batch, heads, block, _ = ops.shape(scores)
    scores = ops.reshape(scores, (batch // num_blocks, num_blocks, heads, block, block))
    # attends[h][b][c]: whether block b attends to block c in head h.
    attends = [
        [[float(c == target) for c in range(num_blocks)] for target in permutation]
        for permutation in permutations
    ]
    dense = ops.einsum(
        "bnhqk,hnm->bhnqmk", scores, ops.convert_to_tensor(attends, scores.dtype)
    )
    length = num_blocks * block
    return ops.reshape(dense, (batch // num_blocks, heads, length, length))
