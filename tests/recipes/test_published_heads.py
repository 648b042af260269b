"""Training that starts from a converted checkpoint, with the published heads."""

import shutil

import numpy as np
import pytest

import tfeff
from tests.convert.conversions import GOLDENS as ENCODERS
from tests.convert.conversions import HEAD_GOLDENS
from tfeff.recipes import FinetuneSettings, PretrainSettings
from tfeff.recipes.finetuning import make_model, pretrained_pooler
from tfeff.recipes.heads import read_pooler
from tfeff.recipes.pretraining_model import make_model as make_objective


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A published BERT: GELU by tanh, ε 1e-3, a pooler and both heads."""
    folder = tmp_path_factory.mktemp("published")
    source = shutil.copytree(HEAD_GOLDENS / "bert_pretraining", folder / "source")
    shutil.copy(ENCODERS / "bert" / "vocab.txt", source)
    tfeff.convert.convert(source, folder / "preset")
    return str(folder / "preset")


def pretrain_settings(preset, **changes):
    return PretrainSettings(
        run_dir="run", pretrained=preset, sequence_length=13, warmup_steps=0, **changes
    )


@pytest.mark.parametrize(
    ("objective", "kept", "new"),
    [
        ("masked_lm", "masked_lm", None),
        ("next_sentence", "pooler, next_sentence, masked_lm", None),
        ("sentence_order", "pooler, masked_lm", "sentence_order"),
    ],
)
def test_pretraining_goes_on_with_the_published_heads(
    preset, objective, kept, new, capsys
):
    model = make_objective(pretrain_settings(preset, objective=objective))
    said = capsys.readouterr().out
    assert f"its heads of {kept}" in said
    assert ("new heads of" in said) == (new is not None)
    assert new is None or f"with new heads of {new}\n" in said
    settings = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-3}
    assert model.head_settings == settings
    published, _ = tfeff.tasks.load_objective(preset, "next_sentence")
    expected = published.heads()
    for name in kept.split(", "):
        for key, weight in model.heads()[name].weights.items():
            np.testing.assert_array_equal(weight, expected[name].weights[key])
    assert model.optimizer is not None


def examples(names):
    return tfeff.data.TextExamples(("a", "b"), None, (0, 1), names, (0, 1))


def test_fine_tuning_begins_with_the_published_pooler(preset):
    def settings(**changes):
        return FinetuneSettings(
            run_dir="run", task="SST-2", data="glue", pretrained=preset, **changes
        )

    sst2 = tfeff.datasets.get("SST-2")
    pooler = pretrained_pooler(settings(), sst2)
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    model = make_model(examples(("no", "yes")), encoder, "cls", 0.1, pooler)
    published, _ = tfeff.tasks.load_objective(preset, "next_sentence")
    for one, other in zip(
        model.get_layer("pooler").weights,
        published.get_layer("pooler").weights,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert model.label_names == ("no", "yes")
    assert pretrained_pooler(settings(pooling="layerwise"), sst2) is None
    assert pretrained_pooler(settings(pretrained_steps=(3,)), sst2) is None
    assert read_pooler(f"{preset}@3") is None
    other = make_model(examples(("no", "yes")), encoder, "cls", 0.1)
    assert not np.array_equal(other.get_layer("pooler").kernel, pooler["kernel"])


def test_poolers_keep_their_activation_and_position(preset, tmp_path):
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    for pooling in ("cls", "last"):
        model = tfeff.tasks.Regressor(encoder, pooling, pooler_activation="gelu")
        tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / pooling)
    assert read_pooler(str(tmp_path / "last")) is None
    pooler = read_pooler(str(tmp_path / "cls"))
    made = make_model(examples(("no", "yes")), encoder, "cls", 0.1, pooler)
    assert made.pooler_activation == "gelu"
