"""ConvBERT: equations 2 to 7 and the mixed attention, position by position.

The gated convolutions follow its Figure 3b and Wu et al., "Pay less attention".
"""

import numpy as np

from tests.reference.attention import linear, merge, softmax, split
from tests.reference.encoder import part_of
from tests.reference.pairwise import all_pairs, content_score


def at(x, i):
    """Row `i`, zero outside of the sequence."""
    return x[i] if 0 <= i < len(x) else np.zeros(x.shape[1])


def hide(x, visible):
    """Zeros at padding."""
    return np.stack([x[i] if visible[i] else 0.0 * x[i] for i in range(len(x))])


def separable_convolution(x, weights):
    """Depthwise, then pointwise, then the bias."""
    depthwise = weights["depthwise_kernel"][:, :, 0]
    middle = (len(depthwise) - 1) // 2
    rows = np.zeros(x.shape)
    for i in range(len(x)):
        for t in range(len(depthwise)):
            rows[i] += at(x, i + t - middle) * depthwise[t]
    return rows @ weights["pointwise_kernel"][0] + weights["bias"]


def softmax_taps(logits):
    """[heads, K], each head over its own taps."""
    return softmax(logits, [True] * logits.shape[1])


def convolve(taps, value):
    """Equations 2, 3 and 5: `taps` [T, heads, K], `value` [T, A], gives [T, A]."""
    length, heads, size = taps.shape
    middle = (size - 1) // 2
    values = split(value, heads)
    context = np.zeros(values.shape)
    for h in range(heads):
        for i in range(length):
            for t in range(size):
                context[h, i] += taps[i, h, t] * at(values[h], i + t - middle)
    return merge(context)


def taps_as_scores(taps, visible):
    """[heads, T, T]: what position i takes from position j."""
    length, heads, size = taps.shape
    scores = np.zeros((heads, length, length))
    for h in range(heads):
        for i in range(length):
            for t in range(size):
                j = i + t - (size - 1) // 2
                if 0 <= j < length and visible[j]:
                    scores[h, i, j] = taps[i, h, t]
    return scores


def dynamic_taps(source, weights, heads):
    """`softmax(W_f s + b_f)` over the taps, for the row `s` of every position."""
    logits = linear(source, weights, "kernel")
    return np.stack([softmax_taps(row.reshape(heads, -1)) for row in logits])


def same_taps(length, weights):
    """`softmax(w)` over the taps, at every position."""
    return np.stack([softmax_taps(weights["taps"])] * length)


def gated_linear_unit(x, weights):
    """Half of the columns of a linear layer, times the sigmoid of the other half."""
    wide = linear(x, weights, "input")
    size = wide.shape[1] // 2
    unit = np.zeros((len(x), size))
    for i in range(len(x)):
        for c in range(size):
            gate = np.exp(-np.logaddexp(0.0, -wide[i, size + c]))
            unit[i, c] = wide[i, c] * gate
    return unit


def gated_convolution(kind, hidden, visible, weights, heads):
    """Figure 3b before the last linear layer: `([T, D], taps [T, heads, K])`.

    Args:
        kind: "lightweight" or "dynamic".
        hidden: [T, D].
        visible: [T], the positions that the convolution may read.
        weights: those of the layer.
        heads: how many heads share its D channels.
    """
    unit = gated_linear_unit(hidden, weights)
    if kind == "lightweight":
        taps = same_taps(len(hidden), weights)
    else:
        taps = dynamic_taps(unit, weights, heads)
    return convolve(taps, hide(unit, visible)), taps


def convolution_heads(kind, hidden, visible, query, weights, heads):
    """Values of their own and no gate: `([T, A], taps [T, heads, K])`.

    Args:
        kind: "lightweight", "dynamic" or "span_dynamic" (Figure 3c).
        hidden: [T, D].
        visible: [T], the positions that the convolution may read.
        query: [T, A]; what the dynamic kinds make their taps of.
        weights: those of the convolution.
        heads: how many heads share its A channels.
    """
    value = hide(linear(hidden, weights, "value"), visible)
    if kind == "lightweight":
        taps = same_taps(len(hidden), weights)
    elif kind == "dynamic":
        taps = dynamic_taps(query, weights, heads)
    else:
        span_key = separable_convolution(
            hide(hidden, visible), part_of(weights, "span_key")
        )
        taps = dynamic_taps(span_key * query, weights, heads)
    return convolve(taps, value), taps


def convolution_layer(hidden, visible, weights, kind, num_heads):
    """A convolution by itself, then `W^O`: (output, scores)."""
    if kind == "span_dynamic":
        query = linear(hidden, weights, "query")
        context, taps = convolution_heads(
            kind, hidden, visible, query, weights, num_heads
        )
    else:
        context, taps = gated_convolution(kind, hidden, visible, weights, num_heads)
    return linear(context, weights, "output"), taps_as_scores(taps, visible)


def mixed_attention(
    hidden, visible, weights, num_heads, kind="span_dynamic", mask_conv=True
):
    """Equation 6 with `num_heads` heads, as the bottleneck leaves, of each kind."""
    query = linear(hidden, weights, "query")
    key = split(linear(hidden, weights, "key"), num_heads)
    value = split(linear(hidden, weights, "value"), num_heads)
    sees = all_pairs(visible)
    scores = np.zeros((num_heads, *sees.shape))
    context = np.zeros(value.shape)
    for h, q in enumerate(split(query, num_heads)):
        for i in range(len(hidden)):
            row = np.array([[content_score(q[i], k) for k in key[h]]])
            scores[h, i] = softmax(row, sees[i])[0]
            context[h, i] = sum(a * v for a, v in zip(scores[h, i], value[h]))
    if kind == "none":
        return linear(merge(context), weights, "output"), scores
    readable = visible if mask_conv else [True] * len(visible)
    below = part_of(weights, "convolution")
    if kind == "separable":
        local = separable_convolution(hide(hidden, readable), below)
    else:
        local, _ = convolution_heads(kind, hidden, readable, query, below, num_heads)
    both = np.concatenate([merge(context), local], axis=1)
    return linear(both, weights, "output"), scores
