"""The signature of a masked language model: the likeliest pieces for masks."""

import tensorflow as tf

from tfeff.data.text.flat import indices, row_ids
from tfeff.data.text.pieces import spelled_pieces
from tfeff.export.parts import (
    MOST_BYTES,
    TOKENS_AT_ONCE,
    by_parts,
    limit_cells,
    longest,
    size_of,
)
from tfeff.export.text_encoder import TextEncoder
from tfeff.objectives import MaskedLM, PermutationLM

_LOGITS_AT_ONCE = 2**24


def fill_mask_endpoint(
    model: MaskedLM | PermutationLM, text_encoder: TextEncoder, top_k: int
):
    """The function `fill_mask` of texts `[B]`."""
    words = [
        piece.removeprefix(" ") for piece in spelled_pieces(text_encoder.tokenizer)
    ]
    most_masks = MOST_BYTES // (top_k * (size_of(words) + 8))
    # The logits of one mask count as so many tokens.
    mask_size = model.encoder.vocabulary_size * TOKENS_AT_ONCE // _LOGITS_AT_ONCE
    # A text with more masks is read several times, for some of them each time.
    masks_at_once = max(1, _LOGITS_AT_ONCE // model.encoder.vocabulary_size)
    words = tf.constant(words)

    def best(ids, positions):
        inputs = text_encoder.inputs(ids)
        inputs["mask_positions"] = tf.cast(positions.to_tensor(), tf.int32)
        if "ranks" in model.input:
            # Each mask is predicted from the tokens that are no masks.
            masks = inputs["token_ids"] == text_encoder.tokenizer.mask_token_id
            inputs["ranks"] = tf.where(masks, 0, -1)
        logits = tf.cast(model(inputs, training=False), tf.float32)
        # The encoder may have rows for more ids than the tokenizer gives.
        known = tf.nn.softmax(logits)[..., : len(words)]
        used = tf.sequence_mask(positions.row_lengths())
        return [tf.boolean_mask(x, used) for x in tf.math.top_k(known, k=top_k)]

    def fill_mask(text):
        ids = text_encoder.with_masks(text)
        masks = indices(ids.flat_values == text_encoder.tokenizer.mask_token_id)
        row = tf.gather(row_ids(ids), masks)
        positions = tf.RaggedTensor.from_value_rowids(
            masks - tf.gather(ids.row_starts(), row), row, ids.nrows()
        )
        positions = limit_cells("masks", positions, most_masks)
        number = tf.range(tf.size(row, tf.int64)) - tf.gather(
            positions.row_starts(), row
        )
        is_first = number % masks_at_once == 0
        groups = positions.flat_values, tf.cumsum(tf.cast(is_first, tf.int64)) - 1
        rows = tf.boolean_mask(row, is_first)
        groups = tf.RaggedTensor.from_value_rowids(*groups, tf.size(rows, tf.int64))
        size = longest(groups) * mask_size
        size = tf.maximum(tf.cast(text_encoder.width(ids), tf.int64), size)
        probabilities, token_ids = (
            positions.with_flat_values(x)
            for x in by_parts(best, size, tf.gather(ids, rows), groups)
        )
        fillings = token_ids.with_flat_values(tf.gather(words, token_ids.flat_values))
        return {
            "fillings": fillings.to_tensor(""),
            "token_ids": token_ids.to_tensor(-1),
            "probabilities": probabilities.to_tensor(),
        }

    return fill_mask
