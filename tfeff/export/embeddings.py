"""Signatures of an encoder: vectors of texts and of their tokens."""

import tensorflow as tf

from tfeff.encoders import Encoder
from tfeff.export.parts import (
    MOST_BYTES,
    by_parts,
    limit_cells,
    limit_rows,
    size_of,
)
from tfeff.export.text_encoder import TextEncoder
from tfeff.ops.pooling import visible_mean
from tfeff.tasks import SentenceEmbedding


def embedding_endpoints(encoder: Encoder, text_encoder: TextEncoder) -> dict:
    """The functions `sentence_embeddings` and `token_embeddings` of texts `[B]`."""
    pieces = text_encoder.tokenizer.get_vocabulary()
    # The answer has the vector, mask, id and piece of each token.
    most_tokens = MOST_BYTES // (4 * encoder.hidden_dim + 8 + size_of(pieces))
    pieces = tf.constant(pieces)

    def mean(inputs):
        own = tf.logical_not(text_encoder.is_special(inputs["token_ids"]))
        return visible_mean(_last_hidden_state(encoder, inputs), own)

    def token_embeddings(text):
        ids = text_encoder.plain(text)
        ids = limit_cells("tokens", ids, most_tokens, text_encoder.padded_length)
        inputs = text_encoder.inputs(ids)
        names, rows = inputs.keys(), inputs.values()
        embeddings = by_parts(
            lambda *rows: _last_hidden_state(encoder, dict(zip(names, rows))),
            text_encoder.width(ids),
            *rows,
        )
        return {
            "embeddings": embeddings,
            "mask": inputs["padding_mask"],
            "token_ids": inputs["token_ids"],
            "tokens": tf.gather(pieces, inputs["token_ids"]),
        }

    return {
        "sentence_embeddings": _sentence_function(mean, encoder, text_encoder),
        "token_embeddings": token_embeddings,
    }


def sentence_endpoint(model: SentenceEmbedding, text_encoder: TextEncoder) -> dict:
    """The function `sentence_embeddings` of texts `[B]`, by the model's own pooling."""

    def pooled(inputs):
        alone = {name: rows[:, tf.newaxis] for name, rows in inputs.items()}
        return tf.cast(model(alone, training=False)[:, 0], tf.float32)

    return {
        "sentence_embeddings": _sentence_function(pooled, model.encoder, text_encoder)
    }


def _sentence_function(embed, encoder, text_encoder):
    def sentence_embeddings(text):
        ids = text_encoder.plain(limit_rows(text, 4 * encoder.hidden_dim))
        embeddings = by_parts(
            lambda ids: embed(text_encoder.inputs(ids)), text_encoder.width(ids), ids
        )
        return {"embeddings": embeddings}

    return sentence_embeddings


def _last_hidden_state(encoder, inputs):
    outputs = encoder(inputs, training=False)
    return tf.cast(outputs["sequence_output"], tf.float32)
