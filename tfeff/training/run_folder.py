"""The folder of a run: what is in it, and whether it is that of the run at hand."""

import os
from collections.abc import Callable, Mapping

from tfeff.storage.manifest import OF_UPLOADS
from tfeff.utils.checks import differences
from tfeff.utils.json_files import read_object
from tfeff.utils.partial import PARTIAL
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import CONFIG, LOCK, MADE, PRESET


def files(directory: str) -> set[str]:
    """Names of the files, without the lock and unfinished files."""
    return {
        name
        for name in os.listdir(directory)
        if name != LOCK and not name.startswith(PARTIAL)
    }


def check_kind(directory: str) -> None:
    """Raises if the folder is not a run's, before anything in it is touched."""
    if not os.path.lexists(directory):
        return
    is_folder = os.path.isdir(directory)
    names = files(directory) if is_folder else set()
    if not is_folder or (names and CONFIG not in names):
        found = "has other content and no config.json"
        if not is_folder:
            is_link = os.path.islink(directory)
            found = "is a link to what is no folder" if is_link else "is a file"
        raise ValueError(
            "`directory` must be a run's, empty, or not there yet. Received: "
            f"{directory}, which {found}"
        )
    # What a missing disk holds would seem to be missing, and be made anew in its place.
    for name in sorted(names & {*MADE}):
        path = os.path.join(directory, name)
        if os.path.islink(path) and not is_there(path):
            raise ValueError(
                "`directory` must have what its links lead to, such as a disk that is "
                f"not there now. Received: {directory}, whose {name} is a link to "
                f"{os.readlink(path)!r}, where there is nothing"
            )
    if uploaded := sorted(names & {*OF_UPLOADS}):
        raise ValueError(
            "`directory` must be given by its URL where tfeff has uploaded it, "
            "such as s3://bucket/run, or file:// and the whole path of a copy: "
            "files have other names there, and two processes would not see each "
            f"other. Received: {directory}, which has {uploaded[0]}"
        )


def check_settings(
    directory: str, config: Mapping, upgrade: Callable[[dict], dict], shown: str
) -> None:
    """Raises if the folder is of a run of another configuration.

    Args:
        directory: the folder.
        config, upgrade: as of `RunDirectory`.
        shown: the folder as messages have it.
    """
    saved = upgrade(read_object(os.path.join(directory, CONFIG)))
    others = [
        f"{name}: there {there!r}, now {now!r}"
        for name, there, now in differences(saved, config)
    ]
    if others:
        start = ""
        if os.path.isdir(os.path.join(directory, PRESET)):
            start = (
                " A recipe trains its encoder on in another directory by "
                f"--pretrained={shown}."
            )
        raise ValueError(
            f"`directory` {shown} belongs to a run of another "
            f"configuration. Differences: {'; '.join(others)}. Use another "
            f"directory, or the same settings to go on with that run.{start}"
        )
