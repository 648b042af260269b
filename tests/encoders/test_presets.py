"""Presets: their sizes, and the parameter counts that the papers print."""

import gc
import inspect
import math

import keras
import pytest

from tfeff.encoders import Encoder, build, presets


@pytest.fixture(autouse=True)
def _zeros(monkeypatch):
    """What is counted here need not be drawn, a hundred million numbers a model."""
    for module in ("encoder", "stack"):
        name = f"tfeff.encoders.{module}.bert_initializer"
        monkeypatch.setattr(name, keras.initializers.Zeros)
    yield
    gc.collect()  # Hundreds of megabytes a model would wait for the next collection.


def _counted(encoder) -> int:
    """Parameters as Table 1 counts them: kernels and tables of relative positions.

    No biases, norms, or tables of words, segments and absolute positions.
    """
    return sum(
        math.prod(weight.shape)
        for weight in encoder.weights
        if weight.name in ("kernel", "partition_embeddings")
        or weight.path.endswith("relative/embeddings")
    )


@pytest.mark.quick("shatter_base-78.0", "bert_rpe_base-87.3")
@pytest.mark.parametrize(
    ("preset", "millions"),
    [
        ("bert_base", 84.9),
        ("shatter_base", 78.0),
        ("bert_rpe_base", 87.3),
        ("bert_rab_base", 84.9),
        ("xlnet_base", 92.0),
    ],
)
def test_shatter_table_1_base(preset, millions):
    encoder = build(preset, vocabulary_size=10, max_sequence_length=4)
    assert round(_counted(encoder) / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("preset", "printed", "real"),
    [("bert_large", 151.0, 302.0), ("shatter_large", 138.6, 277.2)],
)
def test_shatter_table_1_large_rows_count_twelve_of_the_24_layers(
    preset, printed, real
):
    encoder = build(
        preset, vocabulary_size=10, max_sequence_length=4, num_layers=3, dropout=0.0
    )
    layers = presets()[preset]["config"]["num_layers"]
    per_layer = _counted(encoder) / 3 / 1e6
    assert layers == 24
    assert round(12 * per_layer, 1) == printed
    assert round(layers * per_layer, 1) == real


@pytest.mark.quick("small-13.14")
@pytest.mark.parametrize(
    ("preset", "millions"),
    [("small", 13.14), ("medium_small", 17.48), ("base", 105.68)],
)
def test_convbert_sizes(preset, millions):
    assert round(build(f"convbert_{preset}").count_params() / 1e6, 2) == millions


def _albert_millions(preset="albert_base", **changes) -> int:
    """As the survey counts: with the pooler, but where nothing is shared."""
    encoder = build(preset, **changes)
    width = encoder.hidden_dim
    pooler = 0 if encoder.sharing == "none" else width * width + width
    return round((encoder.count_params() + pooler) / 1e6)


@pytest.mark.parametrize(
    ("embedding_dim", "sharing", "millions"),
    [
        (128, "all", 12),
        (128, "attention", 64),
        (128, "feedforward", 38),
        (128, "none", 89),
        *[
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                (64, "all", 10),
                (256, "all", 16),
                (768, "all", 31),
                (64, "none", 87),
                (256, "none", 93),
                (768, "none", 108),
                (768, "attention", 83),
                (768, "feedforward", 57),
            )
        ],
    ],
)
def test_albert_table_of_sharing(embedding_dim, sharing, millions):
    changes = dict(embedding_dim=embedding_dim, sharing=sharing)
    assert _albert_millions(**changes) == millions


def test_albert_large():
    assert _albert_millions("albert_large") == 18


@pytest.mark.slow
@pytest.mark.parametrize(("size", "millions"), [("xlarge", 58.7), ("xxlarge", 222.6)])
def test_albert_sizes_that_the_paper_rounds_otherwise(size, millions):
    """The paper prints 60M and 235M, which its own sizes do not give."""
    encoder = build(f"albert_{size}")
    width = encoder.hidden_dim
    total = encoder.count_params() + width * width + width
    assert round(total / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("preset", "millions", "with_pooler"),
    [
        # The paper prints 14.5M, which its own sizes do not give.
        ("tinybert_4", 14.3, 14.4),
        pytest.param("tinybert_6", 66.4, 67.0, marks=pytest.mark.slow),
        pytest.param("distilbert_base", 66.4, None, marks=pytest.mark.slow),
    ],
)
def test_sizes_of_students(preset, millions, with_pooler):
    """TinyBERT is printed as 14.5M and 67.0M, DistilBERT, without a pooler, as 66M."""
    encoder = build(preset)
    count = encoder.count_params()
    assert round(count / 1e6, 1) == millions
    if with_pooler is not None:
        width = encoder.hidden_dim
        assert round((count + width * width + width) / 1e6, 1) == with_pooler
    assert encoder.num_segments == (0 if preset == "distilbert_base" else 2)


@pytest.mark.quick("shaw-9427968", "huang3-9427968")
@pytest.mark.parametrize(
    ("method", "entries"),
    [
        ("shaw", 12 * 12 * 1023 * 64),
        ("huang1", 12 * 12 * 512),
        ("huang2", 12 * 12 * 1023),
        ("huang3", 12 * 12 * 1023 * 64),
        ("huang4", 12 * 12 * 1023 * 64),
    ],
)
def test_huang_table_1(method, entries):
    encoder = build(f"{method}_base", vocabulary_size=10, intermediate_dim=8)
    tables = [w for w in encoder.weights if w.path.endswith("relative/embeddings")]
    assert len(tables) == 12
    assert sum(math.prod(table.shape) for table in tables) == entries


def test_huang_models_have_one_segment():
    """Section 3.2: the segment embedding is dropped, of the baseline, too."""
    models = ("huang_absolute", "shaw", "huang1", "huang2", "huang3", "huang4")
    bert = presets()["bert_base"]["config"]
    for model in models:
        config = presets()[f"{model}_base"]["config"]
        assert config.pop("num_segments") == 0
        assert (config.get("position") == "none") == (model != models[0])
        assert config == bert | {n: config[n] for n in config if n not in bert}
    absolute = presets()["huang_absolute_base"]["parameters"]
    assert presets()["bert_base"]["parameters"] - absolute == 2 * 768


def test_huang_presets_that_were_saved_with_two_segments_load(tmp_path):
    small = dict(num_layers=1, hidden_dim=24, intermediate_dim=8, vocabulary_size=7)
    encoder = build("huang4_base", **small, num_segments=2)
    encoder.save_to_preset(str(tmp_path / "preset"))
    loaded = Encoder.from_preset(str(tmp_path / "preset"))
    assert loaded.embedding.segment_embedding.embeddings.shape == (2, 24)
    for old, new in zip(encoder.weights, loaded.weights, strict=True):
        assert (old.numpy() == new.numpy()).all()


def test_every_preset_is_an_encoder_configuration():
    arguments = inspect.signature(Encoder).parameters
    for name, preset in presets().items():
        config = preset["config"]
        assert set(config) <= set(arguments), name
        assert preset["source"]
        width = 2 * config["num_heads"]
        small = dict(num_layers=1, hidden_dim=width, intermediate_dim=8)
        assert build(name, **small, vocabulary_size=7).num_layers == 1


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


@pytest.mark.parametrize(
    "name",
    [
        name
        if (preset["parameters"] or 0) < 5e7
        else pytest.param(name, marks=pytest.mark.slow)
        for name, preset in presets().items()
    ],
)
def test_parameters_are_those_of_the_table(name):
    counted = build(name).count_params()
    told = presets()[name]["parameters"]
    assert told == counted, f"_PARAMETERS must have {name!r}: {counted:_}"
