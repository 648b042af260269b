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
        if urls and error.args and isinstance(error.args[0], str):
            error.args = (_named(error.args[0], urls), *error.args[1:])
        if urls and isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = _named(error.filename, urls)
        raise


def _named(text, urls):
    """A text with the URLs in place of the paths."""
    given = {split_url(path)[0]: split_url(url)[0] for path, url in urls.items()}
    paths = "|".join(map(re.escape, sorted(given, key=len, reverse=True)))
    return re.sub(
        rf"(?<![\w./-])({paths})(?![\w.-])",
        lambda found: given[found[0]].rstrip("/"),
        text,
    )


def split_url(url: str) -> tuple[str, str]:
    """The run and the step of `"RUN@STEP"`; of others the step is empty."""
    run, at, step = url.rpartition("@")
    return (run, step) if at and step.isdecimal() else (url, "")
