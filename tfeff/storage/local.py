"""The local path of what a path or a URL names: itself, or a copy of it."""

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any

from tfeff.storage.fetching import fetch_folder, fresh_folder, is_uploaded
from tfeff.storage.naming import named_by_urls
from tfeff.utils.paths import check_path, is_url
from tfeff.utils.run_files import (
    BESIDE_MODEL,
    CHECKPOINTS,
    CONFIG,
    PRESET,
    checkpoint_name,
    is_in,
)


def fetch(url: str | os.PathLike) -> str:
    """Downloads a file or a folder, and returns the path of the local copy.

    A folder that tfeff has published has a `tfeff-manifest.json`: the copy's files are
    compared with its digests, now and whenever it is used again. Other files and
    folders are downloaded again when their storage tells another version, or no size. A
    process that is killed leaves no half file; what it has downloaded is used.

    Args:
        url: a URL of a scheme that fsspec knows, such as `"s3://bucket/preset"`; or a
            local path, which is returned as it is.

    Returns:
        The path of the copy in `TFEFF_CACHE` (by default `~/.cache/tfeff`), which must
        not be changed.

    Raises:
        TypeError: if `url` is neither.
        ValueError: if there is nothing at the URL, its upload has not ended, or a file
            is damaged; if the scheme's library, or credentials, are missing.
        OSError: if it cannot be read.

    Example:

    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/corpus/a.txt", b"A document.")
    >>> open(tfeff.storage.fetch("memory://corpus/a.txt")).read()
    'A document.'
    """
    path = local_path("url", url)
    if is_url(url) and not os.path.exists(path):
        raise ValueError(
            f"`url` must exist. Received: url={url!r}, where there is nothing"
        )
    return path


def local_path(name: str, value: Any, **options: Any) -> str:
    """The path itself, or the copy of what is at a URL, see `fetch_folder`."""
    own = _own_path(name, value)
    return fetch_folder(name, value, **options) if own is None else own


@contextlib.contextmanager
def current_folder(name: str, value: Any) -> Iterator[str]:
    """The path itself, or a copy of what is at a URL now, not an earlier one."""
    own = _own_path(name, value)
    if own is not None:
        yield own
        return
    with fresh_folder(name, value) as folder, named_by_urls({folder: value}):
        yield folder


def _own_path(name, value):
    """The path of what is read where it is; None of what is fetched."""
    if not is_url(value):
        return check_path(name, value)
    # What was uploaded to a local folder need not have its files by their names.
    local = local_of(value)
    return None if local is None or is_uploaded(name, value) else local


def local_run(
    name: str, run_dir: str, step: int | None = None, newest: bool = False
) -> str:
    """The path of a run or preset, or a copy of those files that models are made of.

    Args:
        name: the argument, for errors.
        run_dir: the run.
        step: the step whose checkpoint is read; `None` for another one, or none.
        newest: whether the newest checkpoint is read where `step` is `None`. One that
            is not, is fetched with runs that have no preset yet.
    """
    select = functools.partial(_of_model, step, newest)
    return local_path(name, run_dir, whole=True, select=select)


def local_of(url: str) -> str | None:
    """The path of a URL of local files; None for others."""
    scheme, _, path = url.partition("://")
    return path if scheme.lower() in ("file", "local") else None


def _of_model(step: int | None, newest: bool, names: Iterable[str]) -> list[str]:
    """Of a run, the files that models are loaded from; of a preset, all."""
    names = list(names)
    has_preset = f"{PRESET}/{CONFIG}" in names
    checkpoints = sorted(x for x in names if is_in(x, CHECKPOINTS))
    if not checkpoints and not has_preset:
        return names
    wanted = checkpoints[-1:] if newest or not has_preset else []
    if step is not None:
        name = f"{CHECKPOINTS}/{checkpoint_name(step)}"
        wanted = [x for x in checkpoints if x == name]
        wanted = wanted or checkpoints  # The error names them.
    others = (CHECKPOINTS, *BESIDE_MODEL)
    return [*wanted, *(x for x in names if not is_in(x, *others))]
