"""A model that was saved and loaded is the same model: weights, sharing, training."""

import keras
import numpy as np


def sharing(encoder):
    """Which variables of an encoder's parts are one and the same, by number."""
    parts = (encoder.embedding, *encoder.blocks, encoder)
    ids = [id(variable) for part in parts for variable in part.variables]
    return [ids.index(one) for one in ids]


def outputs_of(model, inputs):
    """All outputs, as arrays."""
    return [np.asarray(x, "float64") for x in keras.tree.flatten(model(inputs))]


def check_same_encoder(loaded, encoder):
    """Of the same configuration, with the same weights, shared by the same layers."""
    assert type(loaded) is type(encoder)
    assert loaded.get_config() == encoder.get_config()
    assert sharing(loaded) == sharing(encoder)
    check_same_weights(loaded, encoder)


def check_same_weights(loaded, model):
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    check_same(loaded.weights, model.weights)


def check_same(arrays, expected):
    """Bit for bit."""
    for one, other in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def check_same_training(loaded, model, dataset):
    """The optimizer's state is the same, and so are all weights after more training."""
    check_same_optimizer(loaded, model)
    for one in (loaded, model):
        one.fit(dataset, epochs=1, shuffle=False, verbose=0)
    check_same_weights(loaded, model)
    check_same_optimizer(loaded, model)


def check_same_optimizer(loaded, model):
    states = loaded.optimizer.variables, model.optimizer.variables
    assert len(states[1]) > len(model.trainable_weights)
    check_same(*states)
