"""Small students and teachers, their inputs, and their maps of attention."""

import numpy as np

from tests.checks import variables_of
from tests.reference import distillation as reference
from tests.subjects import objectives
from tests.subjects.batches import VOCABULARY_SIZE


def make_encoder(num_layers=2, hidden_dim=8, num_heads=2, **kwargs):
    sizes = dict(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
    return objectives.make_encoder(**sizes | {"intermediate_dim": 8} | kwargs)


def make_inputs(batch_size=3, length=7, seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.array([length, 1, 0, 4])[:batch_size]
    visible = np.arange(length) < lengths[:, None]
    tokens = rng.integers(5, VOCABULARY_SIZE, visible.shape) * visible
    return {
        "token_ids": tokens.astype("int32"),
        "segment_ids": np.zeros_like(visible, "int32"),
        "padding_mask": visible.astype("int32"),
    }, visible


def arrays(encoder, inputs, attention):
    """Hidden states, and maps made by hand from them, in float64."""
    states = [np.float64(x) for x in encoder(inputs)["hidden_states"]]
    maps = []
    for hidden, block in zip(states, encoder.blocks):
        weights = {
            name: np.float64(v) for name, v in variables_of(block.attention).items()
        }
        scores = np.stack(
            [
                reference.attention_scores(row, weights, encoder.num_heads)
                for row in hidden
            ]
        )
        if attention == "probabilities":
            hidden_keys = inputs["padding_mask"][:, None, None] == 0
            shifted = scores - scores.max(axis=-1, keepdims=True)
            weights = np.where(hidden_keys, 0, np.exp(shifted))
            total = weights.sum(axis=-1, keepdims=True)
            scores = weights / np.where(total == 0, 1, total)
        maps.append(scores)
    return states, maps
