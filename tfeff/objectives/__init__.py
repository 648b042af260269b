"""Pretraining objectives: Keras models around an encoder, ready for `fit`."""

from tfeff.objectives.copying import copy_head, copy_layers
from tfeff.objectives.distillation.checks import common_maps
from tfeff.objectives.distillation.model import Distillation
from tfeff.objectives.generator import generator_for
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.objective import Objective
from tfeff.objectives.permutation_lm import PermutationLM
from tfeff.objectives.registry import PretrainingObjective, get, names, register
from tfeff.objectives.replaced_token import ReplacedTokenDetection
from tfeff.objectives.sentence_pair import SentencePairPrediction
from tfeff.training.losses import GlobalMeanBinaryCrossentropy, GlobalMeanCrossentropy

__all__ = [
    "Distillation",
    "GlobalMeanBinaryCrossentropy",
    "GlobalMeanCrossentropy",
    "Head",
    "MaskedLM",
    "Objective",
    "PermutationLM",
    "PretrainingObjective",
    "ReplacedTokenDetection",
    "SentencePairPrediction",
    "common_maps",
    "copy_head",
    "copy_layers",
    "generator_for",
    "get",
    "names",
    "register",
]
