"""Encoders: one stack of one block, and the papers' models as presets of it."""

from tfeff.encoders.attentions import attentions, register_attention
from tfeff.encoders.encoder import Encoder
from tfeff.encoders.extension import extend
from tfeff.encoders.presets import build, presets

__all__ = [
    "Encoder",
    "attentions",
    "build",
    "extend",
    "presets",
    "register_attention",
]
