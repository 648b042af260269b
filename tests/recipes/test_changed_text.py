"""Text and encoders that change between two starts of a run of pretraining."""

import json
import os
import shutil

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.recipes import PretrainSettings, pretrain
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
