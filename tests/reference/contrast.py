"""Contrast within a batch: SimCSE, equations 1, 4 and 5, a text at a time."""

import math

import numpy as np


def cosine(a, b):
    lengths = math.sqrt(np.dot(a, a)), math.sqrt(np.dot(b, b))
    return np.dot(a, b) / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def in_batch_contrast(embeddings, text_ids, weights, temperature):
    """The loss, and the share of texts that have their partner nearest.

    Args:
        embeddings: [B][N][D], of a text, its partner and hard negatives.
        text_ids: [B][N], equal for equal texts, -1 for padding.
        weights: [B].
        temperature: τ.
    """
    loss = nearest = total = 0.0
    for i, row in enumerate(embeddings):
        scores = [cosine(row[0], row[1]) / temperature]
        for j, other in enumerate(embeddings):
            for n in range(1, len(other)):
                # Neither padding nor the text itself, nor its partner, once more.
                if text_ids[j][n] not in (-1, *text_ids[i][:2]):
                    scores.append(cosine(row[0], other[n]) / temperature)
        highest = max(scores)
        log_sum = highest + math.log(sum(math.exp(s - highest) for s in scores))
        loss += weights[i] * (log_sum - scores[0])
        nearest += weights[i] * (scores[0] >= highest)
        total += weights[i]
    return loss / total, nearest / total
