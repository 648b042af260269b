"""The rates of dropout in the recipes' settings are those of the encoder."""

import pytest

import tfeff
from tests.subjects.encoders import tiny
from tests.subjects.sentences import tokenizer
from tfeff.recipes import answering, finetuning, pretraining_model
from tfeff.recipes.answer_settings import AnswerSettings
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.pretrain_settings import PretrainSettings

RATES = dict(dropout=0.25, attention_dropout=0.125)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A preset with the rates 0.1 and 0.2."""
    path = tmp_path_factory.mktemp("presets") / "preset"
    changes = dict(vocabulary_size=60, dropout=0.1, attention_dropout=0.2)
    tfeff.tasks.save_pretrained(tiny("bert_base", **changes), tokenizer(), path)
    return str(path)


def rates_of(encoder):
    (rate,) = {block.attention.dropout for block in encoder.blocks}
    assert {block.dropout for block in encoder.blocks} == {encoder.embedding.dropout}
    return encoder.embedding.dropout, rate


@pytest.mark.parametrize(
    ("rates", "expected"), [({}, (0.1, 0.2)), (RATES, (0.25, 0.125))]
)
def test_of_a_pretrained_encoder(saved, rates, expected):
    settings = FinetuneSettings(
        run_dir="run", task="RTE", pretrained=saved, data="data", **rates
    )
    assert rates_of(finetuning.load_for_training(settings)[0]) == expected
    settings = AnswerSettings(
        run_dir="run",
        train="train.json",
        dev="dev.json",
        pretrained=saved,
        sequence_length=16,
        **rates,
    )
    assert rates_of(answering.make_model(settings, 0, {}).encoder) == expected
    settings = PretrainSettings(
        run_dir="run", pretrained=saved, sequence_length=16, warmup_steps=1, **rates
    )
    assert rates_of(pretraining_model.make_model(settings).encoder) == expected


@pytest.mark.parametrize(
    ("rates", "expected"),
    [({}, (0.1, 0.1)), (RATES, (0.25, 0.125)), (dict(dropout=0.0), (0.0, 0.0))],
)
def test_of_a_new_encoder(rates, expected):
    settings = PretrainSettings(
        run_dir="run",
        preset="bert_tiny",
        vocabulary_size=60,
        override=dict(num_layers=2, hidden_dim=8, num_heads=2),
        warmup_steps=1,
        **rates,
    )
    assert rates_of(pretraining_model.make_model(settings).encoder) == expected


@pytest.mark.parametrize("name", RATES)
def test_bad_rates_are_named(name):
    with pytest.raises(ValueError, match=f"`{name}` must be .*{name}=1.0"):
        PretrainSettings(run_dir="run", **{name: 1.0})


def test_what_is_recomputed(saved):
    recomputed = dict(memory_efficient="block")
    settings = FinetuneSettings(
        run_dir="run", task="RTE", pretrained=saved, data="data", **recomputed
    )
    assert finetuning.load_for_training(settings)[0].memory_efficient == "block"
    sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=16)
    for start in (dict(pretrained=saved), dict(preset="bert_tiny", override=sizes)):
        settings = PretrainSettings(
            run_dir="run", sequence_length=16, **start, **recomputed
        )
        encoder = pretraining_model.make_model(settings).encoder
        assert encoder.memory_efficient == "block"
