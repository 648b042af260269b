"""A layer saved and loaded, compiled, in half precision, and in training."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.checks.numeric import assert_close, flat
from tests.checks.subject import EMPTY_ROW, MASKS, RAGGED


def functional_model(subject, layer):
    hidden = keras.Input((None, subject.hidden_dim), name="hidden")
    visible = keras.Input((None,), dtype="bool", name="visible")
    return keras.Model([hidden, visible], layer(hidden, padding_mask=visible))


def check_saving(subject):
    """Config round trip, and a model with the layer in it saved and loaded."""
    layer = subject.layer()
    hidden = subject.hidden(RAGGED)
    output = layer(hidden, padding_mask=RAGGED)

    config = json.dumps(keras.saving.serialize_keras_object(layer))
    copy = keras.saving.deserialize_keras_object(json.loads(config))
    assert json.dumps(keras.saving.serialize_keras_object(copy)) == config
    copy(hidden)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(hidden, padding_mask=RAGGED), output)

    model = functional_model(subject, layer)
    assert model.output.shape == (None, None, subject.hidden_dim)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
    for visible in MASKS.values():
        inputs = [subject.hidden(visible), visible]
        assert_close(loaded(inputs), model(inputs), 1e-6, "loaded model")
    assert_close(loaded([hidden, RAGGED]), output, 1e-6, "loaded model")


def check_xla(subject):
    """Values and gradients of the compiled layer are the eager ones."""
    layer = subject.layer()
    hidden = tf.constant(subject.hidden(RAGGED))

    def run(hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = layer(hidden, padding_mask=RAGGED)
            loss = tf.reduce_sum(output * tf.sin(hidden))
        return output, tape.gradient(loss, [hidden, *layer.trainable_variables])

    output, gradients = tf.function(run, jit_compile=True)(hidden)
    expected_output, expected_gradients = run(hidden)
    assert_close(output, expected_output, 1e-5, "XLA")
    assert_close(flat(gradients), flat(expected_gradients), 1e-5, "XLA, gradients")


def check_half_precision(subject):
    """Close to float64's values, and finite, gradients included."""
    hidden = subject.hidden(RAGGED)
    for dtype, tolerance in (("mixed_float16", 0.01), ("mixed_bfloat16", 0.06)):
        layer = subject.layer(dtype=dtype)
        assert all(v.dtype == "float32" for v in layer.weights)
        expected = subject.expected(layer, hidden, RAGGED)[0]
        source = tf.constant(hidden)
        with tf.GradientTape() as tape:
            tape.watch(source)
            output = layer(source, padding_mask=RAGGED)
            loss = tf.reduce_sum(tf.cast(output, "float32") ** 2)
        assert output.dtype.name == dtype.removeprefix("mixed_")
        error = np.abs(np.asarray(output, "float64") - expected).max()
        assert error <= tolerance * np.abs(expected).max(), (dtype, error)
        for gradient in tape.gradient(loss, [source, *layer.trainable_variables]):
            assert np.isfinite(tf.convert_to_tensor(gradient)).all(), dtype


def check_dropout(subject):
    """Active in training alone; an attention keeps its mean."""
    keras.utils.set_random_seed(0)
    layer = subject.layer(dropout=0.4)
    hidden = subject.hidden(RAGGED)
    expected = subject.expected(layer, hidden, RAGGED)
    for inference in (
        layer(hidden, padding_mask=RAGGED, training=False),
        layer(hidden, padding_mask=RAGGED),
    ):
        assert_close(inference, expected[0], 1e-5, "dropout at inference")
    draws = [layer(hidden, padding_mask=RAGGED, training=True) for _ in range(2)]
    assert not np.allclose(draws[0], draws[1])
    assert not np.allclose(draws[0], expected[0])
    if len(expected) == 1:
        return
    bias = np.asarray(subject.variables(layer)["output/bias"].value)
    context = np.broadcast_to(bias, draws[0][EMPTY_ROW].shape)
    assert_close(draws[0][EMPTY_ROW], context, 1e-6, "nothing visible")
    copies = 4000
    many = layer(
        np.repeat(hidden[1:2], copies, axis=0),
        padding_mask=np.repeat(RAGGED[1:2], copies, axis=0),
        training=True,
    )
    many = np.asarray(many, "float64")
    error = np.abs(many.mean(axis=0) - expected[0][1])
    assert (error <= 5 * many.std(axis=0) / np.sqrt(copies) + 1e-6).all()
