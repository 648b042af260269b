"""Pretraining from text to a served model."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import keras

import tfeff
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.corpora import check_other_text
from tfeff.recipes.corpus_settings import (
    OF_TRAINED,
    check_no_fraction,
    check_no_training,
)
from tfeff.recipes.data_record import caches_record
from tfeff.recipes.drawing import check_plots, draw
from tfeff.recipes.intervals import eval_every
from tfeff.recipes.next_commands import print_finetune_next
from tfeff.recipes.overrides import check_override
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.pretraining_data import (
    check_cache,
    check_cached_tokenizer,
    check_some_word_fits,
    make_data,
    read_data,
    valid_batches,
)
from tfeff.recipes.pretraining_model import make_model, mask_rate, objective, token_loss
from tfeff.recipes.run_exports import write_encoder
from tfeff.recipes.runs import examples_in_step, open_run, recipe_running
from tfeff.recipes.settings import changed, check_settings
from tfeff.recipes.starting import has_checkpoint
from tfeff.tasks.run_tokenizer import RUN_TOKENIZER
from tfeff.training.checkpoints import check_kept_steps
from tfeff.training.workers import from_chief
from tfeff.utils.interruption import end_at_once
from tfeff.utils.run_files import CACHE, METRICS, PRESET


def pretrain(
    settings: PretrainSettings,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> keras.Model:
    """Pretrains the model that the settings describe, in their run directory.

    Args:
        settings: see `PretrainSettings`.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        The trained model, such as a `tfeff.objectives.MaskedLM`.

    Raises:
        TypeError: if `settings` are not `PretrainSettings`.
        ValueError: if settings do not fit each other, or the directory holds another
            run.
        OSError: if a file cannot be read or written.
        Diverged: if the training diverges.
        LostWorker: if another worker is lost.

    Example:
    ```python
    import tfeff
    from tfeff.recipes import PretrainSettings, pretrain

    model = pretrain(
        PretrainSettings(
            run_dir="first", max_characters=500_000, vocabulary_size=300, steps=4
        )
    )
    encoder, tokenizer = tfeff.tasks.load_pretrained("first")
    ```
    """
    check_settings(settings, PretrainSettings)
    settings = settle(settings)
    return run_pretraining(
        settings,
        lambda: make_model(settings),
        tfeff.training.RunDirectory.fit,
        callbacks,
    )


S = TypeVar("S", bound=PretrainSettings)


def settle(settings: S, stages: int = 1, switch_steps: Sequence[int] = ()) -> S:
    """Chooses the numbers that are open, and checks what belongs together."""
    every = eval_every(
        settings.steps,
        settings.eval_every,
        stages,
        keep_steps=settings.keep_steps,
        switch_steps=switch_steps,
    )
    check_kept_steps(settings.keep_steps, every, settings.steps)
    warmup_steps = settings.warmup_steps
    if warmup_steps is None:
        warmup_steps = min(100, settings.steps // 5)
    settings = dataclasses.replace(
        settings,
        eval_every=every,
        warmup_steps=warmup_steps,
        learning_rate=settings.peak_rate,
    )
    _check_overrides(settings)
    check_no_fraction(settings)
    check_plots(settings.plots)
    own = ("preset", "override", "tokenizer", *OF_TRAINED, "vocabulary_size")
    if settings.pretrained and (given := sorted(changed(settings) & {*own})):
        raise ValueError(
            "`pretrained` stands for `preset`, `override`, `tokenizer` with all of its "
            "settings, and `vocabulary_size`, and cannot be given with one of them. "
            f"Received: pretrained={settings.pretrained!r} and {', '.join(given)}"
        )
    of_cache = (
        *("corpus", "cross_documents", "max_characters", "text_field", "tokenizer"),
        *(*OF_TRAINED, "validation", "validation_fraction"),
    )
    if settings.cache_dir and (given := sorted(changed(settings) & {*of_cache})):
        raise ValueError(
            "`cache_dir` stands for a corpus and a tokenizer, and cannot be given with "
            f"settings of them. Received: cache_dir={settings.cache_dir!r} and "
            f"{', '.join(given)}"
        )
    chosen = objective(settings)
    examples = chosen.examples
    settings = dataclasses.replace(settings, mask_rate=mask_rate(chosen))
    if isinstance(examples, tfeff.data.SentencePairs):
        examples.check(settings.sequence_length, settings.cross_documents)
    if settings.tokenizer:
        check_no_training(settings, OF_TRAINED)
    if settings.swap_positions and not settings.pretrained:
        raise ValueError(
            "`swap_positions` must be left out without `pretrained`: a new encoder has "
            "the positions of its `preset` and `override`. "
            f"Received: swap_positions={settings.swap_positions!r}"
        )
    if every % settings.steps_per_execution:
        raise ValueError(
            "`steps_per_execution` must divide `eval_every`. Received: "
            f"steps_per_execution={settings.steps_per_execution}, eval_every={every}"
        )
    if warmup_steps >= settings.steps:
        raise ValueError(
            "`warmup_steps` must be below `steps`. Received: "
            f"warmup_steps={warmup_steps}, steps={settings.steps}"
        )
    return settings


def _check_overrides(settings):
    """Raises where an override gives what other settings give, or is too small."""
    given = {
        "dtype": settings.dtype,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "num_layers": settings.num_layers,
        "memory_efficient": settings.memory_efficient,
    }
    least = {
        "vocabulary_size": settings.vocabulary_size,
        "max_sequence_length": settings.sequence_length,
    }
    check_override(settings.override, given, least)
    # Its tables are the encoder's.
    of_tables = {"dtype": settings.dtype, **least}
    check_override(settings.generator_override, of_tables, {}, "generator_override")


@recipe_running()
@tfeff.training.lost_workers_named()
def run_pretraining(
    settings: PretrainSettings,
    make_model: Callable,
    fit: Callable,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> keras.Model:
    """Corpus, tokenizer, caches, training, export.

    Args:
        settings: from `settle`.
        make_model: makes the compiled model.
        fit: trains it, as `tfeff.training.RunDirectory.fit`.
        callbacks: as of `pretrain`.
    """
    own_callbacks = Callbacks(settings, callbacks)
    check_cache(settings)
    if settings.strategy == "multi_worker":
        end_at_once()  # A worker may wait for others for ever.
    strategy = tfeff.training.make_strategy(settings.strategy, settings.tpu)
    with strategy.scope():
        tfeff.training.check_equal_settings(settings.config())
    in_step = examples_in_step(settings, settings.batch_size, strategy)
    keras.utils.set_random_seed(settings.seed)
    with strategy.scope():
        # All workers do what the chief does: to make a model they need each other.
        has_begun = from_chief(lambda: has_checkpoint(settings.run_dir))
        if not has_begun:
            _check_new(settings, strategy)
        # The model is made before the folder, since not all settings make one. A run
        # that has begun needs none, nor what it was pretrained from, which may be gone.
        new = None if has_begun else make_model()
    if new is not None:
        check_cached_tokenizer(settings)
    with open_run(settings, strategy) as run:
        tokenizer, train, valid = run.by_chief(
            lambda: make_data(run, settings),
            lambda: read_data(run, settings),
            files=(*RUN_TOKENIZER, CACHE),
        )
        with strategy.scope():  # A worker may have another copy of `cache_dir`.
            tfeff.training.check_equal_settings(caches_record(train, valid))
        examples = objective(settings).examples
        with tfeff.data.damage_named(valid):
            check_some_word_fits(settings, valid_batches(settings, valid, tokenizer)())
        with (
            own_callbacks.of_training(
                run.directory, settings.config(), run.is_chief, name=run.url
            ) as own,
            strategy.scope(),
            tfeff.data.damage_named(train, valid),
        ):
            validation_data = tfeff.training.distribute(
                valid_batches(settings, valid, tokenizer)
            )
            model = fit(
                run,
                lambda: make_model() if new is None else new,
                lambda skipped: tfeff.training.distribute(
                    functools.partial(
                        train.batches,
                        examples,
                        in_step,
                        settings.seed,
                        skip_batches=skipped,
                        tokenizer=tokenizer,
                    )
                ),
                total_steps=settings.steps,
                steps_per_epoch=settings.eval_every,
                tokens_per_step=in_step * settings.sequence_length,
                validation_data=validation_data,
                patience=settings.patience,
                keep_checkpoints=settings.keep_checkpoints,
                keep_steps=settings.keep_steps,
                callbacks=own,
            )
            metrics = model.evaluate(validation_data, verbose=0, return_dict=True)
        # Others end with the chief: if it is lost here, all have to start again.
        run.by_chief(
            lambda: _finish(run, settings, model, tokenizer, valid, metrics),
            lambda: None,
            files=(),
        )
        return model


def _check_new(settings, strategy):
    """Raises where settings have no effect; a run that began on one replica goes on."""
    check_other_text(settings)
    if settings.jit_compile and strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "`jit_compile` must be False on several replicas, whose loop XLA does not "
            "compile; on a TPU it always does. Received: jit_compile=True on "
            f"{strategy.num_replicas_in_sync} replicas"
        )


def _finish(run, settings, model, tokenizer, valid, metrics):
    """Writes what the run leaves after the training, and prints where it is."""
    tfeff.training.write_metrics(metrics, run.path(METRICS))
    _report(model, metrics, valid.unigram_entropy())
    if settings.plots:
        draw(model.encoder, valid_batches(settings, valid, tokenizer)(), run)
    fills = isinstance(model, tfeff.objectives.MaskedLM)
    served = model if fills else model.encoder
    exported = write_encoder(run, model.encoder, tokenizer, served)
    run.finish()
    preset = run.shown(run.path(PRESET))
    print(f"the run, to fine-tune: {settings.run_dir}")
    print(f"the encoder and its tokenizer, for Keras code: {preset}")
    outputs = "embeddings and fillings" if fills else "embeddings"
    print(f"text in, {outputs} out: {run.shown(exported)}")
    print_finetune_next(settings.run_dir)


def _report(model, metrics, entropy):
    """Prints the metrics of the validation text, next to predicting by frequency."""
    loss = token_loss(model, metrics)
    if loss is None:
        is_of_pairs = isinstance(model, tfeff.objectives.SentencePairPrediction)
        unit = " nats a pair" if is_of_pairs else ""
        print(f"validation loss: {metrics['loss']:.3f}{unit}")
    else:
        print(
            f"unigram entropy of the validation text: {entropy:.3f} nats a token\n"
            f"validation loss: {loss:.3f} nats a masked token, "
            f"{abs(entropy - loss):.3f} {'below' if loss < entropy else 'above'} that"
        )
    for name, value in metrics.items():
        print(f"{name}: {value:.4f}")
