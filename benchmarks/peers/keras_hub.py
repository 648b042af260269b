"""KerasHub's BERT."""

import keras
import keras_hub

from peers.common import CLIP_NORM, HEADS, OPTIMIZER
from peers.keras3 import contender, exports, hidden_states


def make(model, sizes, task, dtype, batch):
    """KerasHub's BERT and masked LM head. (Its GELU is the one by tanh.)"""
    backbone = build(sizes, dtype)
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation="gelu",
        dtype=dtype,
    )
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    # Not through `backbone(...)`: its pooler is no part of the work.
    encoder = hidden_states(backbone)
    hidden = backbone.output["sequence_output"]
    inputs = {**backbone.input, "mask_positions": positions}
    model = keras.Model(inputs, head(hidden, positions))
    optimizer = keras.optimizers.AdamW(**OPTIMIZER, global_clipnorm=CLIP_NORM)
    return contender(encoder, model, optimizer, task, batch)


def exported(model, sizes, folder):
    """The ways to run KerasHub's BERT after an export."""
    return exports(lambda: hidden_states(build(sizes)), sizes, folder)


def build(sizes, dtype="float32"):
    """KerasHub's BERT of these sizes."""
    return keras_hub.models.BertBackbone(
        vocabulary_size=sizes.vocabulary,
        num_layers=sizes.layers,
        num_heads=HEADS,
        hidden_dim=sizes.width,
        intermediate_dim=4 * sizes.width,
        max_sequence_length=max(512, sizes.length),
        dropout=sizes.dropout,
        dtype=dtype,
    )
