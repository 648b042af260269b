"""Attentions that do the work of BERT's by other hands."""

import functools

import keras
from keras import ops

from tfeff import layers


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


class UnfusedAttention(layers.SelfAttention):
    """BERT's by tfeff's own kernels, whatever the backend has."""

    def fused_context(self, queries, keys):
        return None


PEERS = {
    "unfused_attention": UnfusedAttention,
    "keras_attention": KerasAttention,
    "jax_attention": functools.partial(JaxAttention, implementation="xla"),
    "cudnn_attention": functools.partial(JaxAttention, implementation="cudnn"),
}
