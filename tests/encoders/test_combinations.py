"""Combinations that no paper tried: trained, saved, loaded and exported."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close
from tests.checks.encoder import batch_of
from tests.subjects.encoders import TINY
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.encoders import build, register_attention
from tfeff.objectives import MaskedLM


@keras.saving.register_keras_serializable(package="tests")
class MeanAttention(keras.layers.Layer):
    """A user's own: every position gets the mean of the visible ones."""

    def call(self, hidden, padding_mask=None, training=None):
        visible = keras.ops.cast(padding_mask, hidden.dtype)[..., None]
        total = keras.ops.sum(hidden * visible, axis=1, keepdims=True)
        count = keras.ops.maximum(keras.ops.sum(visible, axis=1, keepdims=True), 1)
        return keras.ops.broadcast_to(total / count, keras.ops.shape(hidden))


register_attention("mean_of_tests", MeanAttention)


def relative(method, **arguments):
    return {"name": "relative", "method": method, **arguments}


BLOCKS = {"name": "blockwise", "head_blocks": "2:2"}
MIXED = {"name": "mixed", "kernel_size": 3}
COMBINATIONS = {
    "Shatter with grouped feed-forward": dict(
        attention="one_head", position="none", feedforward={"num_groups": 2}
    ),
    "Shatter shared, factorised": dict(
        attention="one_head", position="none", sharing="all", embedding_dim=6
    ),
    "mixed attention shared in groups": dict(
        attention=MIXED, num_layers=4, sharing="attention", sharing_group_size=2
    ),
    "method 4 on shared layers": dict(
        attention=relative("huang4", shared_heads=True), position="none", sharing="all"
    ),
    "T5's bias over blockwise and softmax layers": dict(
        attention=[relative("bias"), BLOCKS, relative("bias"), "self"], num_layers=4
    ),
    "Shatter below, convolution above": dict(
        attention=["one_head", {"name": "span_dynamic_conv", "kernel_size": 3}],
        feedforward={"activation": "gelu_tanh", "num_groups": 4},
    ),
    "XLNet's attention with absolute positions and segments": dict(
        attention=relative("xlnet", relative_segments=True, sinusoid="concatenated")
    ),
    "Shaw, shared feed-forward, factorised": dict(
        attention=relative("shaw"), sharing="feedforward", embedding_dim=6
    ),
    "sparse and lightweight": dict(
        attention=[
            {"name": "sparse", "stride": 3, "expressivity": 1},
            {"name": "lightweight_conv", "kernel_size": 3},
        ],
        feedforward={"activation": "relu"},
    ),
    "a user's attention beside partitioned and dynamic ones": dict(
        attention=[
            "mean_of_tests",
            "partitioned",
            {"name": "dynamic_conv", "kernel_size": 5},
        ],
        num_layers=3,
    ),
    "one head of softmax with hard buckets, no embedding norm": dict(
        attention={
            "name": "one_head",
            "normalizer": "softmax",
            "boundaries": [-2, 0, 3],
        },
        embedding_layer_norm=False,
        num_segments=0,
        position="none",
    ),
    "RPE and method 3 with a separable convolution": dict(
        attention=[
            relative("rpe"),
            {**MIXED, "convolution": "separable"},
            relative("huang3"),
        ],
        num_layers=3,
        layer_norm_epsilon=1e-6,
    ),
}


def examples(encoder, positions):
    batch = batch_of(encoder, lengths=(7, 4))
    labels = np.take_along_axis(batch["token_ids"], positions, axis=1)
    return batch | {"mask_positions": positions}, labels


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBINATIONS)
def test_fit_save_load_export(name, tmp_path):
    sizes = TINY | {"vocabulary_size": 60, "max_sequence_length": 40}
    encoder = build("bert_base", **sizes | COMBINATIONS[name])
    model = MaskedLM(encoder)
    model.compile(optimizer=keras.optimizers.Adam(1e-2))
    positions = np.array([[1, 5], [0, 2]], "int32")
    inputs, labels = examples(encoder, positions)
    data = tf.data.Dataset.from_tensors(
        (inputs, labels, np.ones_like(labels, "float32"))
    ).repeat(30)
    history = model.fit(data, epochs=2, verbose=0).history["loss"]
    assert history[1] < 0.6 * history[0], history

    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded(inputs), expected, 1e-5, "loaded")
    assert len(loaded.weights) == len(model.weights)
    encoder.save_to_preset(tmp_path / "preset")
    same = type(encoder).from_preset(str(tmp_path / "preset"))
    states = encoder(inputs)["sequence_output"]
    assert_close(same(inputs)["sequence_output"], states, 1e-5, "preset")

    tfeff.export.save_for_serving(model, tokenizer(), tmp_path / "export")
    served = tf.saved_model.load(tmp_path / "export").signatures
    tokens = served["token_embeddings"](text=tf.constant(DOCUMENTS[:2]))
    batch = {
        "token_ids": tokens["token_ids"],
        "segment_ids": tf.zeros_like(tokens["token_ids"]),
        "padding_mask": tokens["mask"],
    }
    visible = tokens["mask"].numpy().astype(bool)
    assert_close(
        tokens["embeddings"].numpy()[visible],
        np.asarray(encoder(batch)["sequence_output"])[visible],
        1e-5,
        "exported",
    )
    masked = served["fill_mask"](text=tf.constant(["The small [MASK] watched"]))
    assert masked["fillings"].shape == (1, 1, 5)
