"""Fine-tuning by adapters: `--lora_rank`, in what a run trains, keeps and exports."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.encoders.adapters import adapted_layers
from tfeff.recipes import AnswerSettings, FinetuneSettings, answer, finetune

SIZES = dict(vocabulary_size=60, num_layers=1, max_sequence_length=24, dropout=0.0)
SIZES |= dict(hidden_dim=16, intermediate_dim=16)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    path = tmp_path_factory.mktemp("pretrained") / "preset"
    encoder = tfeff.encoders.build("bert_tiny", **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), path)
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "SST-2").mkdir()
    rows = "".join(f"{t}\t{i % 2}\n" for i, t in enumerate(DOCUMENTS[:8]))
    for split in ("train", "dev"):
        (folder / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    return folder


def settings(run_dir, data, pretrained, **others):
    return FinetuneSettings(
        **{
            **dict(run_dir=str(run_dir), task="SST-2", data=str(data)),
            **dict(pretrained=pretrained, batch_sizes=4, steps=3, eval_every=2),
            **dict(learning_rates=(1e-2, 1e-1), lora_rank=2, save_lora=True),
            **others,
        }
    )


def frozen(pretrained):
    return tfeff.tasks.load_pretrained(pretrained)[0]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["default", "mirrored"])
def test_finetuning(strategy, data, pretrained, tmp_path):
    run_dir = tmp_path / "run"
    given = settings(run_dir, data, pretrained, strategy=strategy)
    summary = finetune(given)
    config = json.loads((run_dir / "config.json").read_text())
    assert (config["lora_rank"], config["save_lora"]) == (2, True)

    # What is kept is a model as of any fine-tuning, with the weights merged.
    model = tfeff.training.load_checkpoint(str(run_dir / "model.keras"))
    assert not adapted_layers(model)
    base, encoder = frozen(pretrained), frozen(str(run_dir))
    changed = [
        new.path
        for new, old in zip(encoder.weights, base.weights, strict=True)
        if (new.numpy() != old.numpy()).any()
    ]
    assert [path.split("attention/")[-1] for path in changed] == [
        *("query/kernel", "value/kernel")
    ]
    for one, other in zip(encoder.weights, model.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)

    # The adapters alone give it again.
    adapted = tfeff.tasks.Classifier(base, 2)
    tfeff.tasks.load_lora(adapted, str(run_dir / "lora.safetensors"))
    rows = tfeff.data.text_features(
        tfeff.datasets.get("SST-2").read("dev", str(data)), tokenizer(), 24
    )
    logits = adapted.predict(rows.inputs, verbose=0)
    merged = model.predict(rows.inputs, verbose=0)
    np.testing.assert_allclose(merged, logits, rtol=1e-5, atol=1e-5)
    served = tf.saved_model.load(str(run_dir / "export" / "1")).signatures["classify"]
    probabilities = served(tf.constant(DOCUMENTS[:8]))["probabilities"]
    np.testing.assert_allclose(probabilities, tf.nn.softmax(logits), atol=1e-5)

    # The scores are those of the model, and a start after a kill gives them again.
    accuracy = (merged.argmax(-1) == np.arange(8) % 2).mean()
    best = json.loads((run_dir / "metrics.json").read_text())["best"]
    assert best["mean"]["dev_accuracy"] == pytest.approx(accuracy)
    cells = sorted((run_dir / "cells").iterdir())
    (cells[0] / "metrics.json").unlink()
    (run_dir / "SHA256SUMS").unlink()
    assert finetune(given) == summary
    assert np.array_equal(
        tfeff.training.load_checkpoint(str(run_dir / "model.keras")).predict(
            rows.inputs, verbose=0
        ),
        merged,
    )


@pytest.mark.slow
def test_answering(pretrained, tmp_path):
    answers = [{"text": DOCUMENTS[0][:9], "answer_start": 0}]
    questions = [{"id": "q", "question": "What watched?", "answers": answers}]
    paragraphs = [{"context": DOCUMENTS[0], "qas": questions}]
    file = tmp_path / "squad.json"
    file.write_text(
        json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]})
    )
    squad = dataclasses.replace(
        tfeff.datasets.get("squad1"),
        scorer=lambda *_: {"f1": 0.5, "exact_match": 0.25},
    )
    run_dir = tmp_path / "run"
    given = AnswerSettings(
        run_dir=str(run_dir),
        task=squad.name,
        train=str(file),
        dev=str(file),
        pretrained=pretrained,
        sequence_length=24,
        stride=9,
        batch_sizes=1,
        learning_rates=1e-2,
        lora_rank=2,
        save_lora=True,
    )
    assert answer(given, squad)["f1"] == 0.5
    model = tfeff.training.load_checkpoint(str(run_dir / "model.keras"))
    adapted = tfeff.tasks.SpanQA(frozen(pretrained))
    tfeff.tasks.load_lora(adapted, run_dir / "lora.safetensors")
    batch = tfeff.data.text_features(
        tfeff.data.TextExamples(("What?",), (DOCUMENTS[0],), None, None, (0,)),
        tokenizer(),
        24,
    ).inputs
    for name, logits in adapted.predict(batch, verbose=0).items():
        np.testing.assert_allclose(
            model.predict(batch, verbose=0)[name], logits, rtol=1e-5, atol=1e-5
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The table of absolute positions grew")
def test_what_could_not_be_saved_is_refused_at_once(data, pretrained, tmp_path):
    run_dir = tmp_path / "run"
    with pytest.raises(ValueError, match="`save_lora` must be left out"):
        finetune(settings(run_dir, data, pretrained, lora_rank=None))
    encoder = frozen(pretrained)
    encoder.quantize("int8", filters="query|value")
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "int8")
    with pytest.raises(ValueError, match="adapters on quantized layers"):
        finetune(settings(run_dir, data, str(tmp_path / "int8")))
    convolutions = tfeff.encoders.build("bert_tiny", **SIZES, attention="dynamic_conv")
    tfeff.tasks.save_pretrained(convolutions, tokenizer(), tmp_path / "convolutions")
    with pytest.raises(ValueError, match="names of projections"):
        finetune(settings(run_dir, data, str(tmp_path / "convolutions")))
    absolute = tfeff.encoders.build("bert_tiny", **SIZES, position="absolute")
    tfeff.tasks.save_pretrained(absolute, tokenizer(), tmp_path / "absolute")
    for new in ({"swap_positions": "huang4"}, {"sequence_length": 30}):
        message = f"`lora_rank` must be left out.*{min(new)}="
        with pytest.raises(ValueError, match=message):
            finetune(settings(run_dir, data, str(tmp_path / "absolute"), **new))
    assert not run_dir.exists()
    with pytest.raises(ValueError, match="`lora_rank` must be .*lora_rank=0"):
        settings(run_dir, data, pretrained, lora_rank=0)
