"""The papers' models by name: sizes, and what each changes against BERT."""

import difflib
import inspect

from tfeff.encoders.encoder import Encoder

_SIZES = {
    "tiny": dict(num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512),
    "small": dict(num_layers=4, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "base": dict(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072),
    "large": dict(num_layers=24, num_heads=16, hidden_dim=1024, intermediate_dim=4096),
}
_BERT = "Devlin et al., 2019, BERT"
_MINIATURES = "Turc et al., 2019, Well-read students learn better"
_SHATTER = "Tian et al., 2021, Shatter"


def _one_head(**arguments):
    return dict(attention={"name": "one_head", **arguments}, position="none")


# Shatter's models share one tokenizer of 32,000 pieces; BERT's has 30,522.
_SHATTER_MODELS = {
    "no_position": ("section 3", dict(attention="self", position="none")),
    "part_mask": ("section 3.1", dict(attention="partitioned", position="none")),
    "one_head_softmax": (
        "section 3.2",
        _one_head(normalizer="softmax", partition_bias=False, partition_value=False),
    ),
    "one_head_sigmoid": (
        "section 3.2",
        _one_head(partition_bias=False, partition_value=False),
    ),
    "part_bias": ("section 3.3", _one_head(partition_value=False)),
    "shatter": ("section 3.3", _one_head()),
}


def _make_presets() -> dict[str, dict]:
    table = {}
    for size, sizes in _SIZES.items():
        source = _MINIATURES if size in ("tiny", "small") else _BERT
        table[f"bert_{size}"] = dict(
            source=source, config=dict(vocabulary_size=30_522, **sizes)
        )
    for model, (section, changes) in _SHATTER_MODELS.items():
        for size in _SIZES if model == "shatter" else ("base",):
            config = dict(vocabulary_size=32_000, **_SIZES[size], **changes)
            if (model, size) == ("shatter", "tiny"):
                config["num_heads"] = 4  # Two parts would be mere left and right.
            table[f"{model}_{size}"] = dict(
                source=f"{_SHATTER}, {section}", config=config
            )
    return table


_PRESETS = _make_presets()


def presets() -> dict[str, dict]:
    """The presets of `build`, with their sizes and sources.

    Returns:
        Dict from name to a dict with `source`, the paper, and `config`, the
        arguments of `tfeff.encoders.Encoder`.

    Example:

    >>> presets()["shatter_base"]["config"]["hidden_dim"]
    768
    """
    return {
        name: dict(source=preset["source"], config=dict(preset["config"]))
        for name, preset in _PRESETS.items()
    }


def build(preset: str, **overrides) -> Encoder:
    """Makes an encoder of a published size and kind, with fresh weights.

    Args:
        preset: a name from `presets()`, such as `"shatter_base"`.
        **overrides: arguments of `tfeff.encoders.Encoder` that replace the
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
    if preset not in _PRESETS:
        raise ValueError(
            f"`preset` must be one of {sorted(_PRESETS)}. "
            f"Received: preset={preset!r}.{_hint(preset, _PRESETS)}"
        )
    known = set(inspect.signature(Encoder).parameters) - {"kwargs"}
    known |= {"name", "trainable"}
    for name in overrides:
        if name not in known:
            raise ValueError(
                f"Overrides must be arguments of `Encoder`: {sorted(known)}. "
                f"Received: {name}={overrides[name]!r}.{_hint(name, known)}"
            )
    return Encoder(**{**_PRESETS[preset]["config"], **overrides})


def _hint(name, choices) -> str:
    close = difflib.get_close_matches(str(name), choices, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
