"""Text and encoders that change between two starts of a run of pretraining."""

import dataclasses
import json
import os
import shutil

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.objectives import registry
from tfeff.recipes import PretrainSettings, pretrain, pretraining, pretraining_model
from tfeff.tasks.run_tokenizer import save_run_tokenizer

SIZES = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=16)
SETTINGS = dict(
    run_dir="run",
    cache_dir="caches",
    preset="bert_tiny",
    override=SIZES,
    sequence_length=16,
    vocabulary_size=60,
    steps=2,
    eval_every=1,
    batch_size=4,
    learning_rate=0.05,
    warmup_steps=0,
)


class Crash(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise RuntimeError("crash")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_caches(documents, **options):
    shutil.rmtree("caches", ignore_errors=True)
    os.makedirs("caches")
    save_run_tokenizer(tokenizer(), "caches")
    for name in ("train", "validation"):
        tfeff.data.build_cache(
            documents, tokenizer(), f"caches/{name}", 16, progress=False, **options
        )


def start(*callbacks, **changes):
    return pretrain(PretrainSettings(**SETTINGS | changes), callbacks=callbacks)


@pytest.mark.slow
def test_caches_of_other_text_are_refused_once_the_training_has_begun(folder):
    write_caches(DOCUMENTS)
    with pytest.raises(RuntimeError, match="crash"):
        start(Crash())
    for options in ({"documents": DOCUMENTS[::-1]}, {"cross_documents": True}):
        write_caches(**{"documents": DOCUMENTS} | options)
        message = "run_dir='.*run', which has trained with other caches .train, valida"
        with pytest.raises(ValueError, match=message):
            start()
    write_caches(DOCUMENTS)
    (folder / "run/read_data.json").unlink()  # Runs of before have none.
    with pytest.raises(RuntimeError, match="crash"):
        start(Crash())
    note = json.loads((folder / "run/read_data.json").read_text())
    cache = tfeff.data.open_cache("caches/train", tokenizer())
    assert note["train"]["corpus_hash"] == cache.corpus_hash


def register(monkeypatch, **settings):
    """Registers an objective of a user's under one name, as another process does."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    examples = tfeff.data.MaskedTokens(**settings)
    objective = tfeff.objectives.PretrainingObjective(
        "own_masks", examples, tfeff.objectives.MaskedLM
    )
    return tfeff.objectives.register(objective)


@pytest.mark.slow
def test_other_examples_of_a_registered_objective_are_refused(folder, monkeypatch):
    write_caches(DOCUMENTS)
    with monkeypatch.context() as patch:
        register(patch, mask_rate=0.4, random_share=0.1)
        with pytest.raises(RuntimeError, match="crash"):
            start(Crash(), objective="own_masks")
    config = json.loads((folder / "run/config.json").read_text())
    assert config["mask_rate"] == 0.4
    with monkeypatch.context() as patch:
        register(patch, mask_rate=0.4, random_share=0.2)
        with pytest.raises(
            ValueError,
            match=r"examples of its objective .* trained with .*.random_share.: 0.1.*, "
            r"not with .*.random_share.: 0.2",
        ):
            start(objective="own_masks")
    register(monkeypatch, mask_rate=0.4, random_share=0.1)
    start(objective="own_masks")


def test_a_registered_objective_has_its_own_share_of_tokens_to_predict(monkeypatch):
    examples = register(monkeypatch, mask_rate=0.4).examples
    settings = PretrainSettings(run_dir="run", objective="own_masks")
    assert pretraining_model.objective(settings).examples == examples
    assert pretraining.settle(settings).config()["mask_rate"] == 0.4
    for name, rate in {"masked_lm": 0.15, "permutation_lm": 1 / 6}.items():
        of_tfeff = dataclasses.replace(settings, objective=name)
        assert pretraining.settle(of_tfeff).config()["mask_rate"] == rate
    alone = PretrainSettings(
        run_dir="run", objective="sentence_order", masked_lm=False, sequence_length=64
    )
    assert pretraining.settle(alone).mask_rate is None


class CrashAtOnce(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        raise RuntimeError("crash")


def write_preset(seed, tokenizer):
    sizes = SIZES | dict(vocabulary_size=60, max_sequence_length=16)
    keras.utils.set_random_seed(seed)
    encoder = tfeff.encoders.build("bert_tiny", **sizes)
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset", overwrite=seed > 0)


@pytest.mark.slow
def test_an_encoder_of_another_tokenizer_does_not_take_the_kept_one(folder):
    (folder / "text.txt").write_text("\n\n".join(DOCUMENTS))
    settings = dict(run_dir="run", corpus=("text.txt",), pretrained="preset")
    names = ("sequence_length", "steps", "eval_every", "batch_size", "warmup_steps")
    settings |= {name: SETTINGS[name] for name in names}
    settings |= dict(validation_fraction=0.2)
    other = tfeff.data.train_tokenizer([text[::-1] for text in DOCUMENTS], 60)
    for seed, given in enumerate((tokenizer(), tokenizer())):
        write_preset(seed, given)
        with pytest.raises(RuntimeError, match="crash"):
            pretrain(PretrainSettings(**settings), callbacks=[CrashAtOnce()])
    write_preset(2, other)
    with pytest.raises(ValueError, match="another one than pretrained='preset' has"):
        pretrain(PretrainSettings(**settings), callbacks=[CrashAtOnce()])


@pytest.mark.slow
def test_what_a_training_leaves_takes_the_place_of_an_earlier_ones(folder, capsys):
    write_caches(DOCUMENTS)
    start()
    shutil.rmtree("run/checkpoints")
    write_caches(DOCUMENTS[::-1])
    trained = start().encoder.get_weights()
    assert "run/preset was of another training" in capsys.readouterr().out
    kept, _ = tfeff.tasks.load_pretrained("run")
    for weight, other in zip(trained, kept.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, other)
    assert len(tfeff.export.versions("run/export")) == 2
    start()
    assert len(tfeff.export.versions("run/export")) == 2
