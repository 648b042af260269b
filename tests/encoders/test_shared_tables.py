"""Models of layers that share tables are loaded with what they share."""

import gc

import keras
import numpy as np
import pytest

from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tfeff.encoders import Encoder
from tfeff.layers import EncoderEmbedding
from tfeff.objectives import (
    Distillation,
    MaskedLM,
    ReplacedTokenDetection,
    generator_for,
)


def two_outputs():
    encoder = tiny("bert_tiny")
    generator = generator_for(encoder, 1 / 2)
    outputs = [one(encoder.input)["sequence_output"] for one in (generator, encoder)]
    return keras.Model(encoder.input, outputs), batch_of(encoder)


def distillation(**changes):
    teacher = tiny("bert_tiny")
    config = {**teacher.get_config(), "num_layers": 1, "name": "student"}
    student = Encoder.from_config({**config, **changes, "tables_of": teacher})
    return Distillation(student, teacher, layer_map="top"), batch_of(teacher)


def replaced_tokens():
    encoder = tiny("bert_tiny")
    model = ReplacedTokenDetection(generator_for(encoder, 1 / 2), encoder, seed=1)
    batch = batch_of(encoder)
    rows = len(batch["token_ids"])
    return model, {**batch, "mask_positions": np.ones((rows, 1), "int32")}


def two_embeddings():
    first = EncoderEmbedding(19, 8, embedding_dim=6)
    second = EncoderEmbedding(19, 4, embedding_dim=6, tables_of=first)
    tokens = keras.Input((None,), dtype="int32")
    model = keras.Model(tokens, [second(tokens), first(tokens)])
    return model, np.array([[1, 2, 3]])


MODELS = [two_outputs, distillation, replaced_tokens, two_embeddings]


@pytest.mark.quick("replaced_tokens", "two_embeddings")
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_saved_and_loaded(make, tmp_path):
    model, inputs = make()
    randomize({w.path + str(i): w for i, w in enumerate(model.weights)})
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    for weight, same in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, same)
    for output, same in zip(*(keras.tree.flatten(m(inputs)) for m in (model, loaded))):
        np.testing.assert_array_equal(output, same)
    loaded.save(tmp_path / "again.keras")  # What is shared is known on.
    again = keras.models.load_model(tmp_path / "again.keras")
    assert len(again.weights) == len(model.weights)


def test_one_that_is_saved_alone_has_tables_of_its_own(tmp_path):
    encoder = tiny("bert_tiny")
    generator = generator_for(encoder, 1 / 2)
    assert "tables_of" not in generator.get_config()
    model = MaskedLM(generator)
    batch = batch_of(encoder)
    rows = len(batch["token_ids"])
    batch = {**batch, "mask_positions": np.ones((rows, 1), "int32")}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(model(batch), loaded(batch))
    gc.collect()
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    np.testing.assert_array_equal(model(batch), again(batch))
    assert len(again.weights) == len(model.weights)
