"""Random models for export, and exports as a server calls them."""

import functools

import keras
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.subjects.sentences import tokenizer


def make_encoder(attention="self", **kwargs):
    arguments = dict(
        vocabulary_size=tokenizer().vocabulary_size() + 3,
        num_layers=1,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=24,
        max_sequence_length=60,
        attention=attention,
    )
    encoder = tfeff.encoders.Encoder(**(arguments | kwargs))
    randomize({variable.path: variable for variable in encoder.weights}, scale=0.3)
    return encoder


def make_model(*args, **kwargs):
    model = tfeff.objectives.MaskedLM(make_encoder(*args, **kwargs))
    randomize({variable.path: variable for variable in model.weights}, scale=0.3)
    return model


def own_model(encoder):
    """A model that tfeff does not know."""
    hidden = encoder(encoder.input)["sequence_output"]
    return keras.Model(encoder.input, keras.layers.Dense(2)(hidden[:, 0]))


@functools.cache
def load(path):
    return tf.saved_model.load(str(path))


def serve(path, signature, texts):
    served = load(path).signatures[signature]
    outputs = served(text=tf.constant(texts, tf.string))
    return {name: value.numpy() for name, value in outputs.items()}
