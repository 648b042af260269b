"""Errors of the functions that recipes call, in the words of the recipes' settings."""

import contextlib
import re
from collections.abc import Iterator


@contextlib.contextmanager
def named_as(**settings: str) -> Iterator[None]:
    """Within it, a message that names an argument names the setting that gave it.

    Args:
        **settings: the settings, by the names of arguments.

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
            names = "|".join(settings)
            message = re.sub(
                rf"(?<=`)({names})(?=`)|\b({names})(?==)",
                lambda found: settings[found[0]],
                error.args[0],
            )
            error.args = (message, *error.args[1:])
        raise
