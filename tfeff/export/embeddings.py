"""Signatures of an encoder: vectors of texts and of their tokens."""

import tensorflow as tf

from tfeff.encoders import Encoder
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import SentenceEmbedding


def embedding_endpoints(encoder: Encoder, text_encoder: TextEncoder) -> dict:
    """The functions `sentence_embeddings` and `token_embeddings` of texts `[B]`."""
    pieces = tf.constant(text_encoder.tokenizer.get_vocabulary())

    def sentence_embeddings(text):
        inputs = text_encoder.inputs(text_encoder.plain(text))
        hidden = _last_hidden_state(encoder, inputs)
        own = tf.logical_not(text_encoder.is_special(inputs["token_ids"]))
        own = tf.cast(own, tf.float32)[..., tf.newaxis]
        total = tf.reduce_sum(hidden * own, axis=1)
        return {"embeddings": tf.math.divide_no_nan(total, tf.reduce_sum(own, axis=1))}

    def token_embeddings(text):
        inputs = text_encoder.inputs(text_encoder.plain(text))
        return {
            "embeddings": _last_hidden_state(encoder, inputs),
            "mask": inputs["padding_mask"],
            "token_ids": inputs["token_ids"],
            "tokens": tf.gather(pieces, inputs["token_ids"]),
        }

    return {
        "sentence_embeddings": sentence_embeddings,
        "token_embeddings": token_embeddings,
    }


def sentence_endpoint(model: SentenceEmbedding, text_encoder: TextEncoder) -> dict:
    """The function `sentence_embeddings` of texts `[B]`, by the model's own pooling."""

    def sentence_embeddings(text):
        inputs = text_encoder.inputs(text_encoder.plain(text))
        alone = {name: rows[:, tf.newaxis] for name, rows in inputs.items()}
        embeddings = model(alone, training=False)[:, 0]
        return {"embeddings": tf.cast(embeddings, tf.float32)}

    return {"sentence_embeddings": sentence_embeddings}


def _last_hidden_state(encoder, inputs):
    outputs = encoder(inputs, training=False)
    return tf.cast(outputs["sequence_output"], tf.float32)
