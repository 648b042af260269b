"""Arguments of an encoder as flags, for the scripts beside this file."""

import json

from absl import app


def parse(override):
    """`"num_layers=4"` to `("num_layers", 4)`; what is not JSON is a string."""
    name, equals, value = override.partition("=")
    if not equals:
        raise app.UsageError(f"--override must be NAME=VALUE. Received: {override!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
