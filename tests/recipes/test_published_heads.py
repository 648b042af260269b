"""Training that starts from a converted checkpoint, with the published heads."""

import dataclasses
import shutil

import numpy as np
import pytest

import tfeff
from tests.convert.conversions import GOLDENS as ENCODERS
from tests.convert.conversions import HEAD_GOLDENS
from tfeff.recipes import FinetuneSettings, PretrainSettings
from tfeff.recipes.finetuning import pretrained_heads
from tfeff.recipes.heads import read_pooler, read_task_heads
from tfeff.recipes.pretraining_model import make_model as make_objective
from tfeff.recipes.task_model import head_arguments, make_model


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


@pytest.mark.quick("next_sentence-pooler, next_sentence, masked_lm-None")
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


def test_a_new_head_is_like_the_published_encoder(preset, tmp_path):
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    tfeff.tasks.save_pretrained(encoder, tokenizer, tmp_path / "alone")
    model = make_objective(pretrain_settings(str(tmp_path / "alone")))
    settings = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-3}
    assert model.head_settings == settings


def heads_to_begin_with(settings, dataset):
    examples = tfeff.data.TextExamples(("a", "b"), None, (0, 1))
    head = head_arguments(settings, dataset, examples)
    return pretrained_heads(settings, dataset, head)


def make_classifier(encoder, heads=None, **head):
    head = {"pooling": "cls", "label_names": ["no", "yes"], **head}
    return make_model(tfeff.tasks.Classifier, encoder, 0.1, head, heads)


def test_fine_tuning_begins_with_the_published_pooler(preset):
    def settings(**changes):
        return FinetuneSettings(
            run_dir="run", task="SST-2", data="glue", pretrained=preset, **changes
        )

    sst2 = tfeff.datasets.get("SST-2")
    initial_heads = heads_to_begin_with(settings(), sst2)
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    model = make_classifier(encoder, initial_heads)
    published, _ = tfeff.tasks.load_objective(preset, "next_sentence")
    for one, other in zip(
        model.get_layer("pooler").weights,
        published.get_layer("pooler").weights,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert model.label_names == ("no", "yes")
    assert heads_to_begin_with(settings(pooling="layerwise"), sst2) == {}
    assert heads_to_begin_with(settings(pretrained_steps=(3,)), sst2) == {}
    assert read_pooler(f"{preset}@3") is None
    other = make_classifier(encoder)
    kernel = initial_heads["pooler"]["kernel"]
    assert not np.array_equal(other.get_layer("pooler").kernel, kernel)


def test_poolers_keep_their_activation_and_position(preset, tmp_path):
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    for pooling in ("cls", "last"):
        model = tfeff.tasks.Regressor(encoder, pooling, pooler_activation="gelu")
        tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / pooling)
    assert read_pooler(str(tmp_path / "last")) is None
    pooler = read_pooler(str(tmp_path / "cls"))
    made = make_classifier(encoder, {"pooler": pooler})
    assert made.pooler_activation == "gelu"


@pytest.mark.quick("distilbert")
@pytest.mark.parametrize(
    ("family", "activation"),
    [("distilbert", "relu"), ("electra", "gelu"), ("convbert", "gelu")],
    ids=["distilbert", "electra", "convbert"],
)
def test_a_pooler_of_the_family_s_activation_is_written(family, activation, tmp_path):
    encoder = tfeff.convert.load(HEAD_GOLDENS / f"{family}_tokens")
    model = make_classifier(encoder)
    with pytest.raises(ValueError, match=f"`--pooler_activation={activation}` of"):
        tfeff.convert.to_huggingface(model, tmp_path / "out")
    model = make_classifier(encoder, pooler_activation=activation)
    written = tfeff.convert.to_huggingface(model, tmp_path / "out")
    assert written.model.endswith("ForSequenceClassification")
    assert written.model.lower().startswith(family)


def test_a_pooler_of_another_activation_is_new(preset, tmp_path):
    def initial_heads(pretrained, dataset, activation):
        settings = FinetuneSettings(
            run_dir="run",
            task="x",
            data="x",
            pretrained=str(pretrained),
            pooler_activation=activation,
        )
        return set(heads_to_begin_with(settings, dataset))

    sst2 = tfeff.datasets.get("SST-2")
    assert initial_heads(preset, sst2, "tanh") == {"pooler"}
    assert initial_heads(preset, sst2, "relu") == set()
    encoder, tokenizer = tfeff.tasks.load_pretrained(preset)
    task = tfeff.tasks.Classifier(
        encoder, 2, pooler_activation="relu", label_names=sst2.label_names
    )
    tfeff.tasks.save_pretrained(task, tokenizer, tmp_path / "task")
    for activation in (None, "relu"):
        assert initial_heads(tmp_path / "task", sst2, activation) == {
            "pooler",
            "logits",
        }
    assert initial_heads(tmp_path / "task", sst2, "tanh") == set()


def test_no_activation_without_a_pooler():
    with pytest.raises(ValueError, match="`pooler_activation` .*pooling='layerwise'"):
        FinetuneSettings(
            run_dir="run",
            task="x",
            data="x",
            pretrained="x",
            pooling="layerwise",
            pooler_activation="relu",
        )


def trained_heads(tmp_path, name, task, **changes):
    """The heads that fine-tuning begins with; the preset is of the golden `name`."""
    folder = tmp_path / name
    source = shutil.copytree(HEAD_GOLDENS / name, folder / "source")
    shutil.copy(ENCODERS / "bert" / "vocab.txt", source)
    tfeff.convert.convert(source, folder / "preset")
    settings = FinetuneSettings(
        run_dir="run", task="x", data="x", pretrained=str(folder / "preset"), **changes
    )
    return settings, heads_to_begin_with(settings, task)


@pytest.mark.quick("bert_tokens-TokenExamples")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bert_classifier", tfeff.data.TextExamples),
        ("bert_tokens", tfeff.data.TokenExamples),
    ],
)
def test_training_goes_on_with_the_heads_of_the_same_task(name, kind, tmp_path, capsys):
    published, _ = tfeff.convert.load_task(HEAD_GOLDENS / name)
    names = tuple(published.label_names)
    task = tfeff.datasets.Dataset(
        name="x", reader=len, scorer=len, writer=len, kind=kind, label_names=names
    )
    settings, initial_heads = trained_heads(tmp_path, name, task)
    kept = type(published).__name__
    line = f"the {kept} of {settings.pretrained} is trained on, with its heads\n"
    assert capsys.readouterr().out == line
    assert set(initial_heads) == set(published.heads())
    encoder, _ = tfeff.tasks.load_pretrained(settings.pretrained)
    head = head_arguments(settings, task, None)
    model = make_model(type(published), encoder, 0.1, head, initial_heads)
    assert model.label_names == names
    for name, head in published.heads().items():
        for key, weight in head.weights.items():
            np.testing.assert_array_equal(model.heads()[name].weights[key], weight)

    other = dataclasses.replace(task, label_names=names[::-1])
    assert "logits" not in str(list(heads_to_begin_with(settings, other)))
    assert "whose last layer is not used" in capsys.readouterr().out
    rated = tfeff.datasets.Dataset(
        name="x", reader=len, label_names=None, metric_names=("pearson",)
    )
    assert "logits" not in str(list(heads_to_begin_with(settings, rated)))
    assert f"has a {kept} of the labels {names[0]}, " in capsys.readouterr().out


def test_questions_go_on_with_the_published_head(tmp_path, capsys):
    source = shutil.copytree(HEAD_GOLDENS / "bert_questions", tmp_path / "source")
    shutil.copy(ENCODERS / "bert" / "vocab.txt", source)
    tfeff.convert.convert(source, tmp_path / "preset")
    published, _ = tfeff.convert.load_task(HEAD_GOLDENS / "bert_questions")
    heads = read_task_heads(str(tmp_path / "preset"), tfeff.tasks.SpanQA)
    (kernel,) = [a for n, a in heads["span_logits"].items() if n.endswith("kernel")]
    np.testing.assert_array_equal(kernel, published.head.dense.kernel)
    assert "is trained on, with its heads" in capsys.readouterr().out
    assert read_task_heads(f"{tmp_path / 'preset'}@3", tfeff.tasks.SpanQA) is None


def test_heads_of_pretraining_are_none_of_a_task(preset, capsys):
    assert read_task_heads(preset, tfeff.tasks.Classifier) is None
    assert not capsys.readouterr().out
