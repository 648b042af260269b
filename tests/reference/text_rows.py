"""Rows of token ids of texts and pairs, one token at a time."""

import re


def fill_gaps(question, option):
    """The question with the option in its gaps, or behind it if it has none."""
    if "_" in question:
        return re.sub("_+", lambda gap: option, question)
    return f"{question} {option}"


def row(cls, sep, first, second=None, length=None, cut="longer"):
    """(ids, segments) of a text or a pair, at most `length` ids, not padded."""
    first, second = list(first), None if second is None else list(second)
    marks = 2 if second is None else 3
    while len(first) + len(second or []) + marks > length:
        if second is None or cut == "first" or len(first) > len(second):
            first.pop()
        else:
            second.pop()
    ids, segments = [cls, *first, sep], [0] * (len(first) + 2)
    if second is not None:
        ids += [*second, sep]
        segments += [1] * (len(second) + 1)
    return ids, segments


def padded(rows, length, pad):
    """The encoder's inputs as lists of `length`."""
    inputs = {"token_ids": [], "segment_ids": [], "padding_mask": []}
    for ids, segments in rows:
        missing = length - len(ids)
        inputs["token_ids"].append(ids + [pad] * missing)
        inputs["segment_ids"].append(segments + [0] * missing)
        inputs["padding_mask"].append([1] * len(ids) + [0] * missing)
    return inputs
