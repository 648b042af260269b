"""Encoders: one stack of one block, and the papers' models as presets of it.

`Encoder` needs KerasHub, which needs TensorFlow. Without KerasHub there are only the
registry of attentions, the presets and `tfeff.encoders.stack`, the blocks of an
encoder, which need Keras alone.
"""

import importlib.util

from tfeff.encoders.attentions import attentions, register_attention
from tfeff.encoders.presets import presets

__all__ = ["attentions", "presets", "register_attention"]

if importlib.util.find_spec("keras_hub") is not None:
    # Not at first use: KerasHub looks for the tasks of an encoder.
    from tfeff.encoders.adapters import merge_lora
    from tfeff.encoders.building import build
    from tfeff.encoders.disable_heads import disable_heads
    from tfeff.encoders.encoder import Encoder
    from tfeff.encoders.extend_length import extend_length
    from tfeff.encoders.hub_tasks import (
        EncoderMaskedLM,
        EncoderMaskedLMPreprocessor,
        EncoderTextClassifier,
        EncoderTextClassifierPreprocessor,
    )
    from tfeff.encoders.swap_positions import swap_positions

    __all__ += [
        "Encoder",
        "EncoderMaskedLM",
        "EncoderMaskedLMPreprocessor",
        "EncoderTextClassifier",
        "EncoderTextClassifierPreprocessor",
        "build",
        "disable_heads",
        "extend_length",
        "merge_lora",
        "swap_positions",
    ]
