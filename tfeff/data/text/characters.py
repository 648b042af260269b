"""Kinds of characters: which end words, are gone from tokens, or cannot be seen."""

import functools
import string
import unicodedata
from collections.abc import Callable

import numpy as np

SPACE = "\u2581"  # what SentencePiece writes for a space
_IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")
# The code points of the planes that have characters of any of these kinds.
PLANES = [*range(0x40000), *range(0xE0000, 0xF0000)]


def is_mark(character: str) -> bool:
    """Whether it is punctuation, or a symbol of ASCII."""
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def is_ideograph(character: str) -> bool:
    """Whether it is an ideograph, which is a word of its own."""
    return unicodedata.category(character) == "Lo" and unicodedata.name(
        character, ""
    ).startswith(_IDEOGRAPHS)


def is_word(character: str) -> bool:
    """Whether it is punctuation or an ideograph, which WordPiece cuts out."""
    return is_mark(character) or is_ideograph(character)


def is_word_or_space(character: str) -> bool:
    """Whether `BertTokenizer` cuts it out, or ends a word there: any space does."""
    return is_word(character) or unicodedata.category(character).startswith("Z")


def is_space(character: str) -> bool:
    """Whether it is white space, a control character, or SPACE."""
    return (
        unicodedata.category(character) == "Cc"
        or character == SPACE
        or character.isspace()
    )


def is_format(character: str) -> bool:
    """Whether it is a format character, such as a soft hyphen."""
    return unicodedata.category(character) == "Cf"


def is_combining(character: str) -> bool:
    """Whether it is a part of the letter before it: an accent or a vowel sign."""
    return unicodedata.category(character) in ("Mn", "Mc")


def is_joined(character: str) -> bool:
    """Whether it may be gone from the pieces.

    It is an accent, or not visible at all, or Unicode's NFC composes it with the
    character before it, as vowel signs and the letters of Hangul's syllables.
    """
    is_gone = unicodedata.category(character) in ("Mn", "Cf", "Cc")
    return is_gone or character in _composed()


@functools.cache
def _composed():
    """The characters that NFC composes with one before them."""
    whole = (chr(p) for p in PLANES if unicodedata.is_normalized("NFC", chr(p)))
    decomposed = (unicodedata.decomposition(letter).split() for letter in whole)
    pairs = [parts for parts in decomposed if len(parts) == 2 and parts[0][0] != "<"]
    hangul = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
    return {*map(chr, hangul), *(chr(int(second, 16)) for _, second in pairs)}


def is_invisible(character: str) -> bool:
    """Whether it is white space, or a control or a format character."""
    return character != SPACE and is_invisible_in_pieces(character)


def is_invisible_in_pieces(character: str) -> bool:
    """Whether it cannot be seen in SentencePiece's pieces: SPACE is a space there."""
    return is_space(character) or is_format(character)


@functools.cache
def in_brackets(kind: Callable[[str], bool]) -> str:
    """The ranges of a kind of characters, for the brackets of a regular expression."""
    ranges = boundaries(kind).reshape(-1, 2)
    return "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in ranges)


def letters(without: str = "") -> str:
    """The regular expression of letters and digits, with what is joined to them.

    Vowel signs and accents belong to the letter before them, and joiners to the word
    that goes on behind them.

    Args:
        without: characters that are no letters here, for brackets.
    """
    letter = rf"(?![{without}])[^\W_]" if without else r"[^\W_]"
    joined = rf"[{in_brackets(is_combining)}]|[\u200c\u200d]+(?={letter})"
    return f"{letter}(?:{letter}|{joined})*"


@functools.cache
def boundaries(kind: Callable[[str], bool]) -> np.ndarray:
    """The code points at which a kind of characters begins and ends.

    Args:
        kind: one of the functions above.

    Returns:
        Ascending code points `[N]` int32: a character is of the kind if an odd number
        of them is at most its own.
    """
    points = np.array([p for p in PLANES if kind(chr(p))], np.int32)
    gap = np.flatnonzero(np.diff(points) > 1)
    first, last = points[[0, *(gap + 1)]], points[[*gap, -1]]
    return np.stack([first, last + 1], axis=1).reshape(-1)
