"""Errors about copies of remote files, in the words of the URLs."""

import contextlib
import re
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def named_by_urls(urls: Mapping[str, str]) -> Iterator[None]:
    """Within it, a message that names a local path names the URL that it stands for.

    Args:
        urls: the URLs by the paths; `"RUN@STEP"` for both where one is of a step.
    """
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        if error.args and isinstance(error.args[0], str):
            message = error.args[0]
            for path, url in urls.items():
                own, given = re.escape(split_step(path)[0]), split_step(url)[0]
                parts = re.split(rf"{own}(?![\w.-])", message)
                message = given.rstrip("/").join(parts)
            error.args = (message, *error.args[1:])
        raise


def split_step(url: str) -> tuple[str, str]:
    """The run and the step of `"RUN@STEP"`; of others the step is empty."""
    run, at, step = url.rpartition("@")
    return (run, step) if at and step.isdecimal() else (url, "")
