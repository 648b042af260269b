"""What every layer over [B, T, D] with a padding mask must hold to."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks.numeric import (
    assert_close,
    check_gradients,
    flat,
    variables_of,
)
from tests.checks.running import (
    check_dropout,
    check_half_precision,
    check_saving,
    check_xla,
)
from tests.checks.subject import MASKS, RAGGED, Subject
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.scored_attention import ScoredAttention


def check_equations(make_layer, reference, *, hidden_dim=8, variables=variables_of):
    """Values in float32 and float64 and gradients; arguments as `check_layer`."""
    _check_equations(Subject(make_layer, reference, hidden_dim, variables))


def _check_equations(subject):
    check_values(subject)
    check_float64(subject)
    check_layer_gradients(subject)


def check_layer(
    make_layer, reference, *, hidden_dim=8, variables=variables_of, dropout=True
):
    """`check_equations` and everything else a layer must hold to.

    Args:
        make_layer: makes a new layer from `dtype=` and, unless `dropout` is False,
            `dropout=`. Should set other arguments to values that are not defaults.
        reference: takes hidden [B, T, D], visible [B, T] and weights by name; gives
            `(output,)`, or `(output, scores)` of a layer that takes
            `return_attention_scores`.
        hidden_dim: D.
        variables: from a built layer to its weights by the reference's names.
        dropout: whether the layer has dropout of its own.
    """
    subject = Subject(make_layer, reference, hidden_dim, variables)
    _check_equations(subject)
    check_dynamic_shapes(subject)
    check_padding(subject)
    check_mask_types(subject)
    check_bad_input(subject)
    check_saving(subject)
    check_xla(subject)
    check_half_precision(subject)
    if dropout:
        check_dropout(subject)
    if isinstance(subject.layer(), ScoredAttention):
        check_query_blocks(subject)
        check_single_queries(subject)


def check_values(subject):
    """Float32, with each mask and with none, scores included."""
    layer = subject.layer()
    for name, visible in MASKS.items():
        hidden = subject.hidden(visible)
        expected = subject.expected(layer, hidden, visible)
        assert_close(layer(hidden, padding_mask=visible), expected[0], 1e-5, name)
        everything = np.ones_like(visible)
        unmasked = subject.expected(layer, hidden, everything)
        assert_close(layer(hidden), unmasked[0], 1e-5, f"{name}, no mask")
        if len(expected) == 2:
            output, scores = layer(
                hidden, padding_mask=visible, return_attention_scores=True
            )
            assert_close(output, expected[0], 1e-5, f"{name}, with scores")
            assert_close(scores, expected[1], 1e-5, f"{name}, scores")
            scores = np.moveaxis(np.asarray(scores), -1, 1)
            assert not scores[~visible].any(), f"{name}: padding has a score"
            bias = subject.variables(layer)["output/bias"]
            for row in np.flatnonzero(~visible.any(axis=1)):
                context = np.broadcast_to(bias, output[row].shape)
                assert_close(output[row], context, 1e-6, f"{name}, nothing visible")


def check_float64(subject):
    """To double precision, scores that saturate included."""
    layer = subject.layer(dtype="float64")
    hidden = subject.hidden(RAGGED, "float64")
    for scale in (1.0, 30.0):
        output = layer(scale * hidden, padding_mask=RAGGED)
        assert output.dtype == tf.float64
        expected = subject.expected(layer, scale * hidden, RAGGED)
        assert_close(output, expected[0], 1e-10, f"float64, inputs x {scale}")


def check_layer_gradients(subject):
    """In every weight and input, against the reference's finite differences."""
    layer = subject.layer(dtype="float64")
    visible = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], bool)
    check_gradients(
        lambda hidden: layer(hidden, padding_mask=visible),
        lambda arrays: subject.reference(arrays["hidden"], visible, arrays)[0],
        subject.variables(layer),
        {"hidden": subject.hidden(visible, "float64")},
    )


def check_dynamic_shapes(subject):
    """One traced function serves every batch size and length, 0 included."""
    layer = subject.layer()
    traces = []

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None, subject.hidden_dim), tf.float32),
            tf.TensorSpec((None, None), tf.bool),
        ]
    )
    def call(hidden, visible):
        traces.append(1)
        return layer(hidden, padding_mask=visible)

    for name, visible in MASKS.items():
        hidden = subject.hidden(visible)
        expected = subject.expected(layer, hidden, visible)[0]
        assert_close(call(hidden, visible), expected, 1e-5, f"dynamic, {name}")
    for batch, length in ((0, 5), (0, 0), (2, 0)):
        hidden = tf.zeros((batch, length, subject.hidden_dim))
        visible = tf.ones((batch, length), tf.bool)
        assert call(hidden, visible).shape == hidden.shape
        # Of 0 × 0, Keras' own einsum makes 1 × 0 in eager code.
        if batch or length:
            assert layer(hidden, padding_mask=visible).shape == hidden.shape
    assert len(traces) == 1


def check_padding(subject):
    """What stands in padding, and how much of it, changes nothing."""
    layer = subject.layer()
    hidden = subject.hidden(RAGGED)
    output = np.asarray(layer(hidden, padding_mask=RAGGED))

    garbage = np.where(RAGGED[..., None], hidden, np.float32(1e4))
    actual = np.asarray(layer(garbage, padding_mask=RAGGED))
    assert_close(actual[RAGGED], output[RAGGED], 1e-5, "garbage in padding")

    longer = np.pad(hidden, ((0, 0), (0, 3), (0, 0)), constant_values=1e4)
    mask = np.pad(RAGGED, ((0, 0), (0, 3)))
    actual = np.asarray(layer(longer, padding_mask=mask))[:, : RAGGED.shape[1]]
    assert_close(actual, output, 1e-5, "more padding")


def check_mask_types(subject):
    """Bool and integer masks say the same."""
    layer = subject.layer()
    hidden = subject.hidden(RAGGED)
    output = layer(hidden, padding_mask=RAGGED)
    for dtype in ("int32", "int64", "uint8"):
        actual = layer(hidden, padding_mask=RAGGED.astype(dtype))
        np.testing.assert_array_equal(actual, output, err_msg=dtype)


def check_bad_input(subject):
    """Errors name the argument, what it must be and what came."""
    layer = subject.layer()
    hidden = subject.hidden(RAGGED)
    named = r"(?s)`padding_mask` must .*Received: padding_mask"
    batch, length = RAGGED.shape
    for bad in (
        np.ones((length,), bool),
        np.ones((batch, length, 1), bool),
        np.ones((batch, length), "float32"),
        np.ones((batch, length + 1), bool),
        np.ones((batch + 1, length), bool),
    ):
        with pytest.raises((ValueError, TypeError), match=named):
            layer(hidden, padding_mask=bad)
    with pytest.raises((ValueError, TypeError), match=named):
        layer(
            keras.Input((5, subject.hidden_dim)),
            padding_mask=keras.Input((6,), dtype="bool"),
        )
    for bad in (hidden[0], hidden[..., None]):
        with pytest.raises(ValueError, match="(?s)`hidden` must .*Received: hidden"):
            subject.make_layer()(bad)


def check_query_blocks(subject):
    """Scores of two queries at a time give the same, dropout and gradients included."""
    hidden = tf.constant(subject.hidden(RAGGED, "float64"))

    def run(size):
        layer = subject.layer(dtype="float64", dropout=0.4, query_block_size=size)
        layer.dropout_layer.seed_generator.state.assign([3, 5])
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = layer(hidden, padding_mask=RAGGED, training=True)
            loss = tf.reduce_sum(tf.sin(output))
        return output, tape.gradient(loss, [hidden, *layer.trainable_variables])

    (output, gradients), (expected, expected_gradients) = run(2), run(None)
    assert_close(output, expected, 1e-11, "blocks of queries")
    assert_close(
        flat(gradients), flat(expected_gradients), 1e-11, "blocks of queries, gradients"
    )


def check_single_queries(subject):
    """Queries at a few positions, as in two streams, are those of all positions."""
    layer = subject.layer(dtype="float64")
    if not layer.any_mask:
        return
    hidden = tf.constant(subject.hidden(RAGGED, "float64"))
    positions = np.array([[3, 1]] * len(RAGGED), "int32")
    inputs = AttentionInputs(
        tf.gather(hidden, positions, batch_dims=1),
        hidden,
        visible=tf.constant(RAGGED),
        positions=tf.constant(positions),
    )
    output, scores = layer.attend(inputs, return_scores=True)
    expected = layer(hidden, padding_mask=RAGGED, return_attention_scores=True)
    what = "single queries"
    assert_close(output, tf.gather(expected[0], positions, batch_dims=1), 1e-11, what)
    expected_scores = tf.gather(expected[1], positions[0], axis=2)
    assert_close(scores, expected_scores, 1e-11, f"{what}, scores")
