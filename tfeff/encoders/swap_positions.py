"""Replacement of a pretrained encoder's absolute positions by relative ones."""

import warnings

import keras

from tfeff.encoders.encoder import Encoder, check_encoder
from tfeff.encoders.layer_names import weight_names
from tfeff.encoders.layer_states import QUANTIZED
from tfeff.layers.relative_attention import METHODS
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.definitions import as_dict


def swap_positions(
    encoder: Encoder, method: str, max_distance: int | None = None
) -> Encoder:
    """Replaces absolute by relative positions and keeps all other weights.

    The new weights are initialised to have no effect, as zeros or as factors of one: at
    first, the result equals the given encoder without its absolute positions, up to
    rounding.
    Fine-tuning learns the relative positions. Sequences may have any length; tables
    reuse their end rows beyond their distance.

    Args:
        encoder: an encoder with absolute positions, learnt or sinusoids, and `"self"`
            attention, such as `load` returns for a BERT. It stays unchanged.
        method: a method of `tfeff.layers.RelativeAttention`: `"shaw"`, `"rpe"`,
            `"bias"`, `"huang1"` to `"huang4"` or `"xlnet"`.
        max_distance: integer, distance from which on all positions share a row.
            Default: `max_sequence_length - 1`, so that no distance seen in
            pretraining is clipped, as in the paper; for `"bias"` T5's 128; for
            `"xlnet"` no limit.

    Returns:
        A new `Encoder` with `position="none"`. What is frozen stays frozen: a
        `UserWarning` names the relative positions that cannot be learnt then.

    Raises:
        TypeError: if `encoder` is not an `Encoder`, or `max_distance` not an integer.
        ValueError: if it has other positions or another attention, or adapters, or is
            quantized; if `method` is unknown, or `max_distance` below 1.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> swapped = swap_positions(encoder, "huang4")
    >>> tuple(swapped.blocks[0].attention.relative_embedding.embeddings.shape)
    (1023, 2, 64)

    Reference:
        Huang et al., "Improve Transformer models with better relative position
        embeddings", section 4.4.
    """
    check_encoder("encoder", encoder)
    check_choice("method", method, METHODS)
    if encoder.position == "none":
        raise ValueError(
            "`encoder` must have absolute positions. "
            f"Received: encoder.position={encoder.position!r}"
        )
    if max_distance is not None:
        max_distance = check_integer("max_distance", max_distance)
    elif METHODS[method].index in ("signed", "distance"):  # A row for each distance.
        max_distance = max(encoder.max_sequence_length - 1, 1)
    config = encoder.get_config()
    if QUANTIZED in config:
        raise ValueError(
            "`encoder` must not be quantized: its positions can be swapped before. "
            f"Received: quantized layers {sorted(config[QUANTIZED])}"
        )
    specs = config["attention"]
    config["attention"] = (
        [_relative(spec, method, max_distance) for spec in specs]
        if isinstance(specs, (list, tuple))
        else _relative(specs, method, max_distance)
    )
    config["position"] = "none"
    swapped = type(encoder).from_config(config)
    _copy_weights(encoder, swapped, method)
    return swapped


def _relative(spec, method, max_distance):
    arguments = as_dict(spec)
    if arguments["name"] != "self":
        raise ValueError(
            "`encoder` must have the attention 'self' in every layer. "
            f"Received: encoder.attention={arguments['name']!r}"
        )
    return arguments | dict(name="relative", method=method, max_distance=max_distance)


def _copy_weights(encoder, swapped, method):
    neutral = keras.initializers.get(METHODS[method].neutral)
    kept = weight_names(encoder)
    frozen = []
    for name, weight in weight_names(swapped).items():
        if name in kept:
            weight.assign(kept.pop(name))
        else:
            weight.assign(neutral(weight.shape, weight.dtype))
            frozen += [name] * (not weight.trainable)
    if encoder.position == "absolute":
        table = encoder.embedding.position_embedding.embeddings
        kept = {name: weight for name, weight in kept.items() if weight is not table}
    if kept:
        raise ValueError(
            "`encoder` must have the weights that its configuration says, without "
            f"adapters or quantization. Received also: {sorted(kept)}"
        )
    if frozen:
        warnings.warn(
            "No training teaches the new positions of frozen layers: "
            + ", ".join(frozen),
            stacklevel=3,
        )
