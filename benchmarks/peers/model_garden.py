"""Encoders of TensorFlow Model Garden, which run on tf_keras."""

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks
from steps import TWO_STREAMS

from peers.common import (
    CLIP_NORM,
    HEADS,
    OPTIMIZER,
    Contender,
    compiled,
    count,
    target_rows,
    tensors,
    visible_pairs,
)


def make(model, sizes, task, dtype, batch):
    """An encoder of TensorFlow Model Garden, which runs on tf_keras."""
    previous = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(dtype)
    try:
        encoder, encode, table = _encoder(model, sizes)
        inputs, labels = tensors(batch)
        two_streams = model == TWO_STREAMS
        if two_streams:
            inputs["visible_pairs"] = tf.constant(visible_pairs(batch))
            inputs["target_rows"] = tf.constant(target_rows(batch), "float32")
        encode(inputs)  # Makes the weights.

        class MaskedLM(tf_keras.Model):
            def __init__(self):
                super().__init__()
                self.encoder = encoder
                self.head = layers.MaskedLM(
                    table(), activation=tf_keras.activations.gelu
                )

            def call(self, inputs):
                positions = inputs["mask_positions"]
                if two_streams:  # The states are those of the targets already.
                    positions = tf.cumsum(tf.ones_like(positions), 1, exclusive=True)
                logits = self.head(encode(inputs), positions)
                return tf_keras.backend.cast(logits, "float32")

        if task == "inference":
            return Contender(count(encoder), compiled(encode, inputs))
        model = MaskedLM()
        model(inputs)
        model.compile(
            tf_keras.optimizers.AdamW(**OPTIMIZER, global_clipnorm=CLIP_NORM),
            tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.optimizer.build(model.trainable_variables)

        def step(*data):
            return model.train_step(data)["loss"]

        return Contender(count(model), compiled(step, inputs, labels))
    finally:
        tf_keras.mixed_precision.set_global_policy(previous)


def _encoder(model, sizes):
    """The encoder, a function from inputs to hidden states, and one to its table.

    Poolers are no part of the work.
    """
    gelu = tf_keras.activations.gelu  # Model Garden's own is the one by tanh.
    shared = dict(
        vocab_size=sizes.vocabulary,
        num_layers=sizes.layers,
        hidden_size=sizes.width,
        num_attention_heads=HEADS,
        dropout_rate=sizes.dropout,
        attention_dropout_rate=sizes.dropout,
    )
    if model.startswith("xlnet"):
        encoder = networks.XLNetBase(
            **shared,
            head_size=sizes.width // HEADS,
            inner_size=4 * sizes.width,
            attention_type="bi",
            bi_data=False,
            initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02),
            tie_attention_biases=False,
            inner_activation=gelu,
            two_stream=model == TWO_STREAMS,
        )

        def encode(inputs):
            return encoder(
                inputs["token_ids"],
                segment_ids=inputs["segment_ids"],
                input_mask=inputs["padding_mask"],
                permutation_mask=inputs.get("visible_pairs"),
                target_mapping=inputs.get("target_rows"),
                masked_tokens=inputs.get("target_rows"),
            )[0]

        return encoder, encode, encoder.get_embedding_lookup_table
    shared |= dict(
        intermediate_size=4 * sizes.width,
        max_sequence_length=max(512, sizes.length),
        type_vocab_size=2,
    )
    if model == "albert":  # Its GELU is the one by tanh.
        encoder = networks.AlbertEncoder(
            **shared, embedding_width=128, dict_outputs=True
        )
        encoder.get_layer("pooler_transform").trainable = False
    else:
        encoder = networks.BertEncoderV2(**shared, activation=gelu)
        encoder.pooler_layer.trainable = False

    def encode(inputs):
        words = {
            "input_word_ids": inputs["token_ids"],
            "input_mask": inputs["padding_mask"],
            "input_type_ids": inputs["segment_ids"],
        }
        return encoder(words)["sequence_output"]

    return encoder, encode, encoder.get_embedding_table
