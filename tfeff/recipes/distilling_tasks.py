"""Distils a fine-tuned teacher into a student, on the examples of its task."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence

import keras
import tensorflow as tf

import tfeff
from tfeff.data.finetuning.columns import are_reordered
from tfeff.data.finetuning.examples import chosen
from tfeff.datasets.kinds import KINDS
from tfeff.objectives.distillation.layer_map import check_tokenizers
from tfeff.objectives.distillation.loss_weights import (
    check_layer_weights,
    weights_left,
)
from tfeff.recipes.answer_scores import check_answered
from tfeff.recipes.baselines import make_baseline, scores_line
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.data_record import file_digest, keep_data, weights_digest
from tfeff.recipes.distill_settings import DistillSettings
from tfeff.recipes.distilling_models import (
    finish,
    layer_settings,
    make_student_encoder,
    prediction_settings,
    write,
)
from tfeff.recipes.long_texts import print_long
from tfeff.recipes.run_exports import (
    check_made,
    has_export,
    newest_export,
    write_encoder,
)
from tfeff.recipes.runs import (
    check_finite,
    draw,
    examples_in_step,
    make_optimizer,
    metrics_line,
    open_run,
    read_config,
)
from tfeff.recipes.shared_examples import print_shared
from tfeff.recipes.task_dataset import find_dataset, task_class
from tfeff.recipes.task_part import TaskPart
from tfeff.recipes.task_scores import print_undefined
from tfeff.recipes.tuning import print_best
from tfeff.recipes.unknown_tokens import print_unknown
from tfeff.recipes.unseen_segments import begin_as_first, shows_new
from tfeff.tasks.encoder_limits import check_length, fitting
from tfeff.tasks.task import PooledTask
from tfeff.training import interrupted_fit
from tfeff.training.held_signals import HeldSignals
from tfeff.training.interrupted_fit import interrupted_step
from tfeff.utils.checks import is_url
from tfeff.utils.files import remove_with_replaced
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import (
    DEV_METRICS_TABLE,
    INTERRUPTED,
    INTERRUPTED_LAYERS,
    METRICS,
    MODEL,
    PRESET,
)

# The folders in which a signal saves the distillation of layers, and of predictions.
_LAYERS, _PREDICTIONS = INTERRUPTED_LAYERS, INTERRUPTED
# The models whose classes have names.
_NAMED = (tfeff.tasks.Classifier, tfeff.tasks.TokenClassifier)


def distill_on_a_task(
    settings: DistillSettings,
    strategy: tf.distribute.Strategy,
    dataset: tfeff.datasets.Dataset | None,
    callbacks: Callbacks,
) -> dict:
    """From a fine-tuned model to one: first the layers, then the predictions."""
    every = settings.eval_every or min(200, settings.prediction_steps)
    settings = dataclasses.replace(settings, eval_every=every)
    dataset = find_dataset(
        settings.task or "", *KINDS, given=dataset, data=settings.data
    )
    in_step = examples_in_step(settings, settings.batch_size, strategy)
    with open_run(settings) as run:
        train, dev = _read_examples(dataset, settings)
        read = {"train": train, "dev": dev}
        if all(is_there(run.path(name)) for name in (METRICS, MODEL)):
            keep_data(run, dataset, read, trained="", models=())
            _keep_finished(run, dataset, dev, settings)
            return finish(run)
        with contextlib.suppress(FileNotFoundError):  # An earlier start's.
            os.remove(run.path(DEV_METRICS_TABLE))
        with strategy.scope():
            layers, predictions, tokenizer = _make_models(settings, dataset, train)
        teacher, student = predictions.teacher, predictions.student
        others: dict[str, str] = {}
        if settings.augment_with:
            train, others = _augmented(train, settings, tokenizer)
        train_part, dev_part = (
            TaskPart(dataset, examples, _rows(examples, tokenizer, settings), settings)
            for examples in (train, dev)
        )
        print(
            f"{dataset.name}: {len(train):,} examples to train on, {len(dev):,} of dev"
        )
        if not dev_part.has_spans:  # All windows of a passage are read.
            parts = {"examples to train on": train_part.rows, "of dev": dev_part.rows}
            print_long(parts)
            print_unknown({x: y.token_ids for x, y in parts.items()}, tokenizer)
        teachers, _ = dev_part.delivered(teacher)
        baseline = make_baseline(dataset, train, {"": dev})
        print(f"teacher: {scores_line(teachers, baseline)}")
        metric = dataset.metric_names[0]
        print_undefined(dataset, metric, "dev", dev)
        keep_data(
            run,
            dataset,
            read,
            trained="",
            models=_models(settings),
            others=others,
        )
        best = tfeff.training.KeepBest(
            lambda model: dev_part.score(model.student),
            metric,
            every,
            run.directory,
            settings.patience,
        )
        with HeldSignals() as signals:  # Until all is written.
            with (
                callbacks.of_training(
                    run.directory, settings.config(), name=run.url
                ) as own,
                strategy.scope(),
            ):
                if layers is not None and not interrupted_step(run.path(_PREDICTIONS)):
                    batches = train_part.encoder_batches(in_step, seed=settings.seed)
                    _fit_layers(
                        layers, batches, settings, run.path(_LAYERS), signals, own
                    )
                _fit(
                    predictions,
                    train_part.rows.dataset(in_step, settings.seed),
                    settings,
                    settings.prediction_rate,
                    settings.prediction_steps,
                    run.path(_PREDICTIONS),
                    signals,
                    [best, *own],
                    best,
                )
            check_finite(student)
            print("student:")
            print_best(best, metric, settings.prediction_steps, baseline)
            # Loading makes the slots, and Keras would warn that the file lacks them.
            student.optimizer.build(student.trainable_variables)
            # The metrics may be of an earlier model, which was deleted.
            with contextlib.suppress(FileNotFoundError):
                os.remove(run.path(METRICS))
            tfeff.training.save_checkpoint(student, run.path(MODEL))
            _draw(student, dev_part, run)
            scores, options = dev_part.delivered(student, best.best)
            write(
                run,
                {"student": scores, "teacher": teachers, "baseline": baseline},
                student,
                tokenizer,
                sequence_length=settings.sequence_length,
                **options,
            )
            for saved in (_LAYERS, _PREDICTIONS):
                remove_with_replaced(run.path(saved))
        return finish(run)


def _models(settings):
    """The settings that name models on disk: a student by its name begins anew."""
    return ["teacher", *([] if _is_by_name(settings.student) else ["student"])]


def _is_by_name(student):
    return student in tfeff.encoders.presets() and not os.path.exists(student)


def _keep_finished(run, dataset, dev, settings):
    """Checks what a finished run has made, makes what was deleted, and draws."""
    has_preset = is_there(run.path(PRESET))
    if has_preset:
        check_made(run.path(PRESET))
    if has_export(run):
        check_made(newest_export(run))
    is_whole = has_preset and has_export(run)
    if is_whole and not settings.plots:
        return
    student = tfeff.training.load_checkpoint(run.path(MODEL), compile=False)
    if has_preset:  # What it began with may be gone.
        _, tokenizer = tfeff.tasks.load_pretrained(run.path(PRESET))
    else:
        tokenizer = _students_tokenizer(settings)
    part = TaskPart(dataset, dev, _rows(dev, tokenizer, settings), settings)
    if not is_whole:
        known = read_object(run.path(METRICS))["student"]
        _, options = part.delivered(student, known)
        write_encoder(
            run,
            student,
            tokenizer,
            student,
            sequence_length=settings.sequence_length,
            **options,
        )
    if settings.plots:
        _draw(student, part, run)


def _students_tokenizer(settings):
    """The tokenizer of a student by its name, which is the teacher's, or of its own."""
    name = "teacher" if _is_by_name(settings.student) else "student"
    with named_as(path=name, step=name):
        return tfeff.tasks.load_pretrained(getattr(settings, name))[1]


def _draw(model, part, run):
    batches = part.encoder_batches(8, shuffle=False, repeat=False)
    draw(model.encoder, batches, run, part.settings.plots)


def _make_models(settings, dataset, examples):
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
    if expected in _NAMED:
        names, wanted = teacher.label_names or (), dataset.label_names
        if teacher.num_classes != len(wanted) or are_reordered(names, wanted):
            found = list(names) or f"{teacher.num_classes} classes"
            raise ValueError(
                f"`teacher` must have the classes of {dataset.name}, {list(wanted)}. "
                f"Received: teacher={settings.teacher!r}, with {found}"
            )
    if (other := _task_of(settings.teacher)) not in (None, settings.task):
        print(f"the teacher was trained on {other}, the student is for {dataset.name}")
    length = settings.sequence_length
    with fitting("teacher", settings.teacher, sequence_length=length):
        check_length(teacher.encoder, length)
    return teacher


def _task_of(teacher):
    """The task of a fine-tuned run; `None` where it has no settings that tell."""
    with contextlib.suppress(OSError, ValueError):
        return read_config(teacher).get("task")
    return None


def _load_student(settings, teacher):
    """The student's encoder, its tokenizer, and the teacher's."""
    if _is_by_name(settings.student):
        tokenizer = _students_tokenizer(settings)
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
    length = settings.sequence_length
    with fitting("student", settings.student, sequence_length=length):
        check_length(encoder, length)
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
    head = {"dropout": teacher.dropout}
    if isinstance(teacher, PooledTask):
        head["pooling"] = teacher.pooling
        head["pooler_activation"] = pooler_activation or teacher.pooler_activation
    if isinstance(teacher, tfeff.tasks.Regressor):
        head |= {"scale": teacher.scale, "offset": teacher.offset}
    if isinstance(teacher, _NAMED):
        head |= {"num_classes": teacher.num_classes, "label_names": label_names}
    model = type(teacher)(encoder, **head)
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


def _rows(examples, tokenizer, settings):
    length = settings.sequence_length
    if isinstance(examples, tfeff.data.SpanExamples):
        return tfeff.data.make_span_features(
            examples, tokenizer, length, settings.stride
        )
    if isinstance(examples, tfeff.data.TokenExamples):
        return tfeff.data.token_features(examples, tokenizer, length)
    return tfeff.data.text_features(examples, tokenizer, length)


def _read_examples(dataset, settings):
    """The examples to train on, sampled, and those of dev."""
    names = ("skip_malformed", "skip_mismatched")
    options = {name: True for name in names if getattr(settings, name)}
    is_of_spans = dataset.kind is tfeff.data.SpanExamples
    if is_of_spans and os.path.isfile(settings.data):
        raise ValueError(
            "`data` must be the folder of the files to train on and to choose by: one "
            f"file would be read as both. Received: data={settings.data!r}"
        )
    with named_as(folder="data"):
        splits = ("train", dataset.dev_splits[0])
        train, dev = (dataset.read(s, settings.data, **options) for s in splits)
    for split, examples in zip(splits, (train, dev)):
        if not len(examples):
            raise ValueError(
                f"`data` must hold examples of {split!r} that are not all left out. "
                f"Received: {', '.join(examples.skipped[:1]) or 'none'}"
            )
        if is_of_spans:
            check_answered("data", split, examples.questions)
    if count := len(train.skipped) + len(dev.skipped):
        print(f"{count:,} lines left out, such as {(*train.skipped, *dev.skipped)[0]}")
    print_shared(dict(zip(splits, (train, dev))))
    if settings.train_examples is not None:
        with named_as(count="train_examples"):
            train = _some(train, settings.train_examples)
    return train, dev


def _some(examples, count):
    """The examples that `finetune` and `answer` train on by the same setting."""
    if isinstance(examples, tfeff.data.SpanExamples):
        return chosen(examples, range(min(count, len(examples))))
    return examples.sample(count)


def _augmented(examples, settings, tokenizer):
    """The examples with their copies, and the digests of what made these."""
    folder, vectors = settings.augment_with, settings.word_vectors
    if not isinstance(examples, tfeff.data.TextExamples):
        raise ValueError(
            "`augment_with` must be None but for texts and pairs: other words would "
            f"change answers and options. Received: augment_with={folder!r}, "
            f"task={settings.task!r}"
        )
    with named_as(path="augment_with", step="augment_with"):
        masked_lm, known = tfeff.tasks.load_masked_lm(folder)
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(tokenizer) != fingerprint(known):
        raise ValueError(
            "`augment_with` must have the student's tokenizer. "
            f"Received: augment_with={folder!r}, student={settings.student!r}"
        )
    renamed = {"rate": "threshold", "masked_lm": "augment_with"}
    digests = {"augment_with": weights_digest(masked_lm)}
    with named_as(path="word_vectors", **renamed):
        augmented = tfeff.tasks.augment(
            examples,
            masked_lm,
            tokenizer,
            copies=settings.copies,
            rate=settings.threshold,
            candidates=settings.candidates,
            word_vectors=tfeff.tasks.read_word_vectors(vectors) if vectors else None,
            seed=settings.seed,
        )
        if vectors:
            digests["word_vectors"] = file_digest(vectors)
    return augmented, digests


def _fit_layers(model, batches, settings, saved, signals, callbacks):
    """Trains the distillation of layers, and prints its metrics."""
    rate, steps = settings.learning_rate, settings.steps
    history = _fit(model, batches, settings, rate, steps, saved, signals, callbacks)
    check_finite(model)
    done = int(model.optimizer.iterations.numpy()) if model.stop_training else steps
    print(f"layers after {done:,} of {steps:,} steps: {metrics_line(history)}")


def _fit(
    model: keras.Model,
    batches: tf.data.Dataset,
    settings: DistillSettings,
    learning_rate: float,
    steps: int,
    saved: str,
    signals: HeldSignals,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    best: tfeff.training.KeepBest | None = None,
) -> dict[str, float]:
    """Trains for so many steps; returns the metrics of the training.

    It resumes from what a signal has saved in the folder `saved`.
    """
    model.compile(
        make_optimizer(settings, learning_rate, steps),
        accumulation_steps=settings.accumulation_steps,
    )
    if step := interrupted_step(saved):
        print(f"it goes on from step {step:,} of {steps:,}")
    fit = interrupted_fit.fit
    history = fit(model, batches, steps, saved, signals, callbacks, best).history
    return {name: values[-1] for name, values in history.items()}
