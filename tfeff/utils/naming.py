"""Errors of the functions that a function calls, in the words of its own arguments."""

import contextlib
import re
from collections.abc import Iterator


@contextlib.contextmanager
def advised(
    advice: str, errors: tuple[type[Exception], ...] = (ValueError,)
) -> Iterator[None]:
    """Within it, these errors become ValueErrors that end with what to do about them.

    Args:
        advice: whole sentences without the last full stop.
        errors: the kinds of errors.
    """
    try:
        yield
    except errors as error:
        raise ValueError(f"{error}. {advice}") from error


@contextlib.contextmanager
def named_as(**givers: str) -> Iterator[None]:
    """Within it, a message that names an argument names the one that gave it.

    Args:
        **givers: the caller's own arguments, or settings, by the names of those that
            they give.

    Example:

    >>> with named_as(path="pretrained"):
    ...     raise ValueError("`path` must be a preset. Received: path='x'")
    Traceback (most recent call last):
    ...
    ValueError: `pretrained` must be a preset. Received: pretrained='x'
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if error.args and isinstance(error.args[0], str):
            names = "|".join(givers)
            message = re.sub(
                rf"(?<=`)({names})(?=`)|\b({names})(?==)",
                lambda found: givers[found[0]],
                error.args[0],
            )
            error.args = (message, *error.args[1:])
        raise
