"""Where copies of remote files lie on this machine."""

import hashlib
import os


def staging_dir() -> str:
    """The folder of all copies: `TFEFF_CACHE`, or `tfeff` in the user's cache folder.

    Copies in it may be deleted while no process of tfeff is at work. It also holds what
    could not be uploaded yet.

    Raises:
        ValueError: if the user has no home, and `TFEFF_CACHE` is not set; if it cannot
            be made.
    """
    given = os.environ.get("TFEFF_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    path = os.path.expanduser(given or os.path.join(user, "tfeff"))
    if path.startswith("~"):
        raise ValueError(
            "The environment variable TFEFF_CACHE must name a folder for copies of "
            f"remote files where the user has no home. Received: {given or 'none'}"
        )
    path = os.path.abspath(path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ValueError(
            "The environment variable TFEFF_CACHE must name a folder for copies of "
            f"remote files. Received: {path}: {error.strerror}"
        ) from error
    return path


def staged(kind: str, url: str, *parts: str) -> str:
    """A path for a URL's copy, which ends in the URL's last name."""
    name = url.rstrip("/").rpartition("/")[2]
    name = "folder" if name in (".", "..") else name
    digest = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
    return os.path.join(staging_dir(), kind, digest, *parts, name)
