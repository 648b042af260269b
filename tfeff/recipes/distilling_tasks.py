"""Distils a fine-tuned teacher into a student, on the examples of its task."""

import contextlib
import dataclasses
import os

import tensorflow as tf

import tfeff
from tfeff.datasets.kinds import KINDS
from tfeff.recipes.baselines import make_baseline, scores_line
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.distill_settings import DistillSettings
from tfeff.recipes.distilling_examples import augmented, make_part, read_examples
from tfeff.recipes.distilling_models import finish, write
from tfeff.recipes.distilling_task_models import (
    make_models,
    models_on_disk,
    students_tokenizer,
)
from tfeff.recipes.drawing import draw
from tfeff.recipes.long_texts import print_long
from tfeff.recipes.run_exports import (
    check_made,
    has_export,
    newest_export,
    write_encoder,
)
from tfeff.recipes.runs import (
    check_finite,
    examples_in_step,
    make_optimizer,
    metrics_line,
    open_run,
)
from tfeff.recipes.task_dataset import find_dataset
from tfeff.recipes.task_part import SpanPart
from tfeff.recipes.task_scores import print_undefined
from tfeff.recipes.tuning import print_best
from tfeff.recipes.unknown_tokens import print_unknown
from tfeff.training import interrupted_fit
from tfeff.training.held_signals import HeldSignals
from tfeff.training.interrupted_fit import interrupted_step
from tfeff.utils.files import remove_with_replaced
from tfeff.utils.json_files import read_object
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
        train, dev = read_examples(dataset, settings)
        read = {"train": train, "dev": dev}
        if all(is_there(run.path(name)) for name in (METRICS, MODEL)):
            keep_data(run, dataset, read, trained="", models=())
            _keep_finished(run, dataset, dev, settings)
            return finish(run)
        with contextlib.suppress(FileNotFoundError):  # An earlier start's.
            os.remove(run.path(DEV_METRICS_TABLE))
        with strategy.scope():
            layers, predictions, tokenizer = make_models(settings, dataset, train)
        teacher, student = predictions.teacher, predictions.student
        others: dict[str, str] = {}
        if settings.augment_with:
            train, others = augmented(train, settings, tokenizer)
        train_part, dev_part = (
            make_part(dataset, part, tokenizer, settings) for part in (train, dev)
        )
        print(
            f"{dataset.name}: {len(train):,} examples to train on, {len(dev):,} of dev"
        )
        if not isinstance(dev_part, SpanPart):  # All windows of a passage are read.
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
            models=models_on_disk(settings),
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
                    _fit_layers(layers, batches, settings, run, signals, own)
                steps = settings.prediction_steps
                _compile(predictions, settings, settings.prediction_rate, steps)
                interrupted_fit.fit(
                    predictions,
                    train_part.batches(in_step, settings.seed),
                    steps,
                    run.path(_PREDICTIONS),
                    signals,
                    own,
                    best,
                )
            check_finite(student)
            print("student:")
            print_best(best, metric, steps, baseline)
            known = {"teacher": teachers, "baseline": baseline}
            _write(run, settings, student, tokenizer, dev_part, best.best, known)
        return finish(run)


def _write(run, settings, student, tokenizer, dev_part, scores, known):
    """The student's model, pictures, preset and export; the metrics with the known."""
    # Loading makes the slots, and Keras would warn that the file lacks them.
    student.optimizer.build(student.trainable_variables)
    # The metrics may be of an earlier model, which was deleted.
    with contextlib.suppress(FileNotFoundError):
        os.remove(run.path(METRICS))
    tfeff.training.save_checkpoint(student, run.path(MODEL))
    if settings.plots:
        _draw(student, dev_part, run)
    scores, options = dev_part.delivered(student, scores)
    write(
        run,
        {"student": scores, **known},
        student,
        tokenizer,
        sequence_length=settings.sequence_length,
        **options,
    )
    for saved in (_LAYERS, _PREDICTIONS):
        remove_with_replaced(run.path(saved))


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
        tokenizer = students_tokenizer(settings)
    part = make_part(dataset, dev, tokenizer, settings)
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


def _draw(model, part, run):
    batches = part.encoder_batches(8, shuffle=False, repeat=False)
    draw(model.encoder, batches, run)


def _fit_layers(model, batches, settings, run, signals, callbacks):
    """Trains the distillation of layers, and prints its metrics."""
    steps = settings.steps
    _compile(model, settings, settings.learning_rate, steps)
    history = interrupted_fit.fit(
        model, batches, steps, run.path(_LAYERS), signals, callbacks
    ).history
    check_finite(model)
    done = int(model.optimizer.iterations.numpy()) if model.stop_training else steps
    last = {name: values[-1] for name, values in history.items()}
    print(f"layers after {done:,} of {steps:,} steps: {metrics_line(last)}")


def _compile(model, settings, learning_rate, steps):
    model.compile(
        make_optimizer(settings, learning_rate, steps),
        accumulation_steps=settings.accumulation_steps,
    )
