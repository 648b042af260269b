"""Softmax attention of any score and any set of visible pairs, pair by pair."""

import math

import numpy as np

from tests.reference.attention import linear, merge, softmax, split


def all_pairs(visible, num_heads=None):
    """Every query sees every visible key: [T, T], or [N, T, T]."""
    pairs = np.array([list(visible)] * len(visible), bool)
    return pairs if num_heads is None else np.stack([pairs] * num_heads)


def content_score(query, key):
    """`q_i . k_j / sqrt(H)`."""
    return query @ key / math.sqrt(len(query))


def pair_attention(queries, hidden, sees, weights, score=None, value=None, factor=None):
    """`z[h, i] = sum_j A[h, i, j] (v[h, j] + value(h, i, j))`, then `W^O`.

    `A[h, i]` is the softmax of `score(h, i, j, q, k)` over the keys j that
    `sees[h, i, j]` allows, times `factor[h, i, j]`.

    Args:
        queries: [T, D], what the queries are made of.
        hidden: [T, D], what the keys and values are made of.
        sees: bool [N, T, T].
        weights: of the four projections, and those that `score` needs.
        score: a function of a pair; `content_score` of its query and key if `None`.
        value: a vector added to the value of a pair, or `None`.
        factor: [N, T, T], or `None`.

    Returns:
        `(output [T, D], scores [N, T, T])`.
    """
    num_heads, length, _ = sees.shape
    query = split(linear(queries, weights, "query"), num_heads)
    key = split(linear(hidden, weights, "key"), num_heads)
    values = split(linear(hidden, weights, "value"), num_heads)
    scores = np.zeros(sees.shape)
    context = np.zeros(values.shape)
    for h in range(num_heads):
        for i in range(length):
            row = np.zeros((1, length))
            for j in range(length):
                if score is None:
                    row[0, j] = content_score(query[h, i], key[h, j])
                else:
                    row[0, j] = score(h, i, j, query[h, i], key[h, j])
            scores[h, i] = softmax(row, sees[h, i])[0]
            if factor is not None:
                scores[h, i] *= factor[h, i]
            for j in range(length):
                mixed = values[h, j]
                if value is not None:
                    mixed = mixed + value(h, i, j)
                context[h, i] += scores[h, i, j] * mixed
    return linear(merge(context), weights, "output"), scores
