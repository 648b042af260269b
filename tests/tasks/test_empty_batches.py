"""Batches of no rows, which a replica gets of a last batch, have outputs of none."""

import keras
import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tfeff import objectives, tasks
from tfeff.tasks.in_batch_contrast import nearest_is_partner

ROWS = np.zeros((0, 8), "int32")
INPUTS = dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), ROWS)
GROUPS = dict.fromkeys(INPUTS, np.zeros((0, 2, 8), "int32"))
MASKED = {**INPUTS, "mask_positions": ROWS[:, :2]}
PERMUTED = {**MASKED, "ranks": ROWS}
MODELS = {
    "cls": (lambda e: tasks.Classifier(e, 3), INPUTS),
    "last": (lambda e: tasks.Classifier(e, 3, pooling="last"), INPUTS),
    "mean": (lambda e: tasks.Classifier(e, 3, pooling="mean"), INPUTS),
    "layerwise": (lambda e: tasks.Classifier(e, 3, pooling="layerwise"), INPUTS),
    "segments": (lambda e: tasks.Classifier(e, 3, pooling="segments"), INPUTS),
    "ratings": (tasks.Regressor, INPUTS),
    "words": (lambda e: tasks.TokenClassifier(e, 3), INPUTS),
    "spans": (tasks.SpanQA, INPUTS),
    "options": (tasks.MultipleChoice, GROUPS),
    "embeddings": (tasks.SentenceEmbedding, GROUPS),
    "masked_lm": (objectives.MaskedLM, MASKED),
    "permutation_lm": (objectives.PermutationLM, PERMUTED),
}


def check(make, preset, inputs):
    model = make(tiny(preset))
    for output in keras.tree.flatten(model(inputs)):
        assert output.shape[0] == 0


@pytest.mark.parametrize("name", MODELS)
def test_of_every_model(name):
    make, inputs = MODELS[name]
    check(make, "bert_base", inputs)


@pytest.mark.parametrize("preset", ["shatter_base", "xlnet_base", "bert_rpe_base"])
def test_of_queries_at_few_positions(preset):
    check(objectives.PermutationLM, preset, PERMUTED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset",
    [
        *("shatter_base", "huang4_base", "blockbert_n2_base", "sparsebert_base"),
        *("convbert_small", "albert_base", "xlnet_base", "shaw_base"),
    ],
)
def test_of_every_encoder(preset):
    check(lambda encoder: encoder, preset, INPUTS)


def test_of_a_contrast():
    found = nearest_is_partner(ROWS[:, :2], np.zeros((0, 2, 8), "float32"))
    assert found.shape == (0,)
