"""Distils a teacher into a smaller student: in general, then on a task."""

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Sequence

import keras
import tensorflow as tf

import tfeff
from tfeff.recipes.corpora import build_caches, split_corpus
from tfeff.recipes.distill_settings import DistillSettings
from tfeff.recipes.intervals import eval_every
from tfeff.recipes.runs import (
    check_finite,
    check_plots,
    draw,
    examples_in_step,
    export_options,
    find_dataset,
    make_once,
    make_optimizer,
    metrics_line,
    open_run,
    recipe_running,
)
from tfeff.recipes.tuning import report


@recipe_running()
def distill(
    settings: DistillSettings, dataset: tfeff.datasets.Dataset | None = None
) -> dict:
    """Distils a teacher into a student, and exports the student.

    Args:
        settings: what to distil, as `DistillSettings` describe it.
        dataset: with `stage="task"`, a data set of texts with the name
            `settings.task`; `None` for the one that is registered under it.

    Returns:
        The metrics, which `metrics.json` has: with `stage="general"` the losses on the
        text held out, with `stage="task"` those of `"student"` and `"teacher"` on the
        development set.

    Raises:
        ValueError: if a setting does not fit another one, the models or the data, or
            the run directory is of other settings.
        OSError: if a file cannot be read.
        tfeff.training.Diverged: if the training leaves weights that are not finite.

    Reference:
        Jiao et al., "TinyBERT: distilling BERT for natural language understanding",
        Findings of EMNLP 2020.

    Example: see `examples/distill.py`.
    """
    check_plots(settings.plots)
    keras.utils.set_random_seed(settings.seed)
    strategy = tfeff.training.make_strategy(settings.strategy, settings.tpu)
    if settings.stage == "task":
        return _distill_on_a_task(settings, strategy, dataset)
    if dataset is not None:
        raise ValueError(
            "`dataset` can be given with `stage='task'` only. Received: "
            f"dataset={dataset!r}, stage={settings.stage!r}"
        )
    return _distill_in_general(settings, strategy)


def _distill_in_general(settings, strategy):
    """From an encoder to an encoder, on text."""
    in_step = examples_in_step(settings, settings.batch_size, strategy)
    every = eval_every(settings.steps, settings.eval_every)
    settings = dataclasses.replace(settings, eval_every=every)
    with open_run(settings) as run:
        with strategy.scope():
            teacher, tokenizer = tfeff.tasks.load_pretrained(settings.teacher)
            _check_length(teacher, settings.sequence_length)
            student = tfeff.encoders.build(
                settings.student,
                **{
                    "vocabulary_size": teacher.vocabulary_size,
                    "max_sequence_length": settings.sequence_length,
                    **settings.override,
                },
            )
            model = tfeff.objectives.Distillation(
                student, teacher, **_layer_settings(settings, student, teacher)
            )
            model.compile(
                make_optimizer(settings, settings.learning_rate, settings.steps),
                accumulation_steps=settings.accumulation_steps,
            )
        train, valid = build_caches(
            run,
            *split_corpus(
                settings.corpus, settings.max_characters, settings.validation_fraction
            ),
            tokenizer,
            settings.sequence_length,
        )
        # The text as it is: no token to predict is replaced.
        plain = tfeff.data.MaskedTokens(mask_share=0.0, random_share=0.0)
        validation_data = valid.batches(
            plain, settings.batch_size, shuffle=False, repeat=False
        )
        with strategy.scope(), tfeff.data.damage_named(train, valid):
            model = run.fit(
                lambda: model,
                lambda batches: train.batches(
                    plain, in_step, settings.seed, skip_batches=batches
                ),
                total_steps=settings.steps,
                steps_per_epoch=every,
                tokens_per_step=in_step * settings.sequence_length,
                validation_data=validation_data,
                patience=settings.patience,
            )
            metrics = model.evaluate(validation_data, verbose=0, return_dict=True)
        print(f"validation: {metrics_line(metrics)}")
        draw(model.student, validation_data, run, settings.plots)
        _write(run, metrics, model.student, model.student, tokenizer)
        return _finish(run)


def _distill_on_a_task(settings, strategy, dataset):
    """From a fine-tuned model to one, on the examples of its task."""
    every = settings.eval_every or min(200, settings.prediction_steps)
    settings = dataclasses.replace(settings, eval_every=every)
    # Models that choose among options, or find spans, are not distilled.
    dataset = find_dataset(settings.task, tfeff.data.TextExamples, given=dataset)
    in_step = examples_in_step(settings, settings.batch_size, strategy)
    with open_run(settings) as run:
        if os.path.exists(run.path("metrics.json")):
            return _finish(run)
        for name in ("preset", "export"):  # Of a start that was killed.
            shutil.rmtree(run.path(name), ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(run.path("dev_metrics.csv"))
        with strategy.scope():
            teacher = tfeff.training.load_checkpoint(
                os.path.join(settings.teacher, "model.keras")
            )
            if not isinstance(teacher, (tfeff.tasks.Classifier, tfeff.tasks.Regressor)):
                raise ValueError(
                    "`teacher` must classify or rate texts. Received: "
                    f"teacher={settings.teacher!r}, a `{type(teacher).__name__}`"
                )
            _check_length(teacher.encoder, settings.sequence_length)
            encoder, tokenizer = tfeff.tasks.load_pretrained(settings.student)
            _check_length(encoder, settings.sequence_length)
            _, teachers_tokenizer = tfeff.tasks.load_pretrained(settings.teacher)
            student = _make_student(teacher, encoder)
            layers = tfeff.objectives.Distillation(
                student.encoder,
                teacher.encoder,
                tokenizers=(tokenizer, teachers_tokenizer),
                **_layer_settings(settings, student.encoder, teacher.encoder),
            )
            predictions = tfeff.objectives.Distillation(
                student,
                teacher,
                attention=None,
                hidden=False,
                embedding=False,
                temperature=settings.temperature,
                soften=settings.soften,
            )
        train, dev = _read_examples(dataset, settings, tokenizer)
        train_rows, dev_rows = (
            tfeff.data.text_features(examples, tokenizer, settings.sequence_length)
            for examples in (train, dev)
        )
        print(
            f"{dataset.name}: {len(train):,} examples to train on, {len(dev):,} of dev"
        )

        def score(model):
            batches = dev_rows.dataset(32, shuffle=False, repeat=False)
            outputs = model.predict(batches, verbose=0)[: len(dev)].astype("float32")
            outputs = outputs if outputs.ndim == 1 else outputs.argmax(-1)
            return dataset.metrics(dev, outputs)

        teachers = score(teacher)
        print(f"teacher: {metrics_line(teachers)}")
        best = tfeff.training.KeepBest(
            lambda model: score(model.student),
            dataset.metric_names[0],
            every,
            run.directory,
            settings.patience,
        )
        train_batches = train_rows.dataset(in_step, settings.seed)
        with strategy.scope():
            history = _fit(
                layers, train_batches, settings, settings.learning_rate, settings.steps
            )
            check_finite(layers)
            print(f"layers after {settings.steps:,} steps: {metrics_line(history)}")
            _fit(
                predictions,
                train_batches,
                settings,
                settings.prediction_rate,
                settings.prediction_steps,
                [best],
            )
        check_finite(student)
        print("student:")
        report(best, settings.prediction_steps)
        tfeff.training.save_checkpoint(student, run.path("model.keras"))
        batches = dev_rows.dataset(8, shuffle=False, repeat=False)
        draw(student.encoder, batches, run, settings.plots)
        _write(
            run,
            {"student": best.best, "teacher": teachers},
            student,
            student.encoder,
            tokenizer,
            sequence_length=settings.sequence_length,
            **export_options(dev),
        )
        return _finish(run)


def _make_student(teacher, encoder):
    """A model like the teacher around another encoder."""
    if isinstance(teacher, tfeff.tasks.Classifier):
        model = tfeff.tasks.Classifier(encoder, teacher.num_classes, teacher.pooling)
    else:
        model = tfeff.tasks.Regressor(encoder, teacher.pooling)
    model.compile()  # Checkpoints are of compiled models.
    return model


def _read_examples(dataset, settings, tokenizer):
    """The examples to train on, sampled and with their copies, and those of dev."""
    options = {"skip_malformed": True} if settings.skip_malformed else {}
    train, dev = (
        dataset.read(split, settings.data, **options)
        for split in ("train", dataset.dev_splits[0])
    )
    if count := len(train.skipped) + len(dev.skipped):
        print(f"{count:,} lines left out, such as {(*train.skipped, *dev.skipped)[0]}")
    if settings.train_examples is not None:
        train = train.sample(settings.train_examples, settings.seed)
    if settings.augment_with:
        train = _augmented(train, settings, tokenizer)
    return train, dev


def _augmented(examples, settings, tokenizer):
    """The examples and their copies."""
    folder, vectors = settings.augment_with, settings.word_vectors
    path, _ = tfeff.training.latest_checkpoint(os.path.join(folder, "checkpoints"))
    if path is None:
        raise ValueError(
            "`augment_with` must be a run that has a checkpoint. "
            f"Received: augment_with={folder!r}"
        )
    _, known = tfeff.tasks.load_pretrained(folder)
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(tokenizer) != fingerprint(known):
        raise ValueError(
            "`augment_with` must have the student's tokenizer. "
            f"Received: augment_with={folder!r}, student={settings.student!r}"
        )
    return tfeff.tasks.augment(
        examples,
        tfeff.training.load_checkpoint(path),
        tokenizer,
        copies=settings.copies,
        word_vectors=tfeff.tasks.read_word_vectors(vectors) if vectors else None,
        seed=settings.seed,
    )


def _layer_settings(settings, student, teacher):
    """The settings that compare the layers of two encoders."""
    attention = settings.attention
    if attention is None:
        attention = tfeff.objectives.common_maps(student, teacher) or "none"
        print(f"attention maps to compare, by what both encoders have: {attention}")
    return {
        "layer_map": _layer_map(settings.layer_map),
        "attention": None if attention == "none" else attention,
        "reduction": settings.reduction,
    }


def _layer_map(text):
    """A kind of map, or the list of the teacher's layers that the text gives."""
    if text in ("uniform", "top", "bottom"):
        return text
    try:
        return [int(layer) for layer in text.split(",")]
    except ValueError:
        raise ValueError(
            "`layer_map` must be uniform, top, bottom, or integers such as 2,4. "
            f"Received: layer_map={text!r}"
        ) from None


def _fit(
    model: keras.Model,
    batches: tf.data.Dataset,
    settings: DistillSettings,
    learning_rate: float,
    steps: int,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, float]:
    """Trains for so many steps; returns the metrics of the training."""
    model.compile(
        make_optimizer(settings, learning_rate, steps),
        accumulation_steps=settings.accumulation_steps,
    )
    history = model.fit(
        batches,
        steps_per_epoch=steps,
        shuffle=False,  # The rows come shuffled.
        verbose=0,
        callbacks=list(callbacks),
    ).history
    return {name: values[-1] for name, values in history.items()}


def _check_length(encoder, sequence_length):
    """Raises where the sequences would be too long for the encoder's table."""
    longest = encoder.max_sequence_length
    if encoder.position == "absolute" and sequence_length > longest:
        raise ValueError(
            f"`sequence_length` must be at most {longest}, the table of positions. "
            f"Received: sequence_length={sequence_length}"
        )


def _write(run, metrics, model, encoder, tokenizer, **options):
    """The student's preset, what serves, and the metrics last."""
    make_once(
        run.path("preset"),
        lambda path: tfeff.tasks.save_pretrained(encoder, tokenizer, path),
    )
    make_once(
        run.path("export"),
        lambda path: tfeff.export.save_for_serving(model, tokenizer, path, **options),
    )
    tfeff.training.write_metrics(metrics, run.path("metrics.json"))


def _finish(run):
    """Notes the digests of what was written, tells where it is, returns the metrics."""
    run.finish()
    print(
        f"the student and its tokenizer: {run.path('preset')}\n"
        f"text in: {run.path('export')}"
    )
    with open(run.path("metrics.json"), encoding="utf-8") as file:
        return json.load(file)
