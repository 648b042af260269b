"""Encoders: one stack of one block, and the papers' models as presets of it.

`Encoder` stands on KerasHub, and that on TensorFlow. The registry of attentions, the
table of presets and `tfeff.encoders.stack`, the blocks of an encoder, need Keras alone,
and are all that there is on a machine without KerasHub.
"""

import importlib.util

from tfeff.encoders.attentions import attentions, register_attention
from tfeff.encoders.presets import presets

__all__ = ["attentions", "presets", "register_attention"]

if importlib.util.find_spec("keras_hub") is not None:
    # Not at first use: Keras loads saved encoders by classes that are registered.
    from tfeff.encoders.building import build
    from tfeff.encoders.encoder import Encoder
    from tfeff.encoders.extend_length import extend_length

    __all__ += ["Encoder", "build", "extend_length"]
