"""What every encoder must hold to."""

import itertools

import numpy as np
import tensorflow as tf

from tests.checks.numeric import assert_close, flat, randomize

# The third sequence is nothing but padding.
LENGTHS = (7, 4, 0)


def batch_of(encoder, lengths=LENGTHS, padded_to=7, filler=0):
    """Random tokens in two segments; `filler` is the id in padding."""
    rng = np.random.default_rng(3)
    shape = (len(lengths), max(lengths))
    tokens = rng.integers(5, encoder.vocabulary_size, size=shape)
    padding = ((0, 0), (0, padded_to - shape[1]))
    visible = np.arange(padded_to) < np.array(lengths)[:, None]
    tokens = np.where(visible, np.pad(tokens, padding), filler)
    segments = np.where(visible, np.arange(padded_to) >= 3, filler != 0)
    return {
        "token_ids": tokens.astype("int32"),
        "segment_ids": segments.astype("int32"),
        "padding_mask": visible.astype("int32"),
    }


def check_encoder(make_encoder):
    """Runs all of this file's checks.

    Args:
        make_encoder: makes a new encoder from `dtype=`, tiny, dropout 0, at least
            16 positions, with at least two segments and a vocabulary of 16 or more.
    """
    encoder = make_encoder(dtype="float32")
    randomize({w.path: w for w in encoder.weights}, scale=0.3)
    check_outputs(encoder)
    check_padding(encoder)
    check_compiled(make_encoder, encoder)
    check_half_precision(make_encoder, encoder)


def check_outputs(encoder):
    """The promised outputs; eager calls and `predict` agree, and nothing is NaN."""
    batch = batch_of(encoder)
    outputs = encoder(batch)
    assert set(outputs) == {"sequence_output", "hidden_states"}
    states = outputs["hidden_states"]
    assert len(states) == encoder.num_layers + 1
    np.testing.assert_array_equal(states[-1], outputs["sequence_output"])
    for before, after in itertools.pairwise(states):
        assert before.shape == (*batch["token_ids"].shape, encoder.hidden_dim)
        assert not np.allclose(before, after)
        assert np.isfinite(after).all()
    predicted = encoder.predict(batch, verbose=0)["sequence_output"]
    assert_close(predicted, states[-1], 1e-5, "predict")


def check_padding(encoder):
    """Real positions see neither what stands in padding nor how much of it."""
    batch = batch_of(encoder)
    visible = batch["padding_mask"].astype(bool)
    output = np.asarray(encoder(batch)["sequence_output"])[visible]
    for what, other in (
        ("garbage in padding", batch_of(encoder, filler=1)),
        ("more padding", batch_of(encoder, padded_to=12)),
        ("more padding, garbage", batch_of(encoder, padded_to=12, filler=1)),
    ):
        actual = np.asarray(encoder(other)["sequence_output"])[:, :7][visible]
        assert_close(actual, output, 1e-5, what)
    for row, length in enumerate(LENGTHS):
        if length:
            alone = {k: v[row : row + 1, :length] for k, v in batch.items()}
            actual = np.asarray(encoder(alone)["sequence_output"])[0]
            start = sum(LENGTHS[:row])
            assert_close(actual, output[start : start + length], 1e-5, "alone")


def check_compiled(make_encoder, encoder):
    """One trace serves every shape; XLA gives the eager values and gradients."""
    traces = []
    names = ("token_ids", "segment_ids", "padding_mask")
    spec = {name: tf.TensorSpec((None, None), tf.int32) for name in names}

    @tf.function(input_signature=[spec])
    def dynamic(batch):
        traces.append(1)
        return encoder(batch)["sequence_output"]

    for lengths in ((7, 4, 0), (1,), (8, 2)):
        batch = batch_of(encoder, lengths, max(lengths))
        expected = encoder(batch)["sequence_output"]
        assert_close(dynamic(batch), expected, 1e-5, "tf.function")
    assert len(traces) == 1

    batch = {k: tf.constant(v) for k, v in batch_of(encoder).items()}
    compiled = tf.function(encoder, jit_compile=True)(batch)["sequence_output"]
    assert_close(compiled, encoder(batch)["sequence_output"], 1e-5, "XLA")

    # In float64, where rounding cannot pass for an error nor hide one: in float32
    # the gradients of weights that layers share are off by 2e-6, eager or compiled.
    exact = make_encoder(dtype="float64")
    exact.set_weights(encoder.get_weights())

    def run(batch):
        with tf.GradientTape() as tape:
            output = exact(batch)["sequence_output"]
            rates = tf.range(tf.size(output), delta=1)
            rates = tf.reshape(tf.sin(tf.cast(rates, "float64")), tf.shape(output))
            loss = tf.reduce_sum(output * rates)
        gradients = tape.gradient(
            loss, exact.trainable_variables, unconnected_gradients="zero"
        )
        return output, [tf.convert_to_tensor(g) for g in gradients]

    output, gradients = run(batch)
    compiled_output, compiled_gradients = tf.function(run, jit_compile=True)(batch)
    assert_close(compiled_output, output, 1e-11, "XLA, float64")
    gradients = flat(gradients)
    assert np.isfinite(gradients).all()
    assert_close(flat(compiled_gradients), gradients, 1e-11, "XLA, gradients")


def check_half_precision(make_encoder, encoder):
    """Close to float32 and finite, sequences without a real token included."""
    batch = batch_of(encoder)
    expected = np.asarray(encoder(batch)["sequence_output"])
    for dtype, tolerance in (("mixed_float16", 0.02), ("mixed_bfloat16", 0.1)):
        half = make_encoder(dtype=dtype)
        half.set_weights(encoder.get_weights())
        assert all(w.dtype == "float32" for w in half.weights)
        output = np.asarray(half(batch)["sequence_output"], "float32")
        assert np.isfinite(output).all(), dtype
        error = np.abs(output - expected).max()
        assert error <= tolerance * np.abs(expected).max(), (dtype, error)
