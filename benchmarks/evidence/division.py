"""Texts are divided by their own digests, so that equal ones are in one part."""

import hashlib

CHOOSE_SHARE = 0.1  # The share of the training parts of tasks that rates are chosen by.


def fraction(text: str | bytes) -> float:
    """A number in [0, 1) that the text determines."""
    data = text.encode("utf-8") if isinstance(text, str) else text
    return int.from_bytes(hashlib.sha256(data).digest()[:6], "big") / 2**48


def chooses(text: str | bytes) -> bool:
    """Whether a text is among those of a task that rates are chosen by."""
    return fraction(text) < CHOOSE_SHARE
