"""Relative positions: Shaw, Shatter's RPE and RAB, XLNet, Huang's four methods."""

import math

import numpy as np

from tests.reference.attention import split
from tests.reference.pairwise import all_pairs, content_score, pair_attention


def clip(x, k):
    """Huang, equation 9."""
    return max(-k, min(k, x))


def t5_bucket(x, num_buckets=32, max_distance=128):
    """The bucket of relative position `x`, in whole numbers alone.

    Half of the buckets are for x > 0. In each half, the first half are single
    distances; the others grow by equal ratios up to `max_distance`.
    """
    half = num_buckets // 2
    exact = half // 2
    steps = half - exact
    start = half if x > 0 else 0
    distance = abs(x)
    if distance < exact:
        return start + distance
    # The largest m with distance / exact >= (max_distance / exact)^(m / steps).
    m = 0
    while m + 1 < steps and distance**steps * exact ** (m + 1) >= (
        max_distance ** (m + 1) * exact**steps
    ):
        m += 1
    return start + exact + m


def table_row(x, index, max_distance, num_buckets=32):
    """The row of a `RelativeEmbedding` for relative position `x = j - i`."""
    if index == "signed":
        return clip(x, max_distance) + max_distance
    if index == "distance":
        return min(abs(x), max_distance)
    return t5_bucket(x, num_buckets, max_distance)


def relative_embedding(table, positions, index, max_distance, num_buckets=32):
    """The rows for relative positions of any shape: [..., *shape of a row]."""
    rows = [
        table[table_row(int(x), index, max_distance, num_buckets)]
        for x in np.ravel(positions)
    ]
    return np.reshape(rows, (*np.shape(positions), *table.shape[1:]))


def sinusoid(position, width, layout):
    """Huang, equations 1 and 2, interleaved as printed or sines before cosines."""
    sines, cosines = [], []
    for i in range(width // 2):
        angle = position / 10000 ** (2 * i / width)
        sines.append(math.sin(angle))
        cosines.append(math.cos(angle))
    if layout == "concatenated":
        return np.array(sines + cosines)
    return np.array([v for pair in zip(sines, cosines) for v in pair])


def of_head(row, h, shared_heads):
    return row if shared_heads else row[h]


def table_score(method, table, max_distance, shared_heads, num_buckets):
    """The scores that read a table: Huang, equations 7, 12, 15, 16, 17; RAB."""
    index = {"huang1": "distance", "bias": "t5"}.get(method, "signed")

    def score(h, i, j, q, k):
        row = table[table_row(j - i, index, max_distance, num_buckets)]
        a = of_head(row, h, shared_heads)
        scale = math.sqrt(len(q))
        if method == "shaw":
            return q @ (k + a) / scale
        if method in ("huang1", "huang2"):
            return (q @ k) * a / scale
        if method == "huang3":
            return sum(q[d] * k[d] * a[d] for d in range(len(q))) / scale
        if method == "huang4":
            return (q @ k + q @ a + k @ a) / scale
        if method == "huang4, equation 17":
            return ((q + a) @ (k + a) - a @ a) / scale
        assert method == "bias", method
        return content_score(q, k) + a

    return score


def xlnet_score(
    weights, num_heads, width, max_distance, layout, segment_ids, query_bias=True
):
    """Huang, equation 10, with XLNet's relative segments if there are any.

    Without `query_bias`, "after removing the bias terms, keeping only the sinusoids".
    """

    def bias(name, h):
        return weights[name][h] if query_bias else 0.0

    def score(h, i, j, q, k):
        distance = i - j
        if max_distance is not None:
            distance = clip(distance, max_distance)
        position = sinusoid(distance, width, layout) @ weights["relative/kernel"]
        r = split(position[None], num_heads)[h, 0]
        total = (q + bias("content_bias", h)) @ k
        total += (q + bias("position_bias", h)) @ r
        if segment_ids is not None:
            which = 0 if segment_ids[i] == segment_ids[j] else 1
            s = weights["segment_embeddings"][which, h]
            total += (q + bias("segment_bias", h)) @ s
        return total / math.sqrt(len(q))

    return score


def relative_pair_attention(
    queries,
    hidden,
    sees,
    weights,
    num_heads,
    method,
    max_distance=127,
    shared_heads=False,
    num_buckets=32,
    sinusoid="interleaved",
    segment_ids=None,
    query_bias=True,
):
    """Queries of one sequence, keys and values of another; `sees` [T, T]."""
    sees = np.stack([sees] * num_heads)
    width = hidden.shape[1]
    value = None
    if method == "xlnet":
        score = xlnet_score(
            *(weights, num_heads, width, max_distance, sinusoid, segment_ids),
            query_bias=query_bias,
        )
    elif method == "rpe":
        # Shatter, section 2: keys and values are those of x_j + R[j - i].
        table = weights["relative/embeddings"]
        keys = split(table @ weights["key/kernel"], num_heads)
        values = split(table @ weights["value/kernel"], num_heads)

        def score(h, i, j, q, k):
            row = table_row(j - i, "signed", max_distance)
            return (q @ k + q @ keys[h, row]) / math.sqrt(len(q))

        def value(h, i, j):
            return values[h, table_row(j - i, "signed", max_distance)]
    else:
        table = weights["relative/embeddings"]
        score = table_score(method, table, max_distance, shared_heads, num_buckets)
    return pair_attention(queries, hidden, sees, weights, score, value)


def relative_attention(hidden, visible, weights, num_heads, method, **options):
    """Attention with relative positions; the options are the layer's."""
    return relative_pair_attention(
        hidden, hidden, all_pairs(visible), weights, num_heads, method, **options
    )
