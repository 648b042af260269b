"""Extractive question answering, one window and one token at a time."""

import numpy as np


def span_logits(hidden, kernel, bias, allowed):
    """`[N, T]` start and end logits: -1e30 where no answer may begin or end."""
    start, end = np.full((2, *hidden.shape[:2]), -1e30)
    for n, t in np.ndindex(hidden.shape[:2]):
        if allowed[n][t]:
            start[n, t], end[n, t] = hidden[n, t] @ kernel + bias
    return start, end


def allowed_tokens(features):
    """`[N][T]`: `[CLS]`, and as many tokens as the window has of the passage."""
    rows = []
    for row in range(len(features)):
        first = features.passage_positions[row]
        last = first + len(features.window_offsets(row))
        rows.append(
            [t == 0 or first <= t < last for t in range(features.token_ids.shape[1])]
        )
    return rows


def cross_entropy(logits, label):
    """-log softmax(logits)[label] of one window."""
    highest = max(logits)
    return highest + np.log(sum(np.exp(z - highest) for z in logits)) - logits[label]
