"""Words of a text, one character at a time."""

import string
import unicodedata

from tests.reference.offsets import SPACE


def is_space(c):
    return c.isspace() or c == SPACE or unicodedata.category(c) == "Cc"


def is_mark(c):
    return c in string.punctuation or unicodedata.category(c)[0] == "P"


def is_ideograph(c):
    name = unicodedata.name(c, "")
    return name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH"))


def is_format(c):
    return unicodedata.category(c) == "Cf"


def split_words(text):
    """The words [(text, start, end)]."""
    found, begin = [], 0
    while begin < len(text):
        if is_space(text[begin]):
            begin += 1
            continue
        end = begin
        while end < len(text) and not is_space(text[end]):
            end += 1
        found += [(text[a:b], a, b) for a, b in _of_chunk(text, begin, end)]
        begin = end
    return found


def _of_chunk(text, begin, end):
    plain = [
        i for i in range(begin, end) if not is_mark(text[i]) and not is_format(text[i])
    ]
    first, last = (plain[0], plain[-1]) if plain else (end, end - 1)
    if plain:
        alone = text[last].isalpha() and (first == last or text[last - 1] == ".")
        if last + 1 < end and text[last + 1] == "." and alone:
            last += 1
        if first > begin and text[first - 1] in "@#":
            first -= 1
    words, start = [], None
    for i in range(begin, end):
        outside = not first <= i <= last
        if outside or is_ideograph(text[i]):
            if start is not None:
                words.append((start, i))
                start = None
            if not (outside and is_format(text[i])):
                words.append((i, i + 1))
        elif start is None:
            start = i
    if start is not None:
        words.append((start, end))
    return words
