"""The teacher and the student of a distillation on a task."""

import contextlib
import os

import tfeff
from tfeff.data.finetuning.columns import are_reordered
from tfeff.encoders.layer_states import FROZEN, QUANTIZED
from tfeff.objectives.distillation.checks import check_tokenizers
from tfeff.objectives.distillation.loss_weights import (
    check_layer_weights,
    weights_left,
)
from tfeff.recipes.distilling_models import (
    layer_settings,
    make_student_encoder,
    prediction_settings,
)
from tfeff.recipes.runs import read_config
from tfeff.recipes.task_model import NAMED, task_class
from tfeff.recipes.unseen_segments import begin_as_first, shows_new
from tfeff.tasks.encoder_limits import check_fits
from tfeff.tasks.pretrained import task_config
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url
from tfeff.utils.run_files import MODEL


def make_models(settings, dataset, examples):
    """The distillation of layers or None, that of predictions, and the tokenizer."""
    teacher = _load_teacher(settings, dataset)
    encoder, *tokenizers = _load_student(settings, teacher)
    if shows_new(settings.student, examples, encoder, tokenizers[0]):
        begin_as_first(encoder)
    student = _make_student(
        teacher, encoder, dataset.label_names, settings.pooler_activation
    )
    layers = _layers(settings, student.encoder, teacher.encoder, *tokenizers)
    predictions = tfeff.objectives.Distillation(
        student,
        teacher,
        attention=None,
        hidden=False,
        embedding=False,
        **prediction_settings(settings),
    )
    return layers, predictions, tokenizers[0]


def models_on_disk(settings):
    """The settings that name models on disk: a student by its name begins anew."""
    return ["teacher", *([] if _is_by_name(settings.student) else ["student"])]


def _is_by_name(student):
    return student in tfeff.encoders.presets() and not os.path.exists(student)


def students_tokenizer(settings):
    """The tokenizer of a student by its name, which is the teacher's, or of its own."""
    name = "teacher" if _is_by_name(settings.student) else "student"
    with named_as(path=name, step=name):
        return tfeff.tasks.load_pretrained(getattr(settings, name))[1]


def _load_teacher(settings, dataset):
    path = os.path.join(settings.teacher, MODEL)
    if not is_url(settings.teacher) and not os.path.isfile(path):
        raise ValueError(
            "`teacher` must be the folder of a finished run of `tfeff finetune` or "
            "`tfeff answer`, which has a model.keras. Received: "
            f"teacher={settings.teacher!r}"
        )
    with named_as(path="teacher"):
        teacher = tfeff.training.load_checkpoint(path, compile=False)
    expected = task_class(dataset)
    if not isinstance(teacher, expected):
        raise ValueError(
            f"`teacher` must be a {expected.__name__} for {dataset.name}. Received: "
            f"teacher={settings.teacher!r}, a `{type(teacher).__name__}`"
        )
    if expected in NAMED:
        names, wanted = teacher.label_names or (), dataset.label_names
        if teacher.num_classes != len(wanted) or are_reordered(names, wanted):
            found = list(names) or f"{teacher.num_classes} classes"
            raise ValueError(
                f"`teacher` must have the classes of {dataset.name}, {list(wanted)}. "
                f"Received: teacher={settings.teacher!r}, with {found}"
            )
    if (other := _task_of(settings.teacher)) not in (None, settings.task):
        print(f"the teacher was trained on {other}, the student is for {dataset.name}")
    check_fits("teacher", settings.teacher, teacher.encoder, settings.sequence_length)
    return teacher


def _task_of(teacher):
    """The task of a fine-tuned run; `None` where it has no settings that tell."""
    with contextlib.suppress(OSError, ValueError):
        return read_config(teacher).get("task")
    return None


def _load_student(settings, teacher):
    """The student's encoder, its tokenizer, and the teacher's."""
    if _is_by_name(settings.student):
        tokenizer = students_tokenizer(settings)
        return make_student_encoder(settings, teacher.encoder), tokenizer, tokenizer
    for name, value in (
        ("override", dict(settings.override)),
        ("copy_layers", settings.copy_layers),
    ):
        if value:
            raise ValueError(
                f"`{name}` can be given with a `student` by its name only. Received: "
                f"{name}={value!r}, student={settings.student!r}"
            )
    with named_as(path="student", step="student"):
        encoder, tokenizer = tfeff.tasks.load_pretrained(settings.student)
    check_fits("student", settings.student, encoder, settings.sequence_length)
    with named_as(path="teacher", step="teacher"):
        _, teachers_tokenizer = tfeff.tasks.load_pretrained(settings.teacher)
    return encoder, tokenizer, teachers_tokenizer


def _make_student(teacher, encoder, label_names, pooler_activation):
    """A model like the teacher around another encoder."""
    if pooler_activation is not None and "pooler" not in teacher.heads():
        raise ValueError(
            "`pooler_activation` must be left out for a teacher without a pooler. "
            f"Received: pooler_activation={pooler_activation!r}, a teacher of the "
            f"kind {type(teacher).__name__} with the heads {sorted(teacher.heads())}"
        )
    states = ("name", "trainable", FROZEN, QUANTIZED)  # These are the teacher's own.
    config = task_config(teacher)["config"]
    head = {name: value for name, value in config.items() if name not in states}
    if pooler_activation is not None:
        head["pooler_activation"] = pooler_activation
    if isinstance(teacher, NAMED):
        head["label_names"] = list(label_names)
    model = type(teacher).of_encoder(encoder, head)
    model.compile()  # Checkpoints are of compiled models.
    return model


def _layers(settings, student, teacher, *tokenizers):
    """The distillation of layers; None where no layer is compared."""
    arguments = layer_settings(settings, student, teacher)
    layer_weights = check_layer_weights(settings.layer_weights, student.num_layers)
    weights = weights_left(arguments["loss_weights"], layer_weights)
    if not settings.steps or not weights:
        check_tokenizers(tokenizers)
        return None
    return tfeff.objectives.Distillation(
        student, teacher, tokenizers=tokenizers, **arguments
    )
