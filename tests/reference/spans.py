"""Windows of passages and answers, one window, token and span at a time."""

import math


def window_starts(num_tokens, room, stride):
    """Where windows begin in a passage so that they leave out none of its tokens."""
    step = min(stride, room)
    return range(0, max(num_tokens - room, 0) + step, step)


def token_span(offsets, start, end):
    """The first and the last token that share a character with `[start, end)`."""
    shared = [
        token
        for token, (first, last) in enumerate(offsets)
        if first < last and first < end and last > start
    ]
    return (shared[0], shared[-1]) if shared else None


def windows(question, passage, offsets, spans, length, stride, cls, sep, pad):
    """Yields (ids, segments, mask, target, begin of the passage, first token)."""
    room = length - 3 - len(question)
    answers = [token_span(offsets, *span) for span in spans]
    for first in window_starts(len(passage), room, stride):
        part = passage[first : first + room]
        ids = [cls, *question, sep, *part, sep]
        begin = len(question) + 2
        missing = [0] * (length - len(ids))
        target = (0, 0)
        for answer in answers:
            if answer and first <= answer[0] and answer[1] < first + room:
                target = begin + answer[0] - first, begin + answer[1] - first
                break
        segments = [0] * begin + [1] * (len(part) + 1) + missing
        mask = [1] * len(ids) + missing
        yield ids + [pad for _ in missing], segments, mask, target, begin, first


def best_span(offsets, starts, ends, longest):
    """(score, start, end) of a window; of equal ones the shortest, then the first."""
    best = -math.inf, 0, 0
    for more in range(longest):
        for i in range(len(offsets) - more):
            (a, b), (c, d) = offsets[i], offsets[i + more]
            score = starts[i] + ends[i + more]
            if a < b and c < d and score > best[0]:
                best = score, a, d
    return best
