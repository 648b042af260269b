"""Distillation from Python on every kind of task, and of masked language models."""

import dataclasses
import itertools
import json
import warnings
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.recipes import DistillSettings, distill, distilling
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.distilling_examples import read_examples, some_examples
from tfeff.recipes.distilling_models import (
    layer_settings,
    make_student_encoder,
    prediction_settings,
)
from tfeff.recipes.distilling_task_models import _layers, _load_teacher, _make_student
from tfeff.recipes.runs import open_run
from tfeff.recipes.task_model import task_class

SIZES = {
    "vocabulary_size": 60,
    "hidden_dim": 8,
    "intermediate_dim": 8,
    "max_sequence_length": 40,
    "dropout": 0.0,
}
TEXTS = DOCUMENTS[:8]


def texts(split, folder):
    return tfeff.data.TextExamples(
        tuple(TEXTS), None, np.linspace(0, 5, 8, dtype="float32"), None, tuple(range(8))
    )


def choices(split, folder):
    return tfeff.data.ChoiceExamples(
        passages=tuple(TEXTS),
        questions=("Who?",) * 8,
        options=(("a cat", "zebras"),) * 8,
        labels=np.arange(8) % 2,
        label_names=("A", "B"),
        ids=tuple(map(str, range(8))),
    )


def spans(path, skip_mismatched):
    questions = [
        tfeff.data.Question(str(i), "Who?", text, (text[:9],), ((0, 9),))
        for i, text in enumerate(TEXTS)
    ]
    return tfeff.data.SpanExamples(tuple(questions))


def same_texts(examples, answers):
    texts = answers  # As the baseline has them.
    if not isinstance(answers, dict):
        texts = {answer.id: answer.text for answer in answers}
    right = [texts[question.id] in question.answers for question in examples.questions]
    return {"exact_match": float(np.mean(right))}


def one_score(examples, predictions):
    return {"exact_match": tfeff.datasets.accuracy(examples.labels, predictions)}


DATASETS = {
    "Rated": tfeff.datasets.Dataset(
        name="Rated", reader=texts, metric_names=("pearson",)
    ),
    "Chosen": tfeff.datasets.Dataset(
        name="Chosen",
        reader=choices,
        kind=tfeff.data.ChoiceExamples,
        label_names=("A", "B"),
        metric_names=("exact_match",),
        scorer=one_score,
    ),
    "Tagged": tfeff.datasets.conll_dataset("Tagged", types=("X",)),
    "Found": tfeff.datasets.span_dataset(
        "Found",
        {"train": ("train.json",), "dev": ("dev.json",)},
        read_file=spans,
        metric_names=("exact_match",),
        scorer=same_texts,
    ),
}
TASKS = {
    "Rated": tfeff.tasks.Regressor,
    "Chosen": tfeff.tasks.MultipleChoice,
    "Tagged": lambda encoder: tfeff.tasks.TokenClassifier(encoder, 3),
    "Found": tfeff.tasks.SpanQA,
}


def make_encoder(num_layers=2):
    return tfeff.encoders.build("bert_tiny", num_layers=num_layers, **SIZES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A teacher of each kind, a student, and a masked language model."""
    folder = tmp_path_factory.mktemp("tasks")
    keras.utils.set_random_seed(0)
    (folder / "text.txt").write_text("\n\n".join(DOCUMENTS * 2), encoding="utf-8")
    for split in ("train", "dev"):
        (folder / f"{split}.json").write_text("{}")
        tags = zip(" ".join(TEXTS).split(), itertools.cycle(["O", "B-X", "I-X", "O\n"]))
        lines = "\n".join(f"{word} {tag}" for word, tag in tags)
        (folder / "Tagged").mkdir(exist_ok=True)
        (folder / "Tagged" / f"{split}.txt").write_text(lines, encoding="utf-8")
    for name, task in TASKS.items():
        model = task(make_encoder())
        model.compile()
        tfeff.tasks.save_pretrained(
            model.encoder, tokenizer(), folder / name / "preset"
        )
        tfeff.training.save_checkpoint(model, str(folder / name / "model.keras"))
    tfeff.tasks.save_pretrained(make_encoder(1), tokenizer(), folder / "student")
    masked_lm = tfeff.objectives.MaskedLM(make_encoder(), activation="gelu_tanh")
    tfeff.tasks.save_pretrained(masked_lm, tokenizer(), folder / "masked_lm")
    return folder


def on_a_task(folder, task, run_dir, **changes):
    return DistillSettings(
        **{
            "run_dir": str(run_dir),
            "stage": "task",
            "task": task,
            "data": str(folder),
            "teacher": str(folder / task),
            "student": str(folder / "student"),
            "sequence_length": 40,
            "batch_size": 4,
            "steps": 2,
            "prediction_steps": 2,
            "eval_every": 1,
        }
        | changes
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_students_of_every_kind_of_task(task, folder, tmp_path):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    changes = {
        "Chosen": {"layer_weights": [1, 2, 0.5], "pooler_activation": "relu"},
        "Rated": {"layer_weights": [0, 0, 1]},  # Predictions alone.
    }.get(task, {"label_weight": 0.5, "train_examples": 3})
    settings = on_a_task(folder, task, tmp_path / "run", **changes)
    metrics = distill(settings, DATASETS[task])
    assert set(metrics) == {"student", "teacher", "baseline"}
    error = ["mean_absolute_error"] * (task == "Rated")
    assert list(metrics["student"])[: 1 + len(error)] == [
        DATASETS[task].metric_names[0],
        *error,
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Skipping variable loading")
        student = tfeff.training.load_checkpoint(str(tmp_path / "run" / "model.keras"))
    assert type(student) is task_class(DATASETS[task])
    assert student.encoder.num_layers == 1
    if task == "Chosen":
        assert student.pooler_activation == "relu"
    served = tf.saved_model.load(str(tmp_path / "run" / "export" / "1"))
    assert "serving_default" in served.signatures
    # A finished run is left as it is, but for pictures.
    drawn = dataclasses.replace(settings, plots=True)
    assert distill(drawn, DATASETS[task]) == metrics
    assert (tmp_path / "run" / "plots" / "average_attention.png").exists()


def test_a_teacher_of_another_task_is_told_of(tmp_path, monkeypatch, capsys):
    (tmp_path / "Rated").mkdir()
    (tmp_path / "Rated" / "model.keras").touch()
    model = tfeff.tasks.Regressor(make_encoder())
    monkeypatch.setattr(tfeff.training, "load_checkpoint", lambda _, compile: model)
    settings = on_a_task(tmp_path, "Rated", tmp_path / "run")
    for task, line in (
        ("Rated", ""),
        ("Other", "the teacher was trained on Other, the student is for Rated\n"),
    ):
        config = tmp_path / "Rated" / "config.json"
        config.write_text(json.dumps({"task": task}))
        assert _load_teacher(settings, DATASETS["Rated"]) is model
        assert capsys.readouterr().out == line


@pytest.mark.parametrize("size", [59, 61])
def test_the_vocabulary_of_a_student_is_its_teachers(size, tmp_path):
    override = {"vocabulary_size": size}
    settings = on_a_task(tmp_path, "Rated", "run", student="bert_tiny")
    settings = dataclasses.replace(settings, override=override)
    message = "`override` must leave out `vocabulary_size`, which is the teacher's, 60"
    with pytest.raises(ValueError, match=message):
        make_student_encoder(settings, make_encoder())


def test_a_finished_run_on_other_data_is_refused(tmp_path):
    dataset = DATASETS["Rated"]
    settings = on_a_task(tmp_path, "Rated", tmp_path / "run")
    with open_run(settings) as run:
        keep_data(run, dataset, {s: texts(s, "") for s in ("train", "dev")})
        tfeff.training.write_metrics({"student": 1}, run.path("metrics.json"))
    # What it has made need not have digests.
    zipfile.ZipFile(tmp_path / "run" / "model.keras", "w").close()
    (tmp_path / "run" / "preset").mkdir()
    (tmp_path / "run" / "preset" / "config.json").touch()
    (tmp_path / "run" / "export" / "1").mkdir(parents=True)
    (tmp_path / "run" / "export" / "1" / "saved_model.pb").touch()
    assert distill(settings, dataset) == {"student": 1}

    def halved(split, folder):
        found = texts(split, folder)
        return dataclasses.replace(found, labels=found.labels / 2)

    changed = dataclasses.replace(dataset, reader=halved)
    with pytest.raises(
        ValueError, match=r"which has read other examples \(train, dev\) than"
    ):
        distill(settings, changed)
    assert distill(settings, dataset) == {"student": 1}


def test_classes_of_one_name_have_one_index(tmp_path, monkeypatch):
    def read(split, folder):
        labels = np.arange(8) % 3
        return tfeff.data.TextExamples(
            first=TEXTS, second=None, labels=labels, label_names=names
        )

    names = ("pos", "neg", "neutral")
    moods = tfeff.datasets.Dataset(name="Moods", reader=read, label_names=names)
    settings = on_a_task(tmp_path, "Moods", tmp_path / "run")
    with pytest.raises(ValueError, match="`teacher` must be the folder of a finished"):
        distill(settings, moods)
    (tmp_path / "Moods").mkdir()
    (tmp_path / "Moods" / "model.keras").touch()
    encoder = make_encoder(1)
    for classes, message in (
        (("neg", "neu", "pos"), r"`teacher` must have the classes of Moods.*'neu'"),
        (("0", "1", "2"), "`student` must be"),  # The teacher has other names for them.
        (("pos", "neg", "neu"), "`student` must be"),
    ):
        model = tfeff.tasks.Classifier(encoder, 3, label_names=classes)
        monkeypatch.setattr(
            tfeff.training, "load_checkpoint", lambda _, compile, m=model: m
        )
        with pytest.raises(ValueError, match=message):
            distill(settings, moods)
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_student_by_name_that_learns_labels_alone(folder, tmp_path, capsys):
    """Without general distillation, without layers, without predictions."""
    settings = on_a_task(
        folder,
        "Rated",
        tmp_path / "run",
        student="bert_tiny",
        override={name: SIZES[name] for name in ("hidden_dim", "intermediate_dim")},
        copy_layers=True,
        steps=0,
        prediction_weight=0.0,
        label_weight=1.0,
        augment_with=str(folder / "masked_lm"),
        candidates=3,
        copies=2,
        threshold=1.0,
    )
    distill(settings, DATASETS["Rated"])
    said = capsys.readouterr().out
    assert "Rated: 24 examples to train on, 8 of dev" in said
    assert "layers after" not in said
    encoder, _ = tfeff.tasks.load_pretrained(tmp_path / "run")
    assert encoder.num_layers == 2


@pytest.mark.slow
def test_masked_language_models_as_distilbert(folder, tmp_path, monkeypatch):
    settings = DistillSettings(
        run_dir=str(tmp_path / "run"),
        teacher=str(folder / "masked_lm"),
        student="distilbert_base",
        override={
            **{name: SIZES[name] for name in ("hidden_dim", "intermediate_dim")},
            "num_layers": 1,
            "num_heads": 2,
        },
        copy_layers=True,
        corpus=(str(folder / "text.txt"),),
        validation_fraction=0.4,
        sequence_length=16,
        batch_size=4,
        steps=4,
        eval_every=2,
        embedding_weight=0.0,
        hidden_weight=0.0,
        attention_weight=0.0,
        prediction_weight=20.0,
        label_weight=2.0,
        cosine_weight=1.0,
        temperature=2.0,
    )
    model, _ = distilling._make_model(settings)
    student, teacher = model.student, model.teacher
    heads = [network.head.own_weights() for network in (student, teacher)]
    for name, value in heads[0].items():
        np.testing.assert_array_equal(value, heads[1][name])
    kernels = [
        network.encoder.blocks[index].feedforward.intermediate_dense.kernel
        for network, index in ((student, 0), (teacher, 1))
    ]
    np.testing.assert_array_equal(*kernels)

    seen, batches = [], tfeff.data.Cache.batches

    def noted(cache, examples, *args, **kwargs):
        seen.append(examples.mask_share)
        return batches(cache, examples, *args, **kwargs)

    monkeypatch.setattr(tfeff.data.Cache, "batches", noted)
    metrics = distill(settings)
    assert set(seen) == {0.8}
    assert set(metrics) == {"prediction_loss", "label_loss", "cosine_loss", "loss"}
    # A checkpoint is of use, as of a run that does not come to its end.
    encoder, known = tfeff.tasks.load_pretrained(f"{tmp_path}/run@2")
    assert encoder.num_layers == 1 and known.vocabulary_size() == 60
    model, _ = tfeff.tasks.load_masked_lm(tmp_path / "run")
    assert model.encoder.num_segments == 0 and model.head.activation == "gelu_tanh"
    again = distill(settings)
    assert again == metrics
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    assert saved["prediction_weight"] == 20.0
    # Layers alone are compared on the text as it is.
    seen.clear()
    changes = dict(run_dir=str(tmp_path / "layers"), hidden_weight=1.0)
    changes |= dict(prediction_weight=0.0, label_weight=0.0, temperature=1.0)
    distill(dataclasses.replace(settings, **changes))
    assert set(seen) == {0.0}


@pytest.mark.parametrize(
    ("changes", "is_left"),
    [
        ({}, True),
        ({"steps": 0}, False),
        ({"layer_weights": (0, 0, 1)}, False),
        ({"layer_weights": (0, 0, 1), "cosine_weight": 1.0}, True),
    ],
)
def test_layers_without_a_weight_left_are_not_distilled(changes, is_left):
    pair = make_encoder(1), make_encoder(1)
    settings = on_a_task(Path("x"), "Rated", "run", **changes)
    assert (_layers(settings, *pair, tokenizer(), tokenizer()) is not None) == is_left


@pytest.mark.slow
def test_what_does_not_fit_leaves_no_folder(folder, tmp_path):
    for task, message, changes in (
        ("Found", "`augment_with` must be None", {"augment_with": str(folder)}),
        ("Rated", "`override` can be given", {"override": {"num_layers": 2}}),
        ("Rated", "`copy_layers` can be given", {"copy_layers": True}),
        (
            "Rated",
            "`teacher` must be a Regressor for Rated",
            {"teacher": str(folder / "Found")},
        ),
        (
            "Rated",
            "`augment_with` must be a run",
            {"augment_with": "student"},
        ),
        ("Rated", "`layer_weights` must have one entry", {"layer_weights": [1, 1]}),
    ):
        if changes.get("augment_with") == "student":
            changes = {"augment_with": str(folder / "student")}
        settings = on_a_task(folder, task, tmp_path / "run", **changes)
        with pytest.raises(ValueError, match=message):
            distill(settings, DATASETS[task])
        assert not (tmp_path / "run").exists()


def general(**changes):
    return DistillSettings(run_dir="x", teacher="y", student="bert_tiny", **changes)


@pytest.mark.slow
def test_weights_are_those_of_the_settings():
    """Of TinyBERT's table 6, and of DistilBERT."""
    pair = [make_encoder(), make_encoder()]
    for name, left in (
        ("embedding_weight", {"hidden": 1.0, "attention": 1.0}),
        ("hidden_weight", {"embedding": 1.0, "attention": 1.0}),
        ("attention_weight", {"embedding": 1.0, "hidden": 1.0}),
    ):
        arguments = layer_settings(general(**{name: 0}), *pair)
        assert arguments["loss_weights"] == left
        model = tfeff.objectives.Distillation(*pair, **arguments)
        assert set(model.comparison.terms) == set(left)
    arguments = layer_settings(
        general(layer_weights=(1, 0, 2, 1), attention="none", cosine_weight=2), *pair
    )
    model = tfeff.objectives.Distillation(*pair, **arguments)
    assert model.comparison.weights_of_terms == {
        "embedding": 1.0,
        "hidden": 1.0,
        "cosine": 2.0,
    }
    assert model.comparison.layer_weights == [1.0, 0.0, 2.0, 1.0]
    task = on_a_task(Path("x"), "Rated", "run")
    assert prediction_settings(task)["loss_weights"] == {"prediction": 1.0}
    assert general().prediction_loss == 0.0
    task = on_a_task(Path("x"), "Rated", "run", temperature=2.0, soften="student")
    found = prediction_settings(task)
    assert (found["temperature"], found["soften"]) == (2.0, "student")
    found = layer_settings(general(layer_map="top", reduction="sum_squares"), *pair)
    assert (found["layer_map"], found["reduction"]) == ("top", "sum_squares")
    assert layer_settings(general(layer_map="2,4"), *pair)["layer_map"] == [2, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_weights": (0, 0, 0)}, "`layer_weights` must have one above 0"),
        ({"layer_weights": (1, -1, 0)}, "`layer_weights` must be .* at least 0"),
        ({"hidden_weight": -1.0}, "`hidden_weight` must be .* at least 0"),
        ({"steps": 0}, "`steps` must be at least 1"),
        ({"temperature": 2.0}, "`temperature` can be given with `prediction_weight`"),
        ({"label_weight": 2.0}, "`label_weight` can be given with `prediction_weight`"),
        ({"candidates": 2}, "`candidates` can be given with `stage='task'`"),
        (
            dict.fromkeys(
                ("embedding_weight", "hidden_weight", "attention_weight"), 0.0
            ),
            "One of `embedding_weight`.* must be above 0",
        ),
        (
            {"stage": "task", "task": "a", "data": "b", "prediction_weight": 0.0},
            "`prediction_weight` must be above 0 on a task without `label_weight`",
        ),
    ],
)
def test_weights_that_teach_nothing_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        general(**changes)


def test_a_student_learns_from_the_examples_of_its_teacher():
    """Those that `finetune` and `answer` choose, whatever the seed."""
    examples = texts("train", "")
    chosen = some_examples(examples, 3)
    assert chosen.first == examples.sample(3).first
    questions = spans("", False)
    assert some_examples(questions, 3).questions == questions.questions[:3]
    assert len(some_examples(questions, 99)) == len(questions)


def test_a_student_has_its_teachers_pooler_or_another():
    teacher = tfeff.tasks.Regressor(make_encoder(), pooler_activation="gelu")
    for given, expected in ((None, "gelu"), ("relu", "relu")):
        student = _make_student(teacher, make_encoder(), None, given)
        assert student.pooler_activation == expected
    teacher.get_layer("logits").trainable = False
    assert (
        _make_student(teacher, make_encoder(), None, None).get_layer("logits").trainable
    )
    with pytest.raises(ValueError, match="a teacher without a pooler.*'span_logits'"):
        _make_student(tfeff.tasks.SpanQA(make_encoder()), make_encoder(), None, "relu")


def test_a_teacher_keeps_no_optimizer_in_checkpoints(tmp_path):
    teacher = tfeff.objectives.MaskedLM(tfeff.encoders.build("bert_tiny", **SIZES))
    teacher.compile()
    teacher.optimizer.build(teacher.trainable_variables)
    same = distilling._without_optimizer(teacher)
    assert not same.compiled
    for one, other in zip(teacher.weights, same.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_is_not_both_parts(tmp_path):
    (tmp_path / "train.json").write_text("{}")
    settings = on_a_task(tmp_path, "Found", tmp_path / "run")
    settings = dataclasses.replace(settings, data=str(tmp_path / "train.json"))
    with pytest.raises(ValueError, match="`data` must be the folder of the files to"):
        read_examples(DATASETS["Found"], settings)


def test_shared_texts_are_told(tmp_path, capsys):
    settings = dataclasses.replace(
        on_a_task(tmp_path, "Found", "run"), data=str(tmp_path)
    )
    for name in ("train", "dev"):
        (tmp_path / f"{name}.json").touch()
    read_examples(DATASETS["Found"], settings)
    assert "8 of 8 different texts of dev are in train, too" in capsys.readouterr().out
