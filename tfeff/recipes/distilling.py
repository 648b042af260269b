"""Distils a teacher into a smaller student: in general, or on a task."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import keras

import tfeff
from tfeff.encoders.encoder import encoder_of
from tfeff.objectives.masked_lm_head import head_settings_like
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.corpora import build_caches, split_corpus
from tfeff.recipes.data_record import keep_caches
from tfeff.recipes.distill_settings import DistillSettings
from tfeff.recipes.distilling_models import (
    finish,
    layer_settings,
    make_student_encoder,
    prediction_settings,
    write,
)
from tfeff.recipes.distilling_tasks import distill_on_a_task
from tfeff.recipes.drawing import check_plots, draw
from tfeff.recipes.intervals import eval_every
from tfeff.recipes.next_commands import print_finetune_next
from tfeff.recipes.runs import (
    examples_in_step,
    make_optimizer,
    metrics_line,
    open_run,
    recipe_running,
)
from tfeff.recipes.settings import check_settings
from tfeff.tasks.encoder_limits import check_fits
from tfeff.tasks.run_tokenizer import (
    has_run_tokenizer,
    save_run_tokenizer,
    seal_run_tokenizer,
)
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import CACHE


@recipe_running()
def distill(
    settings: DistillSettings,
    dataset: tfeff.datasets.Dataset | None = None,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> dict:
    """Distils a teacher into a student, and exports the student.

    Args:
        settings: what to distil, as `DistillSettings` describe it.
        dataset: with `stage="task"`, a data set with the name `settings.task`; `None`
            for the one that is registered under it, or that is described in
            `settings.data`.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        The metrics, which `metrics.json` has: with `stage="general"` the losses on the
        text held out, with `stage="task"` those of `"student"` and `"teacher"` on the
        development set.

    Raises:
        TypeError: if `settings` are not `DistillSettings`.
        ValueError: if a setting does not fit another one, the models or the data, or
            the run directory is of other settings.
        ImportError: if a task's metrics need a package that is not installed.
        OSError: if a file cannot be read.
        tfeff.training.Diverged: if the training leaves weights that are not finite.

    Reference:
        Jiao et al., "TinyBERT: distilling BERT for natural language understanding",
        Findings of EMNLP 2020; Sanh et al., "DistilBERT, a distilled version of BERT:
        smaller, faster, cheaper and lighter", 2019.

    Example:
    ```python
    import tfeff

    text = [f"The student reads page {number}." for number in range(40)]
    with open("text.txt", "w") as file:
        file.write("\\n\\n".join(text))
    tokenizer = tfeff.data.train_tokenizer(text, vocabulary_size=40)
    teacher = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=40, num_layers=4, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(teacher, tokenizer, "teacher")

    settings = tfeff.recipes.DistillSettings(
        run_dir="run",
        teacher="teacher",
        student="bert_tiny",
        override={"num_layers": 2, "max_sequence_length": 16},
        corpus="text.txt",
        validation_fraction=0.2,
        sequence_length=16,
        batch_size=2,
        steps=2,
    )
    tfeff.recipes.distill(settings)
    student, tokenizer = tfeff.tasks.load_pretrained("run")
    assert student.num_layers == 2
    ```
    """
    check_settings(settings, DistillSettings)
    own_callbacks = Callbacks(settings, callbacks)
    check_plots(settings.plots)
    keras.utils.set_random_seed(settings.seed)
    strategy = tfeff.training.make_strategy(settings.strategy, settings.tpu)
    if settings.stage == "task":
        return distill_on_a_task(settings, strategy, dataset, own_callbacks)
    if dataset is not None:
        raise ValueError(
            "`dataset` can be given with `stage='task'` only. Received: "
            f"dataset={dataset!r:.80}, stage={settings.stage!r:.80}"
        )
    return _distill_in_general(settings, strategy, own_callbacks)


def _distill_in_general(settings, strategy, callbacks):
    """From a pretrained model to one, on text."""
    in_step = examples_in_step(settings, settings.batch_size, strategy)
    every = eval_every(settings.steps, settings.eval_every)
    settings = dataclasses.replace(settings, eval_every=every)
    with strategy.scope():
        model, tokenizer = _make_model(settings)
        model.compile(
            make_optimizer(settings, settings.learning_rate, settings.steps),
            accumulation_steps=settings.accumulation_steps,
        )
    with open_run(settings) as run:
        train, valid = build_caches(
            run.path(CACHE),
            *split_corpus(settings.corpus, settings),
            tokenizer,
            settings.sequence_length,
        )
        source = f"corpus={list(settings.corpus)}"
        keep_caches(run, train, valid, source, models=("teacher",))
        if not has_run_tokenizer(run.directory):  # With it a checkpoint is of use.
            save_run_tokenizer(tokenizer, run.directory)
        seal_run_tokenizer(run.directory)
        # Without predictions the text is as it is: no token to predict is replaced.
        examples = (
            tfeff.data.MaskedTokens()
            if settings.prediction_loss
            else tfeff.data.MaskedTokens(mask_share=0.0, random_share=0.0)
        )
        valid_batches = functools.partial(
            valid.batches, examples, settings.batch_size, shuffle=False, repeat=False
        )
        with (
            callbacks.of_training(
                run.directory, settings.config(), name=run.url
            ) as own,
            strategy.scope(),
            tfeff.data.damage_named(train, valid),
        ):
            validation_data = tfeff.training.distribute(valid_batches)
            model = run.fit(
                lambda: model,
                lambda batches: tfeff.training.distribute(
                    functools.partial(
                        train.batches,
                        examples,
                        in_step,
                        settings.seed,
                        skip_batches=batches,
                    )
                ),
                total_steps=settings.steps,
                steps_per_epoch=every,
                tokens_per_step=in_step * settings.sequence_length,
                validation_data=validation_data,
                patience=settings.patience,
                callbacks=own,
            )
            metrics = model.evaluate(validation_data, verbose=0, return_dict=True)
        print(f"validation: {metrics_line(metrics)}")
        if settings.plots:
            draw(model.encoder, valid_batches(), run)
        write(run, metrics, model.student, tokenizer)
        metrics = finish(run)
        print_finetune_next(settings.run_dir)
        return metrics


def _without_optimizer(model):
    """The same model, not compiled: checkpoints would have its optimizer's state."""
    same = type(model).from_config(model.get_config())
    same.set_weights(model.get_weights())
    return same


def _make_model(settings):
    """The distillation of encoders, or of masked language models, and the tokenizer."""
    load = (
        tfeff.tasks.load_masked_lm
        if settings.prediction_loss
        else tfeff.tasks.load_pretrained
    )
    with named_as(path="teacher", step="teacher"):
        teacher, tokenizer = load(settings.teacher)
    if settings.prediction_loss:
        teacher = _without_optimizer(teacher)
    encoder = encoder_of(teacher)
    check_fits("teacher", settings.teacher, encoder, settings.sequence_length)
    student = make_student_encoder(settings, encoder)
    arguments = layer_settings(settings, student, encoder)
    if settings.prediction_loss:
        copied = settings.copy_layers
        head = teacher.head_settings if copied else head_settings_like(student)
        student = tfeff.objectives.MaskedLM(student, **head)
        if copied:
            tfeff.objectives.copy_head(student, teacher)
        weights = arguments["loss_weights"]
        arguments |= prediction_settings(settings)
        arguments["loss_weights"] |= weights
    return tfeff.objectives.Distillation(student, teacher, **arguments), tokenizer
