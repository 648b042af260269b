"""The share of the learning rate that each layer of an encoder gets."""

from tfeff.encoders import Encoder


def rate_factors(encoder: Encoder, layer_decay: float) -> list[tuple]:
    """The factor of each weight of an encoder, the lower the smaller.

        embedding: d^(L + 2)        block l = 0 … L - 1: d^(L + 1 - l)

    so that the last block has `d²`, and the layers on top of the encoder have 1. A
    weight that several blocks share has the factor of the highest of them.

    Args:
        encoder: the encoder, with `L` blocks.
        layer_decay: float `d` in (0, 1].

    Returns:
        Pairs of a weight and its factor, each weight once.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> sorted({factor for _, factor in rate_factors(encoder, 0.5)})
    [0.0625, 0.125, 0.25]

    Reference:
        Clark et al., "ELECTRA", appendix B; Jiang et al., "ConvBERT", section 6.3 and
        Table 6.
    """
    power = {id(weight): encoder.num_layers + 2 for weight in encoder.weights}
    for index, block in enumerate(encoder.blocks):
        for weight in block.weights:
            power[id(weight)] = encoder.num_layers + 1 - index
    return [(weight, layer_decay ** power[id(weight)]) for weight in encoder.weights]
