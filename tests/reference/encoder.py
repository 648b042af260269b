"""What surrounds the attention: block, feed-forward, embedding, pooling."""

import math

import numpy as np

from tests.reference.attention import grouped_linear, linear
from tests.reference.relative import sinusoid


def part_of(weights, prefix):
    """The entries below `prefix`, without it."""
    return {
        name.removeprefix(f"{prefix}/"): array
        for name, array in weights.items()
        if name.startswith(f"{prefix}/")
    }


def gelu(x):
    """`x Phi(x)` with the exact distribution function."""
    flat = [v * 0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x.ravel()]
    return np.array(flat).reshape(x.shape)


def layer_norm(x, weights, epsilon=1e-12):
    """Row by row, with the biased variance."""
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        centred = row - row.mean()
        variance = (centred**2).mean()
        rows.append(centred / math.sqrt(variance + epsilon))
    normalised = np.stack(rows).reshape(x.shape)
    return normalised * weights["gamma"] + weights["beta"]


def feed_forward(x, weights):
    """`gelu(x W_1 + b_1) W_2 + b_2`, with matrices in groups if they are."""

    def transform(x, name):
        part = part_of(weights, name)
        grouped = "dense/kernel" in part
        return grouped_linear(x, part) if grouped else linear(x, weights, name)

    return transform(gelu(transform(x, "intermediate")), "output")


def after_attention(x, attended, weights):
    """`Y = LN(x + attended)`, then `LN(Y + FFN(Y))`."""
    y = layer_norm(x + attended, part_of(weights, "attention_norm"))
    transformed = feed_forward(y, part_of(weights, "feedforward"))
    return layer_norm(y + transformed, part_of(weights, "feedforward_norm"))


def encoder_block(hidden, visible, weights, attention):
    """BERT's post-norm block; `attention` is a reference of one sequence."""
    attended, _ = attention(hidden, visible, part_of(weights, "attention"))
    return (after_attention(hidden, attended, weights),)


def embedding(token_ids, segment_ids, weights, position=None):
    """Equation 4; segment and position table, norm and projection if they exist.

    With position "sinusoid", Huang's equations 1 and 2, at the width of the tables.
    Where there is one segment, all tokens are in it (Huang, section 4).
    """
    rows = []
    for i in range(len(token_ids)):
        row = weights["token_embedding/embeddings"][token_ids[i]]
        if "segment_embedding/embeddings" in weights:
            table = weights["segment_embedding/embeddings"]
            row = row + table[segment_ids[i] if len(table) > 1 else 0]
        if "position_embedding/embeddings" in weights:
            row = row + weights["position_embedding/embeddings"][i]
        if position == "sinusoid":
            row = row + sinusoid(i, len(row), "interleaved")
        rows.append(row)
    result = np.stack(rows)
    if "norm/gamma" in weights:
        result = layer_norm(result, part_of(weights, "norm"))
    if "projection/kernel" in weights:
        result = linear(result, weights, "projection")
    return result


def layerwise_pooling(hidden_states, visible, initial_vector, block_weights, attend):
    """Section 3.4: `y^L` from `y^0` and `X^0 ... X^{L-1}`, with each block's weights.

    `attend(y, X, visible, attention_weights)` gives a vector [D].
    """
    y = initial_vector
    for hidden, weights in zip(hidden_states, block_weights):
        attended = attend(y, hidden, visible, part_of(weights, "attention"))
        y = after_attention(y, attended, weights)
    return y


def mean_pooling(hidden, visible):
    """The mean [D] of the rows of [T, D] that are visible; zeros where none is."""
    total, count = np.zeros(hidden.shape[-1]), 0
    for state, seen in zip(hidden, visible):
        if seen:
            total, count = total + state, count + 1
    return total / count if count else total


def segment_pooling(hidden, segment_ids, visible):
    """[u, v, |u - v|, u v] [4 D], u and v the means of the segments 0 and 1."""
    u, v = (
        mean_pooling(hidden, [x and s == k for x, s in zip(visible, segment_ids)])
        for k in (0, 1)
    )
    return np.array([*u, *v, *(abs(a - b) for a, b in zip(u, v)), *(u * v)])
