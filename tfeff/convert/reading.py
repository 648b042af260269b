"""Reading of a checkpoint's files, with errors that name the file."""

import json

_POINTER = b"version https://git-lfs.github.com/spec/"


def check_fetched(path: str) -> None:
    """Raises if the file is missing, or is a pointer of git-lfs to it."""
    read_bytes(path, len(_POINTER))


def read_bytes(path: str, size: int = -1) -> bytes:
    """The file's content, or its first `size` bytes.

    Raises:
        ValueError: if it cannot be read, or is a pointer of git-lfs.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(size)
    except OSError as error:
        raise ValueError(
            f"{path!r} must be a file. It cannot be read: {error.strerror}"
        ) from error
    if content.startswith(_POINTER):
        raise ValueError(
            f"{path!r} must be the file itself. It is a pointer of git-lfs to it: "
            "fetch it with `git lfs pull`"
        )
    return content


def read_text(path: str) -> str:
    """The file's text, in which every line break is `\\n`.

    Raises:
        ValueError: if it cannot be read, or is not UTF-8.
    """
    content = read_bytes(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} must be UTF-8. It is not: {error}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str, kind: type = dict):
    """The JSON object in the file, or the list if `kind` is `list`.

    Raises:
        ValueError: if it cannot be read, or holds no such JSON value.
    """
    text = read_text(path)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path!r} must be JSON. It is not: {error}") from error
    if not isinstance(values, kind):
        expected = "a JSON object" if kind is dict else "a list in JSON"
        raise ValueError(f"{path!r} must be {expected}. Received: {values!r:.80}")
    return values
