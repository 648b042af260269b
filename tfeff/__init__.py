"""Efficient Transformer encoders for TensorFlow and Keras.

Subpackages load when they are first used, so `import tfeff` costs nothing and
`tfeff.layers` and `tfeff.ops` need Keras alone.

Example:

>>> import tfeff
>>> tfeff.layers.SelfAttention(num_heads=4).num_heads
4
"""

import importlib

__version__ = "0.1.0"

_SUBPACKAGES = (
    "convert",
    "data",
    "encoders",
    "export",
    "layers",
    "objectives",
    "ops",
    "plots",
    "tasks",
    "training",
)

__all__ = [*_SUBPACKAGES, "__version__"]


def __getattr__(name: str):
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
