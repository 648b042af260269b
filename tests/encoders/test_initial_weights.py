"""Kernels and tables begin as BERT's: normal of deviation 0.02, cut at twice that."""

import math

import numpy as np
import pytest

from tfeff.encoders import build

# Of a normal distribution that is cut at two deviations.
CUT = 0.8796


@pytest.mark.parametrize(
    "preset", ["bert_base", "shatter_base", "convbert_base", "albert_base"]
)
def test_the_deviation_is_that_of_bert(preset):
    sizes = dict(num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=128)
    encoder = build(preset, vocabulary_size=300, max_sequence_length=32, **sizes)
    for weight in encoder.weights:
        values = weight.numpy()
        if weight.name in ("gamma", "beta") or weight.name.endswith("bias"):
            assert np.unique(values).tolist() == [float(weight.name == "gamma")]
        elif math.prod(weight.shape) >= 500:
            assert values.std() == pytest.approx(CUT * 0.02, rel=0.1), weight.path
            assert np.abs(values).max() <= 0.0401, weight.path
