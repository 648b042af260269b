"""The papers' models by name: sizes, and the differences from BERT."""

import copy
from typing import Any

from tfeff.utils.citations import (
    ALBERT,
    BERT,
    BLOCKBERT,
    CONVBERT,
    DISTILBERT,
    HUANG,
    MINIATURES,
    SHATTER,
    TINYBERT,
)

_SIZES = {
    "tiny": dict(num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512),
    "small": dict(num_layers=4, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "base": dict(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072),
    "large": dict(num_layers=24, num_heads=16, hidden_dim=1024, intermediate_dim=4096),
}
_ALBERT_SIZES = {
    "base": _SIZES["base"],
    "large": _SIZES["large"],
    "xlarge": dict(num_layers=24, num_heads=16, hidden_dim=2048, intermediate_dim=8192),
    "xxlarge": dict(
        num_layers=12, num_heads=64, hidden_dim=4096, intermediate_dim=16384
    ),
}
_CONVBERT_SIZES: dict[str, dict[str, Any]] = {
    "small": dict(
        num_heads=4, hidden_dim=256, intermediate_dim=1024, embedding_dim=128
    ),
    "medium_small": dict(
        num_heads=8,
        hidden_dim=384,
        intermediate_dim=1536,
        embedding_dim=128,
        feedforward={"num_groups": 2},
    ),
    "base": dict(num_heads=12, hidden_dim=768, intermediate_dim=3072),
}


def _one_head(**arguments):
    return dict(attention={"name": "one_head", **arguments}, position="none")


def _relative(method, position="none", **arguments):
    attention = {"name": "relative", "method": method, **arguments}
    return dict(attention=attention, position=position)


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
    "bert_rpe": ("section 5", _relative("rpe", max_distance=127)),
    "bert_rab": ("section 5", _relative("bias", position="absolute")),
    # XLNet embeds segments like positions, relative to each other.
    "xlnet": (
        "section 5",
        _relative("xlnet", relative_segments=True)
        | dict(num_segments=0, embedding_layer_norm=False),
    ),
}
# Huang et al. drop the segment embedding.
_HUANG_MODELS = {
    "huang_absolute": ("section 3.2", {}),
    "shaw": ("section 3.3", _relative("shaw")),
    **{f"huang{n}": (f"section 3.5.{n}", _relative(f"huang{n}")) for n in (1, 2, 3, 4)},
}
# They have BERT's vocabulary, and the size that ends the name.
_OTHER_MODELS = {
    **{
        f"{model}_base": (f"{HUANG}, {section}", {**changes, "num_segments": 0})
        for model, (section, changes) in _HUANG_MODELS.items()
    },
    "blockbert_n2_base": (
        f"{BLOCKBERT}, section 4",
        dict(attention={"name": "blockwise", "head_blocks": "10:2"}),
    ),
    "blockbert_n3_base": (
        f"{BLOCKBERT}, section 4",
        dict(attention={"name": "blockwise", "head_blocks": "8:2:2"}),
    ),
    "sparsebert_base": (f"{BLOCKBERT}, section 4", dict(attention="sparse")),
}


# Students of BERT-base, named by their layers as in the paper.
_STUDENTS = {
    "tinybert_4": (
        f"{TINYBERT}, section 4.2",
        dict(num_layers=4, num_heads=12, hidden_dim=312, intermediate_dim=1200),
    ),
    "tinybert_6": (
        f"{TINYBERT}, section 4.2",
        dict(num_layers=6, num_heads=12, hidden_dim=768, intermediate_dim=3072),
    ),
    "distilbert_base": (
        f"{DISTILBERT}, section 3",
        dict(
            num_layers=6,
            num_heads=12,
            hidden_dim=768,
            intermediate_dim=3072,
            num_segments=0,
        ),
    ),
}


def _make_presets() -> dict[str, dict]:
    table = {}

    def add(name, source, **config):
        table[name] = dict(
            source=source, parameters=_PARAMETERS.get(name), config=config
        )

    for size, sizes in _SIZES.items():
        source = MINIATURES if size in ("tiny", "small") else BERT
        add(f"bert_{size}", source, vocabulary_size=30_522, **sizes)
    for model, (section, changes) in _SHATTER_MODELS.items():
        for size in _SIZES if model == "shatter" else ("base",):
            sizes = dict(_SIZES[size])
            if (model, size) == ("shatter", "tiny"):
                sizes["num_heads"] = 4  # Two parts would only be left and right.
            source = f"{SHATTER}, {section}"
            add(f"{model}_{size}", source, vocabulary_size=32_000, **sizes, **changes)
    for name, (source, changes) in _OTHER_MODELS.items():
        sizes = _SIZES[name.rpartition("_")[2]]
        add(name, source, **{"vocabulary_size": 30_522, **sizes, **changes})
    for size, others in _CONVBERT_SIZES.items():
        source = f"{CONVBERT}, section 4.1"
        shape = dict(vocabulary_size=30_522, num_layers=12)
        add(f"convbert_{size}", source, **shape, attention="mixed", **others)
    for size, sizes in _ALBERT_SIZES.items():
        add(
            f"albert_{size}",
            f"{ALBERT}, table 1",
            vocabulary_size=30_000,
            **sizes,
            embedding_dim=128,
            sharing="all",
            dropout=0.0,
        )
    for name, (source, config) in _STUDENTS.items():
        add(name, source, vocabulary_size=30_522, **config)
    return table


_PARAMETERS = {
    "bert_tiny": 4_369_408,
    "bert_small": 28_500_992,
    "bert_base": 108_891_648,
    "bert_large": 334_092_288,
    "no_position_base": 109_633_536,
    "part_mask_base": 109_633_536,
    "one_head_softmax_base": 102_546_432,
    "one_head_sigmoid_base": 102_546_432,
    "part_bias_base": 102_657_024,
    "shatter_tiny": 4_461_056,
    "shatter_small": 27_961_344,
    "shatter_base": 102_657_024,
    "shatter_large": 310_284_288,
    "bert_rpe_base": 111_983_616,
    "bert_rab_base": 110_027_136,
    "xlnet_base": 116_754_432,
    "huang_absolute_base": 108_890_112,
    "shaw_base": 117_924_864,
    "huang1_base": 108_570_624,
    "huang2_base": 108_644_208,
    "huang3_base": 117_924_864,
    "huang4_base": 117_924_864,
    "blockbert_n2_base": 108_891_648,
    "blockbert_n3_base": 108_891_648,
    "sparsebert_base": 108_891_648,
    "convbert_small": 13_143_768,
    "convbert_medium_small": 17_475_888,
    "convbert_base": 105_680_520,
    "albert_base": 11_092_992,
    "albert_large": 16_634_368,
    "albert_xlarge": 54_528_512,
    "albert_xxlarge": 205_814_272,
    "tinybert_4": 14_252_592,
    "tinybert_6": 66_364_416,
    "distilbert_base": 66_362_880,
}
_PRESETS = _make_presets()


def presets() -> dict[str, dict]:
    """The presets of `build`, with their sizes and sources.

    Returns:
        Dict from name to a dict with `source`, the paper; `parameters`, their number
        in the encoder; and `config`, the arguments of `tfeff.encoders.Encoder`.

    Example:

    >>> presets()["shatter_base"]["config"]["hidden_dim"]
    768
    """
    return copy.deepcopy(_PRESETS)
