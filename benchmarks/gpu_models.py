"""Masked language models of `tfeff.layers` alone, which need Keras and nothing more.

The models of `tfeff.encoders` and `tfeff.objectives` stand on KerasHub, and that on
TensorFlow. These have the same blocks, weights and logits.
"""

import math

import keras
import numpy as np
from keras import ops

from tfeff import layers

PEERS = ("keras_attention", "jax_attention", "cudnn_attention")
VARIANTS = (
    "bert",
    *PEERS,
    *("shatter", "bert_rab", "bert_rpe", "xlnet", "shaw"),
    *("huang1", "huang2", "huang3", "huang4"),
    *("blockbert_n2", "blockbert_n3", "sparsebert", "convbert"),
    *("no_position", "part_mask", "one_head_softmax", "one_head_sigmoid", "part_bias"),
)
# The others know positions from their attention, or not at all.
ABSOLUTE = ("bert", "bert_rab", "blockbert_n2", "blockbert_n3", "sparsebert")
ABSOLUTE += ("convbert", *PEERS)


def make_model(variant, inputs, num_layers, num_heads, hidden_dim, vocabulary_size):
    """A compiled masked language model on inputs of fixed shapes.

    `inputs` are like those of `make_batch`; the model gives logits
    `[B, M, vocabulary_size]`.
    """
    inputs = {
        name: keras.Input(batch_shape=value.shape, dtype="int32", name=name)
        for name, value in inputs.items()
    }
    max_length = max(512, inputs["token_ids"].shape[1])
    xlnet = variant == "xlnet"  # embeds segments as it embeds positions
    embed = layers.EncoderEmbedding(
        vocabulary_size,
        hidden_dim,
        max_sequence_length=max_length,
        num_segments=0 if xlnet else 2,
        position="absolute" if variant in ABSOLUTE else "none",
        layer_norm=not xlnet,
        embeddings_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
    )
    hidden = embed(inputs["token_ids"], inputs["segment_ids"])
    attentions = make_attentions(variant, num_layers, num_heads, max_length)
    for index, attention in enumerate(attentions):
        block = layers.EncoderBlock(attention, layers.FeedForward(4 * hidden_dim))
        hidden = block(
            hidden,
            padding_mask=inputs["padding_mask"],
            segment_ids=inputs["segment_ids"],
            layer_index=index,
        )
    head = MaskedLMHead(embed.token_embedding)
    model = keras.Model(inputs, head(hidden, inputs["mask_positions"]))
    model.compile(
        keras.optimizers.AdamW(
            1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.optimizer.build(model.trainable_variables)
    return model


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


def make_attentions(variant, num_layers, num_heads, max_length) -> list:
    """The attention of each layer, as the preset of this name has it."""
    place = {"num_layers": num_layers}
    one_head = {"partition_bias": False, "partition_value": False, **place}
    softmax = {"normalizer": "softmax", **one_head}
    signed = {"max_distance": max_length - 1}
    sixth = max(1, num_heads // 6)
    # The one table of all layers, as in T5.
    table = layers.RelativeEmbedding(128, (num_heads,), index="t5", num_buckets=32)
    makers = {
        "bert": (layers.SelfAttention, {}),
        "keras_attention": (KerasAttention, {}),
        "jax_attention": (JaxAttention, {"implementation": "xla"}),
        "cudnn_attention": (JaxAttention, {"implementation": "cudnn"}),
        "no_position": (layers.SelfAttention, {}),
        "part_mask": (layers.PartitionedAttention, place),
        "one_head_softmax": (layers.OneHeadAttention, softmax),
        "one_head_sigmoid": (layers.OneHeadAttention, one_head),
        "part_bias": (layers.OneHeadAttention, {**one_head, "partition_bias": True}),
        "shatter": (layers.OneHeadAttention, place),
        "bert_rpe": (layers.RelativeAttention, {"method": "rpe"}),
        "bert_rab": (
            layers.RelativeAttention,
            {"method": "bias", "relative_embedding": table},
        ),
        "xlnet": (
            layers.RelativeAttention,
            {"method": "xlnet", "relative_segments": True},
        ),
        **{
            method: (layers.RelativeAttention, {"method": method, **signed})
            for method in ("shaw", "huang1", "huang2", "huang3", "huang4")
        },
        "blockbert_n2": (
            layers.BlockwiseAttention,
            {"head_blocks": (num_heads - sixth, sixth)},
        ),
        "blockbert_n3": (
            layers.BlockwiseAttention,
            {"head_blocks": (num_heads - 2 * sixth, sixth, sixth)},
        ),
        "sparsebert": (layers.SparseAttention, {}),
        "convbert": (layers.MixedAttention, {}),
    }
    make, arguments = makers[variant]
    return [make(num_heads, **arguments) for _ in range(num_layers)]


class MaskedLMHead(keras.layers.Layer):
    """Dense, GELU, norm and the token table, at the masked positions."""

    def __init__(self, token_embedding, **kwargs):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding

    def build(self, hidden_shape, positions_shape):
        width = hidden_shape[-1]
        self.dense = keras.layers.Dense(width, activation="gelu")
        self.dense.build(hidden_shape)
        self.norm = keras.layers.LayerNormalization(epsilon=1e-12)
        self.norm.build(hidden_shape)
        self.bias = self.add_weight(
            name="bias",
            shape=(self.token_embedding.input_dim,),
            initializer="zeros",
        )

    def call(self, hidden, positions):
        masked = ops.take_along_axis(hidden, positions[..., None], axis=1)
        masked = self.norm(self.dense(masked))
        return self.token_embedding(masked, reverse=True) + self.bias


class KerasAttention(keras.layers.Layer):
    """`keras.layers.MultiHeadAttention` as an attention of `EncoderBlock`."""

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, hidden_shape):
        self.attention = keras.layers.MultiHeadAttention(
            self.num_heads, hidden_shape[-1] // self.num_heads
        )
        self.attention.build(hidden_shape, hidden_shape)

    def call(self, hidden, padding_mask=None, training=None):
        mask = None if padding_mask is None else padding_mask[:, None, :]
        return self.attention(hidden, hidden, attention_mask=mask, training=training)


class JaxAttention(layers.SelfAttention):
    """`jax.nn.dot_product_attention` between BERT's projections.

    Padding must come last, and no sequence be all padding.
    """

    def __init__(self, num_heads, implementation, **kwargs):
        super().__init__(num_heads, **kwargs)
        self.implementation = implementation

    def call(self, hidden, padding_mask=None, training=None):
        import jax

        def heads(x):
            return ops.reshape(x, (*ops.shape(x)[:2], self.num_heads, -1))

        mixed = jax.nn.dot_product_attention(
            heads(self.query_dense(hidden)),
            heads(self.key_dense(hidden)),
            heads(self.value_dense(hidden)),
            key_value_seq_lengths=ops.sum(ops.cast(padding_mask, "int32"), axis=-1),
            implementation=self.implementation,
        )
        return self.output_dense(ops.reshape(mixed, ops.shape(hidden)))
