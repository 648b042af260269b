"""Encoders by preset."""

from typing import Any

from tfeff.encoders.encoder import Encoder
from tfeff.encoders.presets import presets
from tfeff.utils.checks import check_choice, known_keywords
from tfeff.utils.near_misses import near_miss


def build(preset: str, **overrides: Any) -> Encoder:
    """Makes an encoder by preset, with new weights.

    Args:
        preset: a name from `presets()`, such as `"shatter_base"`.
        **overrides: arguments of `tfeff.encoders.Encoder` that override the
            preset's, such as `vocabulary_size`, `num_layers` or `dtype`.

    Returns:
        A `tfeff.encoders.Encoder`.

    Raises:
        ValueError: if the preset or the name of an override is unknown.

    Example:

    >>> encoder = build("shatter_tiny", vocabulary_size=1000, num_layers=3)
    >>> encoder.num_layers, encoder.hidden_dim
    (3, 128)
    """
    table = presets()
    check_choice("preset", preset, sorted(table))
    check_overrides(overrides)
    return Encoder(**{**table[preset]["config"], **overrides})


def check_overrides(overrides: dict) -> None:
    """Raises unless all are arguments of `Encoder`: Keras ignores some others."""
    known = known_keywords(Encoder)
    for name in overrides:
        if name not in known:
            raise ValueError(
                f"`overrides` must be arguments of `Encoder`, {sorted(known)}. "
                f"Received: {name}={overrides[name]!r}.{near_miss(name, known)}"
            )
