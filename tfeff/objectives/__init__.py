"""Pretraining objectives: Keras models around an encoder, ready for `fit`."""

from tfeff.objectives.losses import GlobalMeanCrossentropy
from tfeff.objectives.masked_lm import MaskedLM

__all__ = ["GlobalMeanCrossentropy", "MaskedLM"]
