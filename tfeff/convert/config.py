"""The configuration file of a checkpoint, with a check of each value."""

import warnings
from collections.abc import Container

from tfeff.convert.reading import read_json
from tfeff.utils.checks import check_integer, check_positive, check_rate

_MISSING = object()
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


def activation_name(activation: str) -> str:
    """The usual name of tfeff's activation in the formats; `"gelu"` if it has none."""
    found = [name for name, ours in ACTIVATIONS.items() if ours == activation]
    return found[0] if found else "gelu"


class Config:
    """Values of a JSON object, each checked on access.

    Args:
        values: dict of the values.
        path: the file of the values, for messages.
        read: set to which the names of accessed values are added.
    """

    def __init__(self, values: dict, path: str, read: set | None = None):
        self.values = values
        self.path = path
        self._read = set() if read is None else read

    @classmethod
    def read(cls, path: str) -> "Config":
        """The configuration in a JSON file."""
        return cls(read_json(path), path)

    def with_defaults(self, **defaults) -> "Config":
        """The same configuration with defaults for missing values."""
        return Config(defaults | self.values, self.path, self._read)

    def warn_of_others(self, harmless: Container[str]) -> None:
        """Warns of values that were not accessed and are not known to be harmless."""
        others = sorted(set(self.values) - self._read)
        others = [name for name in others if name not in harmless]
        if others:
            warnings.warn(
                f"{self.path!r} has values that tfeff does not know and ignores: "
                f"{', '.join(others)}. Make sure that they change nothing",
                stacklevel=1,
            )

    def get(self, name: str, default=_MISSING):
        """The value of `name`, or `default` if the file has none."""
        self._read.add(name)
        if name not in self.values and default is _MISSING:
            raise ValueError(f"{self.path!r} must have {name!r}. It is missing")
        return self.values.get(name, default)

    def integer(self, name: str, default=_MISSING) -> int:
        """A value that must be a positive integer."""
        return self._checked(check_integer, name, default)

    def positive(self, name: str, default=_MISSING) -> float:
        """A value that must be a positive number."""
        return self._checked(check_positive, name, default)

    def rate(self, name: str, default=_MISSING) -> float:
        """A value that must be a number in [0, 1)."""
        return self._checked(check_rate, name, default)

    def activation(self, name: str, names: dict = ACTIVATIONS) -> str:
        """tfeff's activation for a value, by the mapping `names`."""
        return names[self.only(name, *names, default="gelu")]

    def only(self, name: str, *known, default=_MISSING):
        """A value that must be one of `known`, the supported ones."""
        value = self.get(name, default)
        # 0 == False in Python, but JSON's `0` is a number.
        if not any(value == v and type(value) is type(v) for v in known):
            raise ValueError(
                f"{self.path!r} asks for {name}={value!r:.300}, which tfeff does not "
                f"support. It supports: {', '.join(f'{name}={v!r}' for v in known)}"
            )
        return value

    def _checked(self, check, name, default):
        try:
            return check(name, self.get(name, default))
        except (TypeError, ValueError) as error:
            raise ValueError(f"In {self.path!r}: {error}") from error
