"""The choice that a misspelt name is likely to mean."""

import difflib
from collections.abc import Iterable
from typing import Any


def near_miss(value: Any, choices: Iterable[str]) -> str:
    """The end of an error message, which suggests the closest choice; '' if none is."""
    near = closest(value, choices)
    return "" if near is None else f" Did you mean {near!r}?"


def closest(value: Any, choices: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The choice that is spelt most like the value; `None` if none is like it.

    Case and punctuation make no difference; with a `cutoff` of 1 all else does.
    """
    plain = {_plain(choice): choice for choice in choices}
    near = difflib.get_close_matches(_plain(str(value)), plain, 1, cutoff)
    return plain[near[0]] if near else None


def _plain(text):
    return "".join(c for c in text.casefold() if c.isalnum())
