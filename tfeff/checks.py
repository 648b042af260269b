"""Checks of arguments that many parts share. Each says what was wrong."""

import difflib
import numbers
from collections.abc import Iterable


def check_integer(
    name: str, value: object, minimum: int = 1, maximum: int | None = None
) -> int:
    """Returns `value` if it is an integer in `[minimum, maximum]`, else raises."""
    kind = f"an integer of at least {minimum}"
    if maximum is not None:
        kind += f" and at most {maximum}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be {kind}. Received: {name}={value!r}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"`{name}` must be {kind}. Received: {name}={value!r}")
    return int(value)


def check_rate(name: str, value: object) -> float:
    """Returns `value` if it is a probability below 1, else raises."""
    if not isinstance(value, numbers.Real) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a number in [0, 1). Received: {name}={value!r}"
        )
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Returns `value` if it is a finite number above 0, else raises."""
    if not isinstance(value, numbers.Real) or not 0 < value < float("inf"):
        raise ValueError(
            f"`{name}` must be a positive number. Received: {name}={value!r}"
        )
    return float(value)


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Returns `value` if it is among `choices`, else raises, with a near miss."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {choices}. "
            f"Received: {name}={value!r}.{near_miss(value, choices)}"
        )
    return value


def near_miss(value: object, choices: Iterable[str]) -> str:
    """A hint, to end an error with, at the choice that was perhaps meant; or ''."""
    plain = {_plain(choice): choice for choice in choices}
    near = difflib.get_close_matches(_plain(str(value)), plain, 1, 0.5)
    return "".join(f" Did you mean {plain[name]!r}?" for name in near)


def _plain(text):
    return "".join(c for c in text.casefold() if c.isalnum())
