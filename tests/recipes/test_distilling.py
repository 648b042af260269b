"""`tfeff distill` as a user runs it: in general, then on a task."""

import csv
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.command import flags as command_flags
from tfeff.recipes import DistillSettings, distill
from tfeff.recipes.distilling import _make_model

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "tfeff", "distill")
SIZES = {
    "num_layers": 2,
    "hidden_dim": 16,
    "intermediate_dim": 16,
    "max_sequence_length": 24,
}


def run(run_dir, *flags):
    return subprocess.run(
        [
            *COMMAND,
            f"--run_dir={run_dir}",
            "--sequence_length=24",
            "--batch_size=4",
            "--steps=4",
            "--eval_every=2",
            *flags,
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What earlier runs leave: a pretrained and a fine-tuned teacher, text, GLUE."""
    folder = tmp_path_factory.mktemp("distill")
    lines = [f"{i} green bottles hanging on the wall" for i in range(60)]
    (folder / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    tokenizer = tfeff.data.train_tokenizer(lines, 36)
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=36, **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer, folder / "large" / "preset")
    tfeff.data.save_tokenizer(tokenizer, folder / "large" / "tokenizer.spm")
    masked_lm = tfeff.objectives.MaskedLM(encoder)
    masked_lm.compile()
    (folder / "large" / "checkpoints").mkdir()
    tfeff.training.save_checkpoint(
        masked_lm, str(folder / "large" / "checkpoints" / "step-00000001.keras")
    )
    teacher = tfeff.tasks.Classifier(encoder, 2)
    teacher.compile()
    (folder / "tuned").mkdir()
    tfeff.training.save_checkpoint(teacher, str(folder / "tuned" / "model.keras"))
    tfeff.tasks.save_pretrained(encoder, tokenizer, folder / "tuned" / "preset")
    (folder / "glue" / "SST-2").mkdir(parents=True)
    for split in ("train", "dev"):
        rows = "".join(f"{line}\t{i % 2}\n" for i, line in enumerate(lines[:12]))
        (folder / "glue" / "SST-2" / f"{split}.tsv").write_text(
            "sentence\tlabel\n" + rows, encoding="utf-8"
        )
    (folder / "glove.txt").write_text("wall 1 0\nhanging 0 1\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_from_a_teacher_to_a_served_student(folder):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    general = (
        f"--teacher={folder / 'large'}",
        "--student=bert_tiny",
        "--override=num_layers=1",
        "--override=hidden_dim=8",
        f"--corpus={folder / 'text.txt'}",
        "--validation_fraction=0.2",
    )
    result = run(folder / "small", *general)
    assert result.returncode == 0, result.stderr
    metrics = json.loads((folder / "small" / "metrics.json").read_text())
    assert set(metrics) == {"embedding_loss", "hidden_loss", "attention_loss", "loss"}
    with open(folder / "small" / "metrics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4"]
    assert float(rows[-1]["val_loss"]) == pytest.approx(metrics["loss"], rel=1e-5)
    encoder, _ = tfeff.tasks.load_pretrained(folder / "small")
    assert (encoder.num_layers, encoder.hidden_dim) == (1, 8)
    again = run(folder / "small", *general)
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "small" / "metrics.json").read_text()) == metrics
    teacher = folder / "large" / "preset"
    shutil.copytree(teacher, folder / "kept")
    changed, tokenizer = tfeff.tasks.load_pretrained(teacher)
    changed.set_weights([2 * weight for weight in changed.get_weights()])
    shutil.rmtree(teacher)
    tfeff.tasks.save_pretrained(changed, tokenizer, teacher)
    again = run(folder / "small", *general)
    assert "a new folder where the encoder of `teacher` has changed" in again.stderr
    shutil.rmtree(teacher)
    shutil.move(folder / "kept", teacher)
    assert run(folder / "small", *general).returncode == 0

    task = (
        "--stage=task",
        f"--teacher={folder / 'tuned'}",
        f"--student={folder / 'small'}",
        "--task=SST-2",
        f"--data={folder / 'glue'}",
        "--prediction_steps=4",
        f"--augment_with={folder / 'large'}",
        f"--word_vectors={folder / 'glove.txt'}",
        "--copies=2",
        "--train_examples=10",
    )
    result = run(folder / "sst2", *task)
    assert result.returncode == 0, result.stderr
    assert "SST-2: 30 examples to train on, 12 of dev" in result.stdout
    metrics = json.loads((folder / "sst2" / "metrics.json").read_text())
    assert set(metrics) == {"student", "teacher", "baseline"}
    with open(folder / "sst2" / "dev_metrics.csv", encoding="utf-8") as file:
        best = max(float(row["accuracy"]) for row in csv.DictReader(file))
    assert metrics["student"]["accuracy"] == pytest.approx(best)
    student = tfeff.training.load_checkpoint(str(folder / "sst2" / "model.keras"))
    assert isinstance(student, tfeff.tasks.Classifier)
    assert student.encoder.num_layers == 1 and student.label_names == ("0", "1")
    served = tf.saved_model.load(str(folder / "sst2" / "export" / "1"))
    signature = served.signatures["serving_default"]
    assert "probabilities" in signature.structured_outputs
    written = {
        path: path.read_bytes() for path in folder.glob("sst2/**/*") if path.is_file()
    }
    again = run(folder / "sst2", *task)
    assert again.returncode == 0, again.stderr
    assert written == {
        path: path.read_bytes() for path in folder.glob("sst2/**/*") if path.is_file()
    }


@pytest.mark.slow
def test_answers_of_multirc(folder):
    """A task whose metrics need the ids, of a sample of whose examples it learns."""
    (folder / "MultiRC").mkdir()
    answers = [{"text": f"{i} bottles", "idx": i, "label": i % 2} for i in range(4)]
    for split in ("train", "val"):
        passages = []
        for number in range(3):
            question = {"question": "How many?", "answers": answers, "idx": 0}
            text = {"text": "green bottles on the wall", "questions": [question]}
            passages.append(json.dumps({"idx": number, "passage": text}))
        lines = "\n".join(passages)
        (folder / "MultiRC" / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    result = run(
        folder / "multirc",
        "--stage=task",
        f"--teacher={folder / 'tuned'}",
        f"--student={folder / 'large'}",
        "--task=MultiRC",
        f"--data={folder}",
        "--prediction_steps=4",
        "--train_examples=10",
    )
    assert result.returncode == 0, result.stderr
    assert "MultiRC: 10 examples to train on, 12 of dev" in result.stdout
    metrics = json.loads((folder / "multirc" / "metrics.json").read_text())
    assert (
        list(metrics["student"])
        == list(metrics["teacher"])
        == ["f1a", "exact_match", "accuracy"]
    )
    with open(folder / "multirc" / "dev_metrics.csv", encoding="utf-8") as file:
        best = max(float(row["f1a"]) for row in csv.DictReader(file))
    assert metrics["student"]["f1a"] == pytest.approx(best)


@pytest.mark.slow
def test_other_tokenizers_are_refused(folder):
    encoder, _ = tfeff.tasks.load_pretrained(folder / "large")
    other = tfeff.data.train_tokenizer(["a house on a hill, 1 2 3 4"] * 9, 20)
    tfeff.tasks.save_pretrained(encoder, other, folder / "other" / "preset")
    task = ("--stage=task", "--task=SST-2", f"--data={folder / 'glue'}")
    models = (f"--teacher={folder / 'tuned'}", f"--student={folder / 'other'}")
    result = run(folder / "bad", *models, *task)
    assert result.returncode != 0
    assert "tokenizers" in result.stderr + result.stdout
    assert not (folder / "bad").exists()


@pytest.mark.slow
def test_a_teacher_of_other_classes_is_refused(folder):
    encoder, _ = tfeff.tasks.load_pretrained(folder / "large")
    (folder / "tuned2").mkdir()
    for names, found in (
        (None, "with 3 classes"),
        (("1", "0"), r"with \['1', '0'\]"),
    ):
        model = tfeff.tasks.Classifier(encoder, len(names or "abc"), label_names=names)
        model.compile()
        tfeff.training.save_checkpoint(model, str(folder / "tuned2" / "model.keras"))
        flags = ("--stage=task", "--task=SST-2", f"--data={folder / 'glue'}")
        models = dict(teacher=str(folder / "tuned2"), student=str(folder / "large"))
        settings = dataclasses.replace(
            parsed(*flags), run_dir=str(folder / "bad"), sequence_length=24, **models
        )
        with pytest.raises(ValueError, match=f"`teacher` must have .*SST-2.*{found}"):
            distill(settings)
        assert not (folder / "bad").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--student=bert_tini"], "Did you mean 'bert_tiny'?"),
        (["--student=bert_tiny", "--override=num_layers=3"], "more layers"),
        (["--student=shatter_tiny", "--attention=scores"], '"probabilities" here: One'),
        (["--student=bert_tiny", "--sequence_length=30"], "at most 24"),
        (["--student=bert_tiny", "--cosine_weight=1"], "`cosine_weight` must be 0"),
        (["--student=x", "--stage=task"], "`task` must be given"),
        (["--student=bert_tiny", "--layer_map=2,x"], "layer_map='2,x'"),
        (
            ["--student=x", "--stage=task", "--task=BoolQs", "--data=x"],
            "Did you mean 'BoolQ'?",
        ),
    ],
)
def test_bad_flags_leave_no_folder(folder, flags, message):
    arguments = (f"--teacher={folder / 'large'}", "--layer_map=top", *flags)
    result = run(folder / "bad", *arguments)
    assert result.returncode != 0
    assert message in result.stderr + result.stdout
    assert not (folder / "bad").exists()


@pytest.mark.quick("False")
@pytest.mark.parametrize("copied", [False, True])
def test_a_student_has_a_head_of_its_own_or_its_teachers(copied, tmp_path):
    tokenizer = tfeff.data.train_tokenizer(["a house on a hill, 1 2 3 4"] * 9, 20)
    layers = SIZES | {"feedforward": {"activation": "gelu_tanh"}}
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=20, **layers)
    teacher = tfeff.objectives.MaskedLM(encoder, "gelu_tanh", 1e-5)
    tfeff.tasks.save_pretrained(teacher, tokenizer, tmp_path / "teacher")
    del layers["max_sequence_length"]
    if not copied:
        layers["feedforward"] = {"activation": "relu"}
    settings = DistillSettings(
        run_dir="x",
        teacher=str(tmp_path / "teacher"),
        student="bert_tiny",
        override=layers,
        copy_layers=copied,
        prediction_weight=1.0,
        sequence_length=24,
    )
    model, _ = _make_model(settings)
    own = {"activation": "relu", "layer_norm_epsilon": 1e-12}
    assert model.student.head_settings == (teacher.head_settings if copied else own)
    kernels = [m.head.own_weights()["dense/kernel"] for m in (model.student, teacher)]
    assert np.array_equal(*kernels) == copied


def test_a_tokenizer_that_is_damaged_in_between_is_found(tmp_path, monkeypatch):
    """A general distillation does not read it: nobody would see it before its end."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "text.txt").write_text("\n\n".join(DOCUMENTS * 4))
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60, **SIZES)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "teacher")
    settings = DistillSettings(
        run_dir=str(tmp_path / "run"),
        corpus=(f"{tmp_path}/text.txt",),
        validation_fraction=0.2,
        teacher=str(tmp_path / "teacher"),
        student="bert_tiny",
        override={"num_layers": 1, "hidden_dim": 8, "num_heads": 2},
        sequence_length=16,
        steps=2,
    )
    monkeypatch.setattr(tfeff.training.RunDirectory, "fit", stop)
    with pytest.raises(KeyboardInterrupt):
        distill(settings)
    flip_bit(tmp_path / "run" / "tokenizer.spm", 40)
    with pytest.raises(ValueError, match="Damaged since .*tokenizer.spm"):
        distill(settings)


LABELS_ALONE = ("--stage=task", "--prediction_weight=0", "--label_weight=1")


def parsed(*flags):
    given = ("--run_dir=x", "--teacher=large", "--student=small", *flags)
    return command_flags.parse(DistillSettings, given)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--task=RTE"], "`task` can be given with `stage='task'` only.*task='RTE'"),
        (["--copies=3"], "`copies` can be given with `stage='task'` only.*copies=3"),
        (
            ["--temperature=2"],
            "`temperature` can .*only.*=2.0, prediction_weight=None$",
        ),
        (
            [*LABELS_ALONE, "--soften=student"],
            "`soften` can .*`prediction_weight` only",
        ),
        (
            ["--stage=task", "--corpus=a,b"],
            r"`corpus` can be given with `stage='general'` only.*corpus=\['a', 'b'\]",
        ),
        (
            ["--stage=task", "--word_vectors=glove.txt"],
            "`word_vectors` can be given with `augment_with` only.*augment_with=None",
        ),
        (["--stage=task", "--task=RTE"], "`data` must be given with `stage='task'`"),
        (
            ["--attention=none", "--hidden_weight=0", "--embedding_weight=0"],
            "`embedding_weight`, `hidden_weight`, `cosine_weight`, .* be above 0",
        ),
        (
            ["--stage=task", "--task=RTE", "--data=x", "--layer_weights=1,1,0"],
            "`layer_weights` must end in a number above 0",
        ),
    ],
)
def test_settings_without_effect_are_refused(flags, message):
    with pytest.raises(ValueError, match=message):
        parsed(*flags)


@pytest.mark.slow
def test_the_example_distils_in_general_and_on_a_task(folder, tmp_path):
    example = REPOSITORY / "examples" / "distill.py"
    models = [folder / "large", folder / "tuned", folder / "glue", tmp_path]
    result = subprocess.run(
        [sys.executable, example, *models, "4"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "small-sst2" / "metrics.json").read_text())
    found = [f"{metrics[name]['accuracy']:.4f}" for name in ("student", "teacher")]
    assert "SST-2: student {}, teacher {}".format(*found) in result.stdout
    encoder, _ = tfeff.tasks.load_pretrained(tmp_path / "small")
    assert encoder.num_layers == 1
