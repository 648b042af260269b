"""A record of the versions of the libraries that a run has worked with."""

import json
import platform

import keras
import keras_hub
import numpy as np
import tensorflow as tf
import tensorflow_text

import tfeff
from tfeff.utils.files import write_text
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import advised
from tfeff.utils.reading import is_there

_FILE = "versions.json"
_LIBRARIES = (tfeff, tf, tensorflow_text, keras, keras_hub, np)


def note_versions(run: tfeff.training.RunDirectory) -> None:
    """Notes the versions of this start, and prints those that the last start had not.

    Args:
        run: its directory, where `versions.json` has, by library, the versions of all
            starts in their order.

    Raises:
        ValueError: if that file is damaged.
    """
    path = run.path(_FILE)
    with advised("It is a record alone: delete it to begin a new one"):
        noted = read_object(path, run.directory) if is_there(path) else {}
        for name, versions in noted.items():
            if not (isinstance(versions, list) and versions):
                raise ValueError(
                    f"{path} must hold lists of versions. Received: "
                    f"{name}={versions!r:.80}"
                )
    now = _versions()
    changed = {x: y for x, y in now.items() if noted.get(x, [None])[-1] != y}
    if not changed:
        return
    for name, version in changed.items():
        if name in noted:
            print(f"{name} {version} goes on with what {noted[name][-1]} began")
        noted.setdefault(name, []).append(version)
    write_text(path, json.dumps(noted, indent=2))


def _versions():
    versions = {module.__name__: module.__version__ for module in _LIBRARIES}
    return {"python": platform.python_version(), **versions}
