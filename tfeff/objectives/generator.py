from fractions import Fraction
from typing import Any

from tfeff.encoders import Encoder
from tfeff.encoders.building import check_overrides
from tfeff.encoders.encoder import check_encoder
from tfeff.encoders.layer_states import FROZEN, QUANTIZED
from tfeff.layers.mixed_attention import MixedAttention
from tfeff.layers.partitioned import Partitioned
from tfeff.utils.checks import check_integer, check_number


def generator_for(encoder: Encoder, ratio: float = 1 / 4, **overrides: Any) -> Encoder:
    """A smaller encoder of the same kind, as the generator of replaced tokens.

    It has as many layers; hidden states and feed-forward networks are `ratio` times as
    wide. The number of heads is `ratio` times theirs, rounded down, at least one, so
    that heads keep their size where that is a whole number; none is switched off. Where
    an attention cannot have so many it is the next lower number, else the next higher
    one: mixed attention's is a multiple of its `head_ratio`, or one, that of parts on
    both sides of a position is even. Blockwise attention's heads are divided among its
    shifts as there, at least one for each. Its token, position and segment tables and
    the norm after them **are** those of `encoder`, trained and saved once, and frozen
    or quantized if they are so there; all else is new and trainable. A projection maps
    their width to its own.

    Args:
        encoder: the discriminator's `tfeff.encoders.Encoder`.
        ratio: float in (0, 1], such as 1/4 (ConvBERT small, medium-small; ELECTRA)
            or 1/3 (ConvBERT base; ELECTRA base).
        **overrides: arguments of `tfeff.encoders.Encoder` that replace those
            above, such as `num_heads`, or an `attention` for fewer heads.

    Returns:
        A `tfeff.encoders.Encoder`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if `ratio` is out of range or a width is not an integer, an
            override is no argument of `Encoder`, or there is no such encoder, for
            example a partition into an odd number of parts, or blockwise attention with
            fewer heads than shifts.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("convbert_small", vocabulary_size=100)
    >>> generator = generator_for(encoder)
    >>> generator.hidden_dim, generator.num_heads, generator.embedding_dim
    (64, 1, 128)
    >>> generator.token_embedding is encoder.token_embedding
    True

    Reference:
        Clark et al., "ELECTRA", section 3.2; Jiang et al., "ConvBERT", section 6.2
        and Table 5.
    """
    check_encoder("encoder", encoder)
    ratio = check_number("ratio", ratio, above=0, maximum=1)
    check_overrides(overrides)
    share = Fraction(ratio).limit_denominator(64)
    # These settings are about the trained layers.
    states = ("trainable", FROZEN, QUANTIZED)
    config = {k: v for k, v in encoder.get_config().items() if k not in states}
    config["name"] = f"{encoder.name}_generator"
    for name in ("hidden_dim", "intermediate_dim"):
        width = share * config[name]
        if (width.denominator != 1 or not width) and name not in overrides:
            raise ValueError(
                f"`ratio` must give a whole `{name}` of at least 1. "
                f"Received: ratio={ratio}, {name}={config[name]}"
            )
        config[name] = int(width)
    heads = max(1, int(share * config["num_heads"]))
    config["embedding_dim"] = encoder.embedding_dim
    if "attention" in overrides:
        config["num_heads"] = heads
    else:
        config["num_heads"] = _possible(heads, config["num_heads"], encoder)
        heads = overrides.get("num_heads", config["num_heads"])
        heads = check_integer("num_heads", heads)
        config["attention"] = _with_heads(config["attention"], heads)
    config |= overrides
    try:
        return type(encoder).from_config(config | {"tables_of": encoder})
    except ValueError as error:
        raise ValueError(
            "`ratio` and the overrides, such as `num_heads`, must give an encoder. "
            f"Received: ratio={ratio}, overrides={overrides!r:.200}. Of the "
            f"generator: {error}"
        ) from error


def _possible(heads, most, encoder):
    """The number of heads that all attentions of an encoder can have.

    The largest one up to `heads`, or else the smallest one up to `most`, its own; or
    `heads` where the attentions have been given another number than `most`.
    """
    units = [_unit(block.attention) for block in encoder.blocks]
    possible = (
        number
        for number in (*range(heads, 0, -1), *range(heads + 1, most + 1))
        if all(number == one or number % unit == 0 for unit, one in units)
    )
    return next(possible, heads)


def _unit(attention):
    """The divisor of an attention's number of heads, and a number exempt from it."""
    if isinstance(attention, MixedAttention):
        return attention.head_ratio, 1
    if isinstance(attention, Partitioned):
        layer = attention.partition_layer
        if layer.boundaries is None and layer.partition is None:
            return 2, None  # Half of them are on each side.
    return 1, None


def _with_heads(attention, heads):
    """Specifications of attentions as those of fewer heads, none of them disabled."""
    if isinstance(attention, (list, tuple)):
        return [_with_heads(spec, heads) for spec in attention]
    if not isinstance(attention, dict):
        return attention
    spec = {k: v for k, v in attention.items() if k != "disabled_heads"}
    if "head_blocks" in spec:
        spec["head_blocks"] = _fewer_blocks(spec["head_blocks"], heads)
    return spec


def _fewer_blocks(head_blocks, heads):
    """The numbers of heads of the shifts in proportion, at least one where any has."""
    if isinstance(head_blocks, str):
        head_blocks = head_blocks.split(":")
    elif isinstance(head_blocks[0], (list, tuple)):
        return head_blocks  # A permutation for each head.
    counts = [int(count) for count in head_blocks]
    fewer = [min(count, 1) for count in counts]
    for _ in range(heads - sum(fewer)):
        missing = [c * heads / sum(counts) - f for c, f in zip(counts, fewer)]
        fewer[missing.index(max(missing))] += 1
    return fewer
