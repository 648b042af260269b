"""Presets: their sizes, and the parameter counts that the Shatter paper prints."""

import inspect

import pytest

from tfeff.encoders import Encoder, build, presets


def _counted(encoder) -> int:
    """Parameters as Table 1 counts them: kernels and partition embeddings.

    No biases, norms, or tables of words, segments and absolute positions.
    """
    return sum(
        int(weight.shape[0]) * int(weight.shape[1])
        for weight in encoder.weights
        if weight.name in ("kernel", "partition_embeddings")
    )


@pytest.mark.parametrize(
    ("preset", "millions"), [("bert_base", 84.9), ("shatter_base", 78.0)]
)
def test_table_1_base(preset, millions):
    encoder = build(preset, vocabulary_size=10, max_sequence_length=4)
    assert round(_counted(encoder) / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("preset", "printed", "real"),
    [("bert_large", 151.0, 302.0), ("shatter_large", 138.6, 277.2)],
)
def test_table_1_large_rows_count_twelve_of_the_24_layers(preset, printed, real):
    encoder = build(
        preset, vocabulary_size=10, max_sequence_length=4, num_layers=3, dropout=0.0
    )
    layers = presets()[preset]["config"]["num_layers"]
    per_layer = _counted(encoder) / 3 / 1e6
    assert layers == 24
    assert round(12 * per_layer, 1) == printed
    assert round(layers * per_layer, 1) == real


def test_every_preset_is_an_encoder_configuration():
    arguments = inspect.signature(Encoder).parameters
    for name, preset in presets().items():
        assert set(preset["config"]) <= set(arguments), name
        assert preset["source"]
        small = dict(num_layers=1, hidden_dim=16, intermediate_dim=8)
        heads = 2 if preset["config"]["num_heads"] == 2 else 4
        assert build(name, **small, num_heads=heads, vocabulary_size=7).num_layers == 1


@pytest.mark.parametrize("kind", ["bert", "shatter"])
@pytest.mark.parametrize(
    ("size", "layers", "width"),
    [("tiny", 2, 128), ("small", 4, 512), ("base", 12, 768), ("large", 24, 1024)],
)
def test_sizes(kind, size, layers, width):
    config = presets()[f"{kind}_{size}"]["config"]
    assert (config["num_layers"], config["hidden_dim"]) == (layers, width)
    assert config["intermediate_dim"] == 4 * width
    if size in ("base", "large"):
        assert config["num_heads"] == width // 64


def test_variants_differ_from_bert_as_the_paper_says():
    configs = {name: preset["config"] for name, preset in presets().items()}
    assert "position" not in configs["bert_base"]
    for name in ("no_position", "part_mask", "one_head_softmax", "shatter"):
        assert configs[f"{name}_base"]["position"] == "none"
    assert configs["shatter_base"]["attention"] == {"name": "one_head"}
    assert configs["part_mask_base"]["attention"] == "partitioned"


def test_a_caller_cannot_change_the_presets():
    presets()["bert_base"]["config"]["num_layers"] = 1
    assert presets()["bert_base"]["config"]["num_layers"] == 12


def test_unknown_names_are_errors_with_a_hint():
    with pytest.raises(ValueError, match="'shater_base'.*'shatter_base'"):
        build("shater_base")
    with pytest.raises(ValueError, match="num_layer=3.*'num_layers'"):
        build("bert_tiny", num_layer=3)
