"""The losses of TinyBERT and DistilBERT, element by element."""

import math

import numpy as np


def state_loss(students, teachers, projection, visible, summed=False):
    """`|S W - T|²` of one layer: `students`, `teachers` [B, T, D], one loop a number.

    The mean over features and real positions, or the sum over both by example.
    """
    total = count = 0
    for b, i in np.ndindex(visible.shape):
        if not visible[b, i]:
            continue
        row = students[b, i] if projection is None else students[b, i] @ projection
        for d, value in enumerate(teachers[b, i]):
            total += (row[d] - value) ** 2
            count += 1
    return total / (visible.any(axis=1).sum() if summed else count)


def map_loss(students, teachers, visible, summed=False):
    """`1/h Σ |A_S - A_T|²` of one layer: maps [B, heads, T, T]."""
    students, teachers = grouped_heads(students, teachers)
    total = count = 0
    batch, heads, length, _ = students.shape
    for b, n, i, j in np.ndindex(batch, heads, length, length):
        if visible[b, i] and visible[b, j]:
            total += (students[b, n, i, j] - teachers[b, n, i, j]) ** 2
            count += 1
    return total / (heads * visible.any(axis=1).sum() if summed else count)


def grouped_heads(one, other):
    """The larger number of heads becomes the smaller: means of neighbours."""
    if one.shape[1] < other.shape[1]:
        return grouped_heads(other, one)[::-1]
    size = one.shape[1] // other.shape[1]
    groups = [
        one[:, n * size : (n + 1) * size].mean(axis=1) for n in range(other.shape[1])
    ]
    return np.stack(groups, axis=1), other


def prediction_loss(students, teachers, weights, student_by=1.0, teacher_by=1.0):
    """Soft cross-entropy less the teacher's entropy, mean over weighted examples."""
    total = 0.0
    for weight, z_s, z_t in zip(weights, students / student_by, teachers / teacher_by):
        log_q = z_s - math.log(sum(math.exp(v) for v in z_s))
        log_p = z_t - math.log(sum(math.exp(v) for v in z_t))
        entropy = -sum(math.exp(v) * v for v in log_p)
        cross = -sum(math.exp(p) * q for p, q in zip(log_p, log_q))
        total += weight * (cross - entropy)
    return total / sum(weights)


def divergence(student, teacher, student_by=1.0, teacher_by=1.0):
    """`Σ_c p_c (log p_c - log q_c)` of the logits of one target."""
    log_q, log_p = (
        [v / by - _log_sum_exp([w / by for w in logits]) for v in logits]
        for logits, by in ((student, student_by), (teacher, teacher_by))
    )
    return sum(math.exp(p) * (p - q) for p, q in zip(log_p, log_q))


def masked_tokens_loss(students, teachers, weights, **temperatures):
    """DistilBERT's: the mean over weighted masked tokens of logits [B, M, V]."""
    total = 0.0
    for b, m in np.ndindex(weights.shape):
        pair = students[b, m], teachers[b, m]
        total += weights[b, m] * divergence(*pair, **temperatures)
    return total / weights.sum()


def spans_loss(students, teachers, weights, **temperatures):
    """Half of that of starts and half of that of ends: logits [B, T] of each."""
    total = 0.0
    for student, teacher in zip(students, teachers):
        for weight, *pair in zip(weights, student, teacher):
            total += weight * divergence(*pair, **temperatures) / 2
    return total / sum(weights)


def ratings_loss(students, teachers, weights):
    """The mean squared error of ratings [B]."""
    squares = [w * (s - t) ** 2 for w, s, t in zip(weights, students, teachers)]
    return sum(squares) / sum(weights)


def cosine_loss(students, teachers, visible):
    """DistilBERT's: the mean over real tokens of `1 - cos` of states [B, T, D]."""
    total = 0.0
    for b, i in zip(*np.nonzero(visible)):
        pairs = list(zip(students[b, i], teachers[b, i]))
        product = sum(s * t for s, t in pairs)
        squares = sum(s * s for s, _ in pairs) * sum(t * t for _, t in pairs)
        total += 1 - product / math.sqrt(squares)
    return total / visible.sum()


def _log_sum_exp(values):
    highest = max(values)
    return highest + math.log(sum(math.exp(v - highest) for v in values))


def attention_scores(hidden, weights, num_heads):
    """`Q Kᵀ / sqrt(size)` of one sequence, before any softmax."""
    query = hidden @ weights["query/kernel"] + weights["query/bias"]
    key = hidden @ weights["key/kernel"] + weights["key/bias"]
    length, width = query.shape
    size = width // num_heads
    scores = np.zeros((num_heads, length, length))
    for n, i, j in np.ndindex(scores.shape):
        head = slice(n * size, (n + 1) * size)
        scores[n, i, j] = query[i, head] @ key[j, head] / math.sqrt(size)
    return scores
