"""Encoders and attentions of this library."""

import tensorflow as tf
from steps import TWO_STREAMS, two_streams

import tfeff
from peers.common import CLIP_NORM, HEADS, OPTIMIZER, Contender, compiled, count
from peers.keras3 import contender, exports, hidden_states

ATTENTIONS = {
    "self": tfeff.layers.SelfAttention,
    "mixed": tfeff.layers.MixedAttention,
}


def make(model, sizes, task, dtype, batch):
    """A preset in `tfeff.objectives.MaskedLM`, or an attention: `"mixed core"`.

    XLNet's two streams have the peers' head.
    """
    kind, _, part = model.partition(" ")
    if part:
        return _layer(kind, part, sizes, dtype, batch)
    encoder = build("xlnet_base" if model == TWO_STREAMS else model, sizes, dtype)
    make_model = two_streams if model == TWO_STREAMS else tfeff.objectives.MaskedLM
    optimizer = tfeff.training.AdamW(**OPTIMIZER, global_clipnorm=CLIP_NORM)
    return contender(encoder, make_model(encoder), optimizer, task, batch)


def exported(model, sizes, folder):
    """The ways to run an encoder of ours after an export."""
    return exports(
        lambda: hidden_states(build(model, sizes)),
        sizes,
        folder,
        tfeff.export.export_model,
    )


def build(model, sizes, dtype="float32"):
    """A preset of these sizes."""
    changes = {}
    if model.startswith("albert"):
        changes["feedforward"] = {"activation": "gelu_tanh"}  # As the peers'.
    return tfeff.encoders.build(
        model,
        vocabulary_size=sizes.vocabulary,
        num_layers=sizes.layers,
        hidden_dim=sizes.width,
        intermediate_dim=4 * sizes.width,
        max_sequence_length=max(512, sizes.length),
        dropout=sizes.dropout,
        dtype=dtype,
        **changes,
    )


def _merged(context):
    """`[B, T, D]`, which the context of mixed attention is already."""
    return context if len(context.shape) == 3 else tfeff.ops.merge_heads(context)


def _layer(kind, part, sizes, dtype, batch):
    """One attention of ours on hidden states, for inference.

    `part` is `"attention"`, the layer with its output projection; `"core"`, the layer
    without it, as ConvBERT's paper counts; or `"block"`, with all of an encoder block.
    """
    layer = ATTENTIONS[kind](HEADS, dtype=dtype)
    shape = (sizes.batch_size, sizes.length, sizes.width)
    if part == "block":
        network = tfeff.layers.FeedForward(4 * sizes.width, dtype=dtype)
        layer = tfeff.layers.EncoderBlock(layer, network, dtype=dtype)
    layer.build(shape)
    parameters = count(layer)
    if part == "core":
        parameters -= count(layer.output_dense)
        layer.project_output = _merged
    hidden = tf.cast(tf.random.stateless_normal(shape, (0, 0)), layer.compute_dtype)
    mask = tf.constant(batch["padding_mask"])

    def step(hidden, mask):
        return layer(hidden, padding_mask=mask, training=False)

    return Contender(parameters, compiled(step, hidden, mask))
