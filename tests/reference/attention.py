"""The attentions of Shatter: equations 1 to 3, 5, 6 and section 3.3."""

import math

import numpy as np


def batched(attention):
    """Runs a function of one sequence over a batch: (outputs, scores)."""

    def over_batch(hidden, visible, weights):
        results = [attention(x, v, weights) for x, v in zip(hidden, visible)]
        return tuple(np.stack(arrays) for arrays in zip(*results))

    return over_batch


def linear(x, weights, name):
    """`x W + b`."""
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def grouped_linear(x, weights):
    """ConvBERT, equation 7: slice g of the input through matrix g, side by side."""
    groups = []
    for g, kernel in enumerate(weights["dense/kernel"]):
        width = len(kernel)
        groups.append(x[..., g * width : (g + 1) * width] @ kernel)
    return np.concatenate(groups, axis=-1) + weights["bias"]


def split(x, num_heads):
    """[T, D] -> [n, T, D/n]: head h holds columns h D/n to (h+1) D/n."""
    size = x.shape[1] // num_heads
    return np.stack([x[:, h * size : (h + 1) * size] for h in range(num_heads)])


def merge(x):
    """Equation 3: the inverse of `split`."""
    return np.concatenate(list(x), axis=1)


def scaled_products(query, key):
    """`q_i . k_j / sqrt(width)`."""
    scores = np.zeros((len(query), len(key)))
    for i in range(len(query)):
        for j in range(len(key)):
            scores[i, j] = query[i] @ key[j] / math.sqrt(query.shape[1])
    return scores


def softmax(scores, visible):
    """Over the visible keys; a row without any is zero."""
    result = np.zeros_like(scores)
    keys = [j for j in range(len(visible)) if visible[j]]
    for i in range(len(scores)):
        if not keys:
            continue
        top = max(scores[i, j] for j in keys)
        total = sum(math.exp(scores[i, j] - top) for j in keys)
        for j in keys:
            result[i, j] = math.exp(scores[i, j] - top) / total
    return result


def sigmoid(x):
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    return math.exp(x) / (1.0 + math.exp(x))


def sigmoid_l2(scores, visible):
    """Sigmoid, zero on hidden keys, over the L2 norm along the keys."""
    result = np.zeros_like(scores)
    for i in range(len(scores)):
        for j in range(len(visible)):
            result[i, j] = sigmoid(scores[i, j]) if visible[j] else 0.0
        result[i] /= math.sqrt(max(sum(a * a for a in result[i]), 1e-12))
    return result


NORMALIZERS = {"softmax": softmax, "sigmoid_l2": sigmoid_l2}


def weighted_values(scores, value):
    """Equation 2: `X_bar[h, i] = sum_j A[h, i, j] V[h, j]`."""
    context = np.zeros((scores.shape[0], scores.shape[1], value.shape[2]))
    for h in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            for j in range(scores.shape[2]):
                context[h, i] += scores[h, i, j] * value[h, j]
    return context


def self_attention(hidden, visible, weights, num_heads, head_mask=None):
    """Equations 1 to 3, then `W^O`."""
    return partitioned_attention(hidden, visible, weights, num_heads, None, head_mask)


def partitioned_attention(hidden, visible, weights, num_heads, mask, head_mask=None):
    """Equation 5: the softmax of equation 1 times `N`, not normalised again.

    A number for each head in `head_mask` multiplies what the head gives to `W^O`.
    """
    query = split(linear(hidden, weights, "query"), num_heads)
    key = split(linear(hidden, weights, "key"), num_heads)
    value = split(linear(hidden, weights, "value"), num_heads)
    scores = np.stack(
        [softmax(scaled_products(q, k), visible) for q, k in zip(query, key)]
    )
    if mask is not None:
        scores = scores * mask
    context = weighted_values(scores, value)
    if head_mask is not None:
        context = np.stack([m * head for m, head in zip(head_mask, context)])
    return linear(merge(context), weights, "output"), scores


def partition_bias(query, embeddings, mask):
    """`B[i, j] = sum_h (Q R^T)[i, h] N[h, i, j]`, section 3.3."""
    num_parts, length, _ = mask.shape
    bias = np.zeros((length, length))
    for i in range(length):
        for j in range(length):
            for h in range(num_parts):
                bias[i, j] += query[i] @ embeddings[h] * mask[h, i, j]
    return bias


def value_contribution(scores, embeddings, value_kernel):
    """`A_part V_part` with `A_part[i, h] = sum_j A[h, i, j]`, section 3.3."""
    num_parts, length, _ = scores.shape
    part_values = embeddings @ value_kernel
    result = np.zeros((length, value_kernel.shape[1]))
    for i in range(length):
        for h in range(num_parts):
            result[i] += sum(scores[h, i]) * part_values[h]
    return result


def one_head_attention(
    hidden,
    visible,
    weights,
    mask,
    normalizer,
    use_bias=False,
    use_value=False,
    keep_key=False,
    value_matrix=False,
    head_mask=None,
):
    """Equation 6 and section 3.3, with `X` itself as the key.

    Two steps of section 3.2 are before equation 6, or beside it: with `keep_key` the
    key is still the matrix `X W^K`, and with `value_matrix` V is reduced to a matrix,
    which all parts weight: `X_bar = sum_h A[h] V`.

    A number for each part in `head_mask` multiplies what the part gives to `W^O`: its
    columns, or its summand, and its row of `A_part V_part`.
    """
    query = linear(hidden, weights, "query")
    key = linear(hidden, weights, "key") if keep_key else hidden
    raw = scaled_products(query, key)
    if use_bias:
        raw = raw + partition_bias(query, weights["partition_embeddings"], mask)
    scores = mask * NORMALIZERS[normalizer](raw, visible)
    given = scores
    if head_mask is not None:
        given = np.stack([m * part for m, part in zip(head_mask, scores)])
    value = linear(hidden, weights, "value")
    if value_matrix:
        context = sum(weighted_values(a[None], value[None])[0] for a in given)
    else:
        context = merge(weighted_values(given, split(value, len(mask))))
    if use_value:
        context = context + value_contribution(
            given, weights["partition_embeddings"], weights["value/kernel"]
        )
    return linear(context, weights, "output"), scores


def softmax_pooling(vector, hidden, visible, weights, num_heads):
    """Section 3.4: the vector [D] attends to the sequence, in `num_heads` heads."""
    query = split(linear(vector[None], weights, "query"), num_heads)
    key = split(linear(hidden, weights, "key"), num_heads)
    value = split(linear(hidden, weights, "value"), num_heads)
    scores = np.stack(
        [softmax(scaled_products(q, k), visible) for q, k in zip(query, key)]
    )
    return linear(merge(weighted_values(scores, value)), weights, "output")[0]


def one_head_pooling(vector, hidden, visible, weights, normalizer, keep_key=False):
    """Section 3.4, single-headed: no partition, hence one head over all of `V`."""
    key = linear(hidden, weights, "key") if keep_key else hidden
    scores = scaled_products(linear(vector[None], weights, "query"), key)
    scores = NORMALIZERS[normalizer](scores, visible)
    value = linear(hidden, weights, "value")
    context = weighted_values(scores[None], value[None])[0]
    return linear(context, weights, "output")[0]
