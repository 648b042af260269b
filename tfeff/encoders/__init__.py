"""Encoders: one stack of one block, and the papers' models as presets of it.

`Encoder` stands on KerasHub, and that on TensorFlow, so what needs it is imported when
it is first used. The registry of attentions, the table of presets and
`tfeff.encoders.stack`, the blocks of an encoder, need Keras alone.
"""

import importlib

from tfeff.encoders.attentions import attentions, register_attention
from tfeff.encoders.presets import presets

_HOMES = {"Encoder": "encoder", "build": "building", "extend": "extension"}

__all__ = ["attentions", "presets", "register_attention", *_HOMES]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
