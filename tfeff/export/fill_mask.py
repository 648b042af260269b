"""The signature of a masked language model: the likeliest pieces for masks."""

import tensorflow as tf

from tfeff.data.text.pieces import spelled_pieces
from tfeff.export.text_encoder import TextEncoder
from tfeff.objectives import MaskedLM, PermutationLM


def fill_mask_endpoint(
    model: MaskedLM | PermutationLM, text_encoder: TextEncoder, top_k: int
):
    """The function `fill_mask` of texts `[B]`."""
    pieces = spelled_pieces(text_encoder.tokenizer)
    words = tf.constant([piece.removeprefix(" ") for piece in pieces])

    def fill_mask(text):
        ids = text_encoder.with_masks(text)
        is_mask = ids == text_encoder.tokenizer.mask_token_id
        positions = tf.ragged.boolean_mask(tf.ragged.range(ids.row_lengths()), is_mask)
        inputs = text_encoder.inputs(ids)
        inputs["mask_positions"] = tf.cast(positions.to_tensor(), tf.int32)
        if "ranks" in model.input:
            # Each mask is predicted from what is no mask.
            masks = inputs["token_ids"] == text_encoder.tokenizer.mask_token_id
            inputs["ranks"] = tf.where(masks, 0, -1)
        logits = tf.cast(model(inputs, training=False), tf.float32)
        # The encoder may have rows for more ids than the tokenizer gives.
        known = tf.nn.softmax(logits)[..., : len(words)]
        probabilities, token_ids = tf.math.top_k(known, k=top_k)
        used = tf.sequence_mask(positions.row_lengths())[..., tf.newaxis]
        return {
            "fillings": tf.where(used, tf.gather(words, token_ids), ""),
            "token_ids": tf.where(used, token_ids, -1),
            "probabilities": tf.where(used, probabilities, 0.0),
        }

    return fill_mask
