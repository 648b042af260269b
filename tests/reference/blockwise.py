"""Which pairs BlockBERT and the fixed pattern of Sparse Transformers keep."""

import math

import numpy as np

from tests.reference.pairwise import all_pairs, pair_attention


def block_pairs(length, counts):
    """BlockBERT, equation 2, per head: [N, T, T].

    With n counts, `counts[s]` heads take the permutation that reads s blocks
    further on. The length is rounded up to a multiple of n.
    """
    num_blocks = len(counts)
    size = math.ceil(length / num_blocks)
    heads = []
    for shift, count in enumerate(counts):
        kept = np.zeros((length, length), bool)
        for i in range(length):
            for j in range(length):
                kept[i, j] = (i // size + shift) % num_blocks == j // size
        heads += [kept] * count
    return np.stack(heads)


def permuted_pairs(length, permutations):
    """BlockBERT, equation 2, as printed, per head: [N, T, T].

    Positions, blocks and what a permutation has are counted from 1: (2, 1) exchanges
    two blocks. The length is rounded up to a multiple of n.
    """
    heads = []
    for pi in permutations:
        n = len(pi)
        rounded = math.ceil(length / n) * n
        kept = np.zeros((length, length), bool)
        for i in range(1, length + 1):
            for j in range(1, length + 1):
                block = math.floor((i - 1) * n / rounded + 1)
                kept[i - 1, j - 1] = pi[block - 1] == math.floor(
                    (j - 1) * n / rounded + 1
                )
        heads.append(kept)
    return np.stack(heads)


def blockwise_attention(hidden, visible, weights, counts=None, permutations=None):
    """Dense attention over the pairs of `block_pairs` or `permuted_pairs`."""
    if permutations is None:
        kept = block_pairs(len(hidden), counts)
    else:
        kept = permuted_pairs(len(hidden), permutations)
    sees = kept & all_pairs(visible)
    return pair_attention(hidden, hidden, sees, weights)


def fairseq_keys(i, length, stride, expressivity):
    """The fixed pattern, both directions, with ranges closed at both ends.

    A position at the start of a window, but the first, belongs to the window
    before. Every window has a summary, its last `expressivity` positions and the
    one after.
    """
    first = (i // stride) * stride
    if i % stride == 0 and i > 0:
        first = i - stride
    keys = set(range(first, first + stride + 1))
    for end in range(stride, length + 2 * stride, stride):
        keys |= set(range(end - expressivity, end + 1))
    return {j for j in keys if 0 <= j < length}


def sparse_transformer_keys(i, length, stride, expressivity):
    """The fixed pattern of the paper's equations, both directions."""
    own = {j for j in range(length) if j // stride == i // stride}
    last = {j for j in range(length) if j % stride >= stride - expressivity}
    return own | last


PATTERNS = {"fairseq": fairseq_keys, "sparse_transformer": sparse_transformer_keys}


def sparse_pairs(length, stride, expressivity, pattern):
    """[T, T]."""
    kept = np.zeros((length, length), bool)
    for i in range(length):
        for j in PATTERNS[pattern](i, length, stride, expressivity):
            kept[i, j] = True
    return kept


def sparse_attention(
    hidden, visible, weights, num_heads, stride, expressivity, pattern
):
    """Dense attention over the pairs of `sparse_pairs`."""
    kept = sparse_pairs(len(hidden), stride, expressivity, pattern)
    sees = kept & all_pairs(visible, num_heads)
    return pair_attention(hidden, hidden, sees, weights)
