"""Heads of a pretrained encoder switched off."""

from collections.abc import Mapping, Sequence

from tfeff.encoders.attentions import layer_specs
from tfeff.encoders.encoder import Encoder, check_encoder
from tfeff.layers.checks import check_disabled_heads
from tfeff.utils.checks import check_integer, check_mapping
from tfeff.utils.definitions import as_dict


def disable_heads(encoder: Encoder, heads: Mapping[int, Sequence[int]]) -> Encoder:
    """An encoder without some of its heads, with the weights of a given one.

    The outputs of these heads, or parts of a partition, are 0, in training and in
    inference. The encoder's configuration keeps that (`disabled_heads` of its
    attentions), and so do its presets and saved models.

    Args:
        encoder: a `tfeff.encoders.Encoder`, which is not changed.
        heads: from the index of a layer to the indices of all its heads that are
            switched off; none for a layer whose heads are to be on again. Other layers
            stay as they are. Of mixed attention, the heads of attention come first,
            then those of convolution.

    Returns:
        A new `Encoder`. The seeds of its dropout are new too.

    Raises:
        TypeError: if `encoder` is not an `Encoder`, `heads` is not a mapping, or an
            index is not an integer.
        ValueError: if there is no such layer or head, no head of a layer is left,
            layers that share an attention differ, or the encoder has adapters.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> smaller = disable_heads(encoder, {1: [0]})
    >>> smaller.blocks[1].attention.disabled_heads
    (0,)

    Reference:
        Saidov, "Optimized BERT modifications", "Motivation"; Michel et al., "Are
        sixteen heads really better than one?", section 2.3.
    """
    check_encoder("encoder", encoder)
    check_mapping("heads", heads, "layers to heads")
    attentions = [block.attention for block in encoder.blocks]
    disabled = [getattr(layer, "disabled_heads", ()) for layer in attentions]
    for index, off in heads.items():
        index = check_integer("heads", index, 0, len(attentions) - 1)
        num_heads = getattr(attentions[index], "output_heads", None)
        disabled[index] = check_disabled_heads(off, num_heads)
    for index, layer in enumerate(attentions):
        leader = next(i for i, other in enumerate(attentions) if other is layer)
        if disabled[leader] != disabled[index]:
            raise ValueError(
                "`heads` must be the same in layers that share an attention. "
                f"Received: {list(disabled[leader])} in layer {leader}, "
                f"{list(disabled[index])} in layer {index}"
            )
    config = encoder.get_config()
    specs = layer_specs(encoder.attention, len(attentions))
    config["attention"] = [_with_heads(*pair) for pair in zip(specs, disabled)]
    changed = type(encoder).from_config(config)
    if len(encoder.weights) != len(changed.weights):
        raise ValueError(
            "`encoder` must have the weights that its configuration says, without "
            f"adapters. Received: {len(encoder.weights)} weights, not "
            f"{len(changed.weights)}"
        )
    changed.set_weights(encoder.get_weights())
    return changed


def _with_heads(spec, disabled):
    """The specification of an attention with these heads switched off."""
    spec = as_dict(spec)
    spec.pop("disabled_heads", None)
    return spec | {"disabled_heads": list(disabled)} if disabled else spec
