"""Masked language models of the presets, which need Keras and nothing more.

The models of `tfeff.encoders` and `tfeff.objectives` stand on KerasHub, and that on
TensorFlow. These have the same blocks, weights and logits.
"""

import math

import keras
import numpy as np
from gpu_peers import PEERS
from keras import ops

from tfeff import layers
from tfeff.encoders import presets, register_attention
from tfeff.encoders.stack import apply_blocks, make_blocks
from tfeff.layers.initializer import bert_initializer

_BASE = "_base"
VARIANTS = (
    *(name.removesuffix(_BASE) for name in presets() if name.endswith(_BASE)),
    *PEERS,
)


def make_model(variant, inputs, num_layers, num_heads, hidden_dim, vocabulary_size):
    """A compiled masked language model on inputs of fixed shapes.

    `inputs` are like those of `make_batch`; the model gives logits
    `[B, M, vocabulary_size]`.
    """
    encoder, tokens = make_encoder(
        variant, inputs, num_layers, num_heads, hidden_dim, vocabulary_size
    )
    shape = inputs["mask_positions"].shape
    positions = keras.Input(batch_shape=shape, dtype="int32", name="mask_positions")
    logits = MaskedLMHead(tokens)(encoder.output, positions)
    model = keras.Model({**encoder.input, "mask_positions": positions}, logits)
    model.compile(
        keras.optimizers.AdamW(
            1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.optimizer.build(model.trainable_variables)
    return model


def make_encoder(variant, inputs, num_layers, num_heads, hidden_dim, vocabulary_size):
    """An encoder on inputs of fixed shapes, and the layer of its token table.

    Of `inputs` it takes those of every encoder; it gives hidden states `[B, T, D]`.
    """
    inputs = {
        name: keras.Input(batch_shape=inputs[name].shape, dtype="int32", name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    }
    max_length = max(512, inputs["token_ids"].shape[1])
    config = make_config(variant, num_heads) | {
        "num_layers": num_layers,
        "num_heads": num_heads,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
        "max_sequence_length": max_length,
        "dropout": 0.0,
    }
    embed = layers.EncoderEmbedding(
        vocabulary_size,
        hidden_dim,
        max_length,
        num_segments=config.pop("num_segments", 2),
        embedding_dim=config.pop("embedding_dim", None),
        position=config.pop("position", "absolute"),
        layer_norm=config.pop("embedding_layer_norm", True),
        embeddings_initializer=bert_initializer(),
    )
    hidden = apply_blocks(
        make_blocks(**config),
        embed(inputs["token_ids"], inputs["segment_ids"]),
        padding_mask=inputs["padding_mask"],
        segment_ids=inputs["segment_ids"],
    )[-1]
    return keras.Model(inputs, hidden), embed.token_embedding


def make_config(variant: str, num_heads: int) -> dict:
    """The configuration of the variant's preset, for another number of heads."""
    peer = variant in PEERS
    config = presets()["bert_base" if peer else variant + _BASE]["config"]
    del config["vocabulary_size"]
    if peer:
        register_attention(variant, PEERS[variant])
        config["attention"] = variant
    attention = config.get("attention")
    if isinstance(attention, dict) and "head_blocks" in attention:
        # Each shift but the first has its share of the heads, one at least.
        _, *shifted = map(int, attention["head_blocks"].split(":"))
        shifted = [max(1, n * num_heads // config["num_heads"]) for n in shifted]
        attention["head_blocks"] = [num_heads - sum(shifted), *shifted]
    return config


def make_batch(batch_size: int, length: int, vocabulary_size: int) -> tuple:
    """Inputs `[B, T]`, mask positions `[B, M]` and labels `[B, M]`, without padding.

    Tokens are drawn: equal ones would all meet in one row of the table's gradient.
    """
    rng = np.random.default_rng(0)
    shape = (batch_size, length)
    targets = math.ceil(0.15 * length)
    places = np.tile(np.arange(length, dtype="int32"), (batch_size, 1))
    inputs = {
        "token_ids": rng.integers(vocabulary_size, size=shape, dtype="int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
        "mask_positions": np.sort(rng.permuted(places, axis=1)[:, :targets]),
    }
    labels = rng.integers(vocabulary_size, size=(batch_size, targets), dtype="int32")
    return inputs, labels


class MaskedLMHead(keras.layers.Layer):
    """Dense, GELU, norm and the token table, at the masked positions."""

    def __init__(self, token_embedding, **kwargs):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding

    def build(self, hidden_shape, positions_shape):
        width = self.token_embedding.output_dim
        self.dense = keras.layers.Dense(width, activation="gelu")
        self.dense.build(hidden_shape)
        self.norm = keras.layers.LayerNormalization(epsilon=1e-12)
        self.norm.build((*hidden_shape[:-1], width))
        self.bias = self.add_weight(
            name="bias",
            shape=(self.token_embedding.input_dim,),
            initializer="zeros",
        )

    def call(self, hidden, positions):
        masked = ops.take_along_axis(hidden, positions[..., None], axis=1)
        masked = self.norm(self.dense(masked))
        return self.token_embedding(masked, reverse=True) + self.bias
