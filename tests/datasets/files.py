"""Writing of the files that the readers' tests read."""

import json


def write(path, text, encoding="utf-8"):
    """Makes the file and the folders above it; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def write_json(path, *records):
    """One record a line."""
    return write(path, "\n".join(json.dumps(record) for record in records))


def rows(*cells):
    """Tab-separated lines."""
    return "".join("\t".join(row) + "\n" for row in cells)
