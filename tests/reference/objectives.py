"""Losses, draws and metrics of the pretraining objectives, one target at a time."""

import math

import numpy as np

from tests.reference.encoder import gelu, layer_norm


def cross_entropies(logits, labels, weights):
    """(Σ w · -log softmax(z)[y], Σ w), over targets of any shape."""
    total = count = 0.0
    for index in np.ndindex(labels.shape):
        z = logits[index].astype("float64")
        log_sum = math.log(sum(math.exp(v - z.max()) for v in z)) + z.max()
        total += weights[index] * (log_sum - z[labels[index]])
        count += weights[index]
    return total, count


def binary_cross_entropies(logits, labels, weights):
    """(Σ w · (-y log σ(z) - (1 - y) log(1 - σ(z))), Σ w)."""
    total = count = 0.0
    for index in np.ndindex(labels.shape):
        probability = 1.0 / (1.0 + math.exp(-float(logits[index])))
        right = probability if labels[index] else 1.0 - probability
        total -= weights[index] * math.log(right)
        count += weights[index]
    return total, count


def gumbel_draws(logits, uniform, temperature):
    """`argmax_v (z_v / τ - log(-log U_v))` for each row of [B, M, V]."""
    draws = np.zeros(logits.shape[:2], "int32")
    for b, m in np.ndindex(draws.shape):
        noisy = [
            float(z) / temperature - math.log(-math.log(u))
            for z, u in zip(logits[b, m], uniform[b, m].astype("float64"))
        ]
        draws[b, m] = noisy.index(max(noisy))
    return draws


def replaced_text(tokens, positions, draws):
    """The text with the draws in it; position 0 marks an unused slot."""
    text = tokens.copy()
    for b, m in np.ndindex(positions.shape):
        if positions[b, m]:
            text[b, positions[b, m]] = draws[b, m]
    return text


def detection(logits, labels, weights):
    """Accuracy, precision, recall and the area under the ROC curve, by counting."""
    kept = [
        (float(z), int(y))
        for z, y, w in zip(*map(np.ravel, (logits, labels, weights)))
        if w
    ]
    positives = [z for z, y in kept if y]
    negatives = [z for z, y in kept if not y]
    true = sum(z > 0 for z in positives)
    false = sum(z > 0 for z in negatives)
    pairs = [(p > n) + 0.5 * (p == n) for p in positives for n in negatives]
    return {
        "accuracy": (true + len(negatives) - false) / len(kept),
        "precision": true / max(1, true + false),
        "recall": true / len(positives),
        "auc": sum(pairs) / len(pairs),
    }


def discriminator_logits(hidden, weights):
    """`gelu(x W + b) w + c` of each position of [B, T, D]."""
    x = hidden @ weights["hidden/kernel"] + weights["hidden/bias"]
    return (gelu(x) @ weights["output/kernel"] + weights["output/bias"])[..., 0]


def masked_lm_logits(hidden, positions, weights, table):
    """BERT's head at the positions: [B, M, V]."""
    logits = np.zeros((*positions.shape, len(table)))
    norm = {
        name: weights[f"intermediate_layer_norm/{name}"] for name in ("gamma", "beta")
    }
    for b, m in np.ndindex(positions.shape):
        x = hidden[b, positions[b, m]] @ weights["intermediate_dense/kernel"]
        x = layer_norm(gelu(x + weights["intermediate_dense/bias"])[None], norm)[0]
        logits[b, m] = table @ x + weights["output_bias"]
    return logits


def pair_logits(hidden, weights):
    """`tanh(x W_p + b_p) W + b` of the first position: [B, 2]."""
    pooled = np.stack(
        [
            np.tanh(row[0] @ weights["pooler/kernel"] + weights["pooler/bias"])
            for row in hidden
        ]
    )
    return pooled @ weights["sentence/kernel"] + weights["sentence/bias"]
