"""JSON files of runs: configurations and metrics, by name."""

import json

from tfeff.utils.digests import check_file


def read_object(path: str, folder: str | None = None) -> dict:
    """The object that a file holds, which is compared with the digests of it.

    Args:
        path: the file.
        folder: where its `SHA256SUMS` is; `None` means the file's folder.

    Raises:
        ValueError: if it is damaged, or holds no JSON or another value.
    """
    check_file(path, folder)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold values by name. Received: {found!r:.80}")
    return found
