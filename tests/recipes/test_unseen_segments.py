"""Segments that pretraining never showed begin as segment 0."""

import dataclasses
import json

import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.objectives import registry
from tfeff.recipes import DistillSettings, FinetuneSettings, finetune
from tfeff.recipes.distilling_task_models import make_models
from tfeff.recipes.finetuning import load_encoder
from tfeff.recipes.unseen_segments import (
    check_segments,
    has_unseen_segments,
)


def make_encoder(**kwargs):
    return tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=16,
        **kwargs,
    )


def settings(folder, **others):
    values = dict(
        run_dir=str(folder / "run"),
        task="STS-B",
        data=str(folder),
        pretrained=str(folder / "mlm"),
        batch_sizes=(4,),
        steps=2,
    )
    return FinetuneSettings(**values | others)


@pytest.fixture
def folder(tmp_path):
    """What a pretraining leaves, as far as fine-tuning reads it, and rated pairs."""
    (tmp_path / "mlm").mkdir()
    tfeff.tasks.save_pretrained(make_encoder(), tokenizer(), tmp_path / "mlm/preset")
    for task, text in (
        ("STS-B", "sentence1\tsentence2\tscore\nit was it\ta cat\t2\na cat\tit\t3"),
        ("SST-2", f"sentence\tlabel\n{DOCUMENTS[0]}\t1\n{DOCUMENTS[1]}\t0"),
    ):
        (tmp_path / task).mkdir()
        for split in ("train", "dev"):
            (tmp_path / task / f"{split}.tsv").write_text(text)
    return tmp_path


def test_are_those_of_runs_that_showed_one_segment(folder, monkeypatch):
    run = folder / "mlm"
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    masked = registry.get("masked_lm")
    for name, count in (("one", 1), ("two", 2), ("unsaid", None)):
        own = dataclasses.replace(masked, name=name, num_segments=count)
        tfeff.objectives.register(own)
    for config, expected in (
        ({"objective": "one"}, True),
        ({"objective": "two"}, False),
        ({"objective": "unsaid"}, False),
        ({"objective": "not registered here"}, False),
        ({"objective": "masked_lm", "pretrained": None}, True),
        ({"objective": "replaced_token"}, True),
        ({"objective": "sentence_order"}, False),
        ({"objective": "masked_lm", "pretrained": "bert"}, False),
        ({"task": "RTE"}, False),
        ({"stage": "general", "copy_layers": False}, True),
        ({"stage": "general", "copy_layers": True}, False),
        ({"stage": "task"}, False),
    ):
        (run / "config.json").write_text(json.dumps(config))
        assert has_unseen_segments(str(run)) is expected
        assert has_unseen_segments(f"{run}@20") is expected
    (run / "config.json").unlink()
    assert not has_unseen_segments(str(run))
    assert not has_unseen_segments(str(run / "preset"))


@pytest.mark.quick("SST-2")
@pytest.mark.parametrize("task", ["STS-B", "SST-2"])
def test_begin_as_the_first_in_a_student(folder, task):
    """Where the task has pairs, as in fine-tuning."""
    (folder / "mlm" / "config.json").write_text('{"stage": "general"}')
    labelled = {} if task == "STS-B" else {"num_classes": 2}
    kind = tfeff.tasks.Classifier if labelled else tfeff.tasks.Regressor
    teacher = kind(make_encoder(), **labelled)
    teacher.compile()
    tfeff.tasks.save_pretrained(teacher, tokenizer(), folder / "teacher" / "preset")
    tfeff.training.save_checkpoint(teacher, str(folder / "teacher" / "model.keras"))
    given = DistillSettings(
        run_dir=str(folder / "run"),
        stage="task",
        teacher=str(folder / "teacher"),
        student=str(folder / "mlm"),
        task=task,
        data=str(folder),
        sequence_length=16,
    )
    dataset = tfeff.datasets.get(task)
    examples = dataset.read("train", str(folder))
    _, predictions, _ = make_models(given, dataset, examples)
    table = predictions.student.encoder.embedding.segment_embedding.embeddings.numpy()
    assert np.array_equal(table[0], table[1]) == (task == "STS-B")


def test_begin_as_the_first(folder):
    (folder / "mlm" / "config.json").write_text('{"objective": "masked_lm"}')
    before = tfeff.tasks.load_pretrained(folder / "mlm")[0].embedding
    before = before.segment_embedding.embeddings.numpy()
    assert not np.array_equal(*before)
    for is_copied, expected in ((True, before[[0, 0]]), (False, before)):
        encoder = load_encoder(settings(folder), is_copied, None, 0)
        table = encoder.embedding.segment_embedding.embeddings.numpy()
        np.testing.assert_array_equal(table, expected)


@pytest.mark.slow
def test_segments_are_of_pairs(folder):
    found = finetune(settings(folder, pooling="segments", pretrained_steps=()))
    assert "dev_spearman" in found["best"]["mean"]
    model, _ = tfeff.tasks.load_task(folder / "run")
    assert model.pooling == "segments"
    wrong = settings(
        folder, pooling="segments", task="SST-2", run_dir=str(folder / "other")
    )
    with pytest.raises(ValueError, match="`pooling` must be .*'SST-2', single texts"):
        finetune(wrong)


def test_are_copied_where_texts_show_them(folder):
    (folder / "mlm" / "config.json").write_text('{"objective": "masked_lm"}')
    rated = tfeff.datasets.get("STS-B").read("dev", folder)
    single = tfeff.datasets.get("SST-2").read("dev", folder)
    for examples, num_segments, choice, expected in (
        (rated, 2, "copied", True),
        (rated, 2, "kept", False),
        (rated, 1, "copied", False),
        (single, 2, "copied", False),
    ):
        encoder = make_encoder(num_segments=num_segments)
        given = settings(folder, new_segments=choice)
        assert check_segments(given, examples, encoder, tokenizer()) is expected


@pytest.mark.slow
def test_adapters_of_single_texts_are_saved_with_the_defaults(folder):
    (folder / "mlm" / "config.json").write_text('{"objective": "masked_lm"}')
    finetune(settings(folder, task="SST-2", lora_rank=2, save_lora=True))
    encoder, _ = tfeff.tasks.load_pretrained(folder / "mlm")
    model = tfeff.tasks.Classifier(encoder, 2)
    tfeff.tasks.load_lora(model, folder / "run" / "lora.safetensors")


def test_adapters_are_saved_beside_the_segments_of_pretraining(folder):
    (folder / "mlm" / "config.json").write_text('{"objective": "masked_lm"}')
    with pytest.raises(ValueError, match="`new_segments` must be 'kept'"):
        finetune(settings(folder, lora_rank=2, save_lora=True))
    assert not (folder / "run").exists()
