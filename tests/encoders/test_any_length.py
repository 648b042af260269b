"""Encoders as functions of any length, differentiated inside and outside of these."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close

NAMES = ["token_ids", "segment_ids", "padding_mask"]
SIGNATURE = [{name: tf.TensorSpec((None, None), tf.int32) for name in NAMES}]
LENGTHS = (7, 12, 5)
LOADED = """
import sys
import numpy as np
import tensorflow as tf

loaded = tf.saved_model.load(sys.argv[1])
arrays = dict(np.load(sys.argv[2]))
lengths = sorted({name.partition("/")[0] for name in arrays})
for length in lengths:
    batch = {
        name: tf.constant(arrays[f"{length}/{name}"])
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    with tf.GradientTape() as tape:
        output = loaded.serve(batch)
        if isinstance(output, dict):
            output = output["sequence_output"]
        loss = tf.reduce_sum(tf.sin(output))
    table = max(tape.watched_variables(), key=lambda x: x.shape[0])
    gradient = tf.convert_to_tensor(tape.gradient(loss, table))
    expected = arrays[f"{length}/gradient"]
    error = np.abs(gradient - expected).max() / np.abs(expected).max()
    assert error < 1e-9, error
"""


@pytest.fixture(autouse=True)
def _blocks(monkeypatch):
    """Of the lengths, one is computed in blocks of queries."""
    monkeypatch.setattr("tfeff.layers.scored_attention.WHOLE_LENGTH", 8)
    monkeypatch.setattr("tfeff.layers.scored_attention.BLOCK_SIZE", 4)


def make(preset, **arguments):
    keras.utils.set_random_seed(0)
    return tfeff.encoders.build(
        preset,
        vocabulary_size=1000,
        num_layers=1,
        dtype="float64",
        **arguments,
    )


def batch_of(length):
    ids = np.random.default_rng(length).integers(1, 1000, (2, length), "int32")
    mask = np.arange(length) < [[length], [length - 2]]
    arrays = ids, 0 * ids, mask.astype("int32")
    return dict(zip(NAMES, map(tf.constant, arrays), strict=True))


def gradients(function, batch, variables):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(function(batch)))
    found = tape.gradient(loss, variables, unconnected_gradients="zero")
    return [tf.convert_to_tensor(x) for x in found]


def check(step, encoder, function):
    for length in LENGTHS:
        batch = batch_of(length)
        expected = gradients(function, batch, encoder.trainable_variables)
        for one, other in zip(step(batch), expected, strict=True):
            assert_close(one, other, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_tape_outside(preset):
    encoder = make(preset)

    def function(batch):
        return encoder(batch)["sequence_output"]

    compiled = tf.function(function, input_signature=SIGNATURE)
    variables = encoder.trainable_variables
    check(lambda batch: gradients(compiled, batch, variables), encoder, function)


@pytest.mark.slow
@pytest.mark.parametrize("memory_efficient", [False, "attention", True])
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_nested_functions(preset, memory_efficient):
    """Which the second length traces for any."""
    encoder = make(preset, memory_efficient=memory_efficient, dropout=0.0)

    def function(batch):
        return encoder(batch, training=True)["sequence_output"]

    inner = tf.function(function, reduce_retracing=True)

    @tf.function(reduce_retracing=True)
    def step(batch):
        return gradients(inner, batch, encoder.trainable_variables)

    check(step, encoder, function)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_within_a_branch(preset):
    """Of a user's function."""
    encoder = make(preset)

    def function(batch):
        return encoder(batch)["sequence_output"]

    @tf.function(input_signature=SIGNATURE)
    def branches(batch):
        is_long = tf.shape(batch["token_ids"])[1] > 6
        return tf.cond(is_long, lambda: function(batch), lambda: function(batch))

    variables = encoder.trainable_variables
    check(lambda batch: gradients(branches, batch, variables), encoder, function)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_fit(preset, jit_compile):
    """Batches of different lengths, through an encoder that is a function."""

    class Model(keras.Model):
        def __init__(self, encoder, compiled):
            super().__init__()
            self.encoder = encoder
            self.dense = keras.layers.Dense(1, dtype="float64")
            self.run = encoder
            if compiled:
                self.run = tf.function(encoder, reduce_retracing=True)

        def call(self, batch):
            return self.dense(self.run(batch)["sequence_output"][:, 0])

    losses = []
    for compiled in (True, False):
        model = Model(make(preset, dropout=0.0), compiled)
        model.compile("sgd", "mse", jit_compile=jit_compile and compiled)
        batches = [(batch_of(length), tf.ones((2, 1))) for length in LENGTHS]
        data = tf.data.Dataset.from_generator(
            lambda batches=batches: iter(batches),
            output_signature=(SIGNATURE[0], tf.TensorSpec((2, 1))),
        )
        history = model.fit(data.repeat(), epochs=2, steps_per_epoch=3, verbose=0)
        losses.append(history.history["loss"])
    assert_close(*losses, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["Keras", "TensorFlow"])
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_saved_model(preset, writer, tmp_path):
    """Loaded in a process that knows neither tfeff nor its gradients."""
    encoder = make(preset)

    def function(batch):
        return encoder(batch)["sequence_output"]

    if writer == "Keras":
        encoder.export(tmp_path / "model", verbose=False)
    else:
        module = tf.Module()
        module.encoder = encoder
        module.serve = tf.function(function, input_signature=SIGNATURE)
        tf.saved_model.save(module, tmp_path / "model")
    table = max(encoder.trainable_variables, key=lambda x: x.shape[0])
    arrays = {}
    for length in LENGTHS:
        batch = batch_of(length)
        arrays |= {f"{length}/{name}": x.numpy() for name, x in batch.items()}
        (gradient,) = gradients(function, batch, [table])
        arrays[f"{length}/gradient"] = gradient.numpy()
    np.savez(tmp_path / "arrays.npz", **arrays)
    arguments = tmp_path / "model", tmp_path / "arrays.npz"
    subprocess.run([sys.executable, "-c", LOADED, *arguments], check=True)
