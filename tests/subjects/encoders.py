"""Tiny encoders of every preset."""

from tfeff.compat.layers import sublayers
from tfeff.encoders import build, presets

TINY = dict(
    vocabulary_size=19,
    num_layers=2,
    num_heads=4,
    hidden_dim=8,
    intermediate_dim=12,
    max_sequence_length=16,
    num_segments=3,
    dropout=0.0,
)
# Arguments of attention for 4 heads and 16 positions, not 12 and 128 as published.
SMALLER = {
    "bert_rpe_base": {"max_distance": 3},
    "bert_rab_base": {"num_buckets": 8, "max_distance": 5},
    "blockbert_n2_base": {"head_blocks": "3:1"},
    "blockbert_n3_base": {"head_blocks": "2:1:1"},
    "sparsebert_base": {"stride": 3, "expressivity": 1},
    "convbert_small": {"kernel_size": 3},
    "convbert_medium_small": {"kernel_size": 3},
    "convbert_base": {"kernel_size": 5},
}


def tiny(preset, **changes):
    """The preset at a tiny size, with the attention's own sizes reduced too."""
    config = presets()[preset]["config"]
    attention = config.get("attention", "self")
    if preset in SMALLER:
        named = attention if isinstance(attention, dict) else {"name": attention}
        attention = {**named, **SMALLER[preset]}
    sizes = TINY | {"num_segments": config.get("num_segments", 3)}
    if "embedding_dim" in config:
        sizes |= {"embedding_dim": 6}
    return build(preset, **sizes | {"attention": attention} | changes)


def quantize_only(model, name, mode):
    """Quantizes the layers of a name, as Keras' `filters` do from version 3.13 on."""
    for layer in sublayers(model):
        if layer.name == name:
            layer.quantize(mode)
