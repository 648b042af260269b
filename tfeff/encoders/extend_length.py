"""Longer sequences for a pretrained encoder."""

import warnings
from typing import Any

import keras

from tfeff.encoders.encoder import Encoder, check_encoder
from tfeff.encoders.layer_states import QUANTIZED
from tfeff.layers import RelativeAttention
from tfeff.layers.initializer import bert_initializer
from tfeff.utils.checks import check_integer, check_seed
from tfeff.utils.definitions import as_dict


def extend_length(encoder: Encoder, max_sequence_length: int, seed: int = 0) -> Encoder:
    """An encoder for longer sequences, with the weights of a given one.

    A table of absolute positions gets further rows, initialised as in BERT: by a normal
    distribution of standard deviation 0.02, truncated at two deviations. They are
    untrained, so a `UserWarning` says how many they are. Tables of relative positions
    keep their size, also those that clipped nothing up to the old length: distances
    beyond it use the end rows. Sinusoids have no table. Up to the old length, the
    hidden states are exactly the same.

    Args:
        encoder: a `tfeff.encoders.Encoder`, which is not changed.
        max_sequence_length: integer, larger than the encoder's.
        seed: integer, for the values of new rows.

    Returns:
        A new `Encoder`. The seeds of its dropout are new too.

    Raises:
        TypeError: if `encoder` is not an `Encoder`, or a number is not an integer.
        ValueError: if `max_sequence_length` is not larger than the encoder's, or the
            encoder has adapters, is quantized, or has an attention with weights that
            depend on the length.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> extend_length(encoder, 1024).max_sequence_length
    1024

    Reference:
        Tian et al., "Shatter", section 5.2.2, and Huang et al., "Improve Transformer
        models with better relative position embeddings", sections 4.3 and 4.4, for
        pretraining at one length and fine-tuning at another.
    """
    check_encoder("encoder", encoder)
    old_length = encoder.max_sequence_length
    max_sequence_length = check_integer(
        "max_sequence_length", max_sequence_length, old_length + 1
    )
    seed = check_seed(seed)
    config = encoder.get_config()
    config["max_sequence_length"] = max_sequence_length
    config["attention"] = _with_fixed_distances(encoder)
    extended = type(encoder).from_config(config)
    has_table = encoder.position == "absolute"
    table: Any = None
    if has_table:
        table = extended.embedding.position_embedding.embeddings
    received = None
    if QUANTIZED in config:
        received = f"quantized layers {sorted(config[QUANTIZED])}"
    elif len(encoder.weights) != len(extended.weights):
        received = f"{len(encoder.weights)} weights, not {len(extended.weights)}"
    if received is not None:
        raise ValueError(
            "`encoder` must have the weights that its configuration says, without "
            f"adapters or quantization. Received: {received}. Extend the encoder "
            f"before it gets them, or keep sequences to {old_length} tokens"
        )
    # Weights are matched by order, since automatic names of a user's layers differ.
    for old, new in zip(encoder.weights, extended.weights):
        value = old.value
        if new is table:
            initializer = bert_initializer(seed)
            shape = (max_sequence_length - old_length, *new.shape[1:])
            value = keras.ops.concatenate([value, initializer(shape, new.dtype)])
        elif tuple(old.shape) != tuple(new.shape):
            raise ValueError(
                "`encoder` must have no weights that depend on the length but "
                f"absolute positions. Received: {old.path} of shape "
                f"{tuple(old.shape)}, which became {tuple(new.shape)}. Keep sequences "
                f"to {old_length} tokens, or choose another attention"
            )
        new.assign(value)
    if has_table:
        end = "." if table.trainable else ", and stay so: the embedding is frozen."
        warnings.warn(
            f"The table of absolute positions grew from {old_length} to "
            f"{max_sequence_length} rows. The new ones are freshly initialised{end}",
            stacklevel=2,
        )
    return extended


def _with_fixed_distances(encoder):
    """The attention's specification, in which no distance depends on the length."""

    def fixed(spec, layer):
        if as_dict(spec)["name"] != "relative" or not isinstance(
            layer, RelativeAttention
        ):
            return spec
        return {**spec, "max_distance": layer.max_distance}

    layers = [block.attention for block in encoder.blocks]
    if isinstance(encoder.attention, (list, tuple)):
        return [fixed(spec, layer) for spec, layer in zip(encoder.attention, layers)]
    return fixed(encoder.attention, layers[0])
