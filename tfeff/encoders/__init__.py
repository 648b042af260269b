"""Encoders: one stack of one block, and the papers' models as presets of it."""

from tfeff.encoders.attentions import attentions
from tfeff.encoders.attentions import register_attention
from tfeff.encoders.encoder import Encoder
from tfeff.encoders.presets import build
from tfeff.encoders.presets import presets

__all__ = ["Encoder", "attentions", "build", "presets", "register_attention"]
