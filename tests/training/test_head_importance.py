"""A model is evaluated with each head off."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.encoders import tiny
from tfeff.layers import masked_heads
from tfeff.training import head_importance
from tfeff.training.head_importance import HeadImportance

LABELS = np.array([0, 1, 1, 2, 0])


def examples():
    rng = np.random.default_rng(0)
    mask = np.arange(6) < np.array([[6], [3], [1], [5], [2]])
    return {
        "token_ids": rng.integers(0, 19, mask.shape).astype("int32"),
        "segment_ids": np.zeros(mask.shape, "int32"),
        "padding_mask": mask.astype("int32"),
    }


def compiled(encoder):
    model = tfeff.tasks.Classifier(encoder, num_classes=3)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(weight + 0.5 * rng.normal(size=weight.shape))
    model.compile()
    return model


def loss_of(model, mask):
    """Cross-entropy by hand, of a plain call."""
    with masked_heads(model.encoder, mask):
        logits = model(examples()).numpy().astype("float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.mean([row[label] for row, label in zip(logs, LABELS)])


@pytest.mark.slow
def test_every_head():
    attention = ["self", {"name": "self", "disabled_heads": [1]}]
    model = compiled(tiny("bert_base", attention=attention, num_heads=2))
    data = tf.data.Dataset.from_tensor_slices((examples(), LABELS)).batch(2)
    before = model.evaluate(data, verbose=0)
    result = head_importance(model, data)
    assert result.metrics["loss"] == pytest.approx(loss_of(model, [None] * 2), rel=1e-5)
    without = result.without["loss"]
    assert without.shape == (2, 2) and np.isnan(without[1]).all()
    for head in range(2):
        mask = np.arange(2) != head
        expected = loss_of(model, [mask.astype("float32"), None])
        assert without[0, head] == pytest.approx(expected, rel=1e-5)
        change = result.change()[0, head]
        assert change == pytest.approx(expected - result.metrics["loss"], abs=1e-5)
    assert np.abs(result.change()[0]).min() > 1e-3
    assert set(result.without) == set(result.metrics) >= {"loss"}
    # No mask stays in the model.
    assert model.evaluate(data, verbose=0) == pytest.approx(before)


def test_bad_input():
    model = compiled(tiny("bert_base", num_layers=1))
    data = tf.data.Dataset.from_tensors((examples(), LABELS))
    with pytest.raises(TypeError, match="`model` must have an `encoder`"):
        head_importance(keras.Sequential(), data)
    with pytest.raises(TypeError, match="`batches` must be a `tf.data.Dataset`"):
        head_importance(model, [examples()])
    with pytest.raises(ValueError, match="`batches` must be finitely many"):
        head_importance(model, data.repeat())
    found = HeadImportance({"loss": 1.0}, {"loss": np.zeros((1, 2))})
    with pytest.raises(ValueError, match="`metric` must be one of.*'loss'"):
        found.change("accuracy")
    with pytest.raises(ValueError, match="`model` must be compiled"):
        head_importance(tfeff.tasks.Classifier(model.encoder, 3), data)
