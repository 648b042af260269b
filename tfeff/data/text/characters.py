"""Kinds of characters: which end words, are gone from tokens, or cannot be seen."""

import functools
import string
import unicodedata
from collections.abc import Callable

import numpy as np

SPACE = "\u2581"  # what SentencePiece writes for a space
_IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")
# Of the planes of Unicode, those with characters of any of these kinds.
_PLANES = [*range(0x40000), *range(0xE0000, 0xF0000)]


def is_word(character: str) -> bool:
    """Whether it is punctuation or an ideograph, which WordPiece cuts out."""
    category = unicodedata.category(character)
    return (
        character in string.punctuation
        or category[0] == "P"
        or category == "Lo"
        and unicodedata.name(character, "").startswith(_IDEOGRAPHS)
    )


def is_joined(character: str) -> bool:
    """Whether it may be gone from the pieces: an accent, or not visible at all."""
    return unicodedata.category(character) in ("Mn", "Cf", "Cc")


def is_invisible(character: str) -> bool:
    """Whether it is white space, a control or a format character, or SPACE."""
    return (
        unicodedata.category(character) in ("Cc", "Cf")
        or character == SPACE
        or character.isspace()
    )


@functools.cache
def boundaries(kind: Callable[[str], bool]) -> np.ndarray:
    """The code points at which a kind of characters begins and ends.

    Args:
        kind: one of the functions above.

    Returns:
        Ascending code points `[N]` int32: a character is of the kind if an odd number
        of them is at most its own.
    """
    points = np.array([p for p in _PLANES if kind(chr(p))], np.int32)
    gap = np.flatnonzero(np.diff(points) > 1)
    first, last = points[[0, *(gap + 1)]], points[[*gap, -1]]
    return np.stack([first, last + 1], axis=1).reshape(-1)
