"""Pretraining from text to a served model."""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import keras
import tensorflow as tf

import tfeff
from tfeff.objectives.heads import heads_of
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.corpora import (
    build_caches,
    cached_crosses_documents,
    check_other_text,
    given_tokenizer,
    open_caches,
    train_and_validation,
    train_tokenizer,
)
from tfeff.recipes.corpus_settings import (
    OF_TRAINED,
    check_no_fraction,
    check_no_training,
)
from tfeff.recipes.data_record import keep_caches
from tfeff.recipes.heads import PretrainedHeads
from tfeff.recipes.intervals import eval_every
from tfeff.recipes.overrides import check_override
from tfeff.recipes.pretrain_settings import OBJECTIVE, PretrainSettings
from tfeff.recipes.run_exports import write_encoder
from tfeff.recipes.runs import (
    check_plots,
    draw,
    examples_in_step,
    open_run,
    print_finetune_next,
    recipe_running,
)
from tfeff.recipes.settings import changed, check_settings
from tfeff.recipes.starting import has_checkpoint, load_pretrained
from tfeff.tasks.run_tokenizer import (
    RUN_TOKENIZER,
    has_run_tokenizer,
    load_run_tokenizer,
    save_run_tokenizer,
)
from tfeff.training.checkpoints import check_kept_steps
from tfeff.training.workers import from_chief
from tfeff.utils.checks import check_choice
from tfeff.utils.interruption import end_at_once
from tfeff.utils.naming import named_as


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


def settle(settings: S, stages: int = 1) -> S:
    """Chooses the numbers of steps that are open, and checks what belongs together."""
    every = eval_every(settings.steps, settings.eval_every, stages, settings.keep_steps)
    check_kept_steps(settings.keep_steps, every, settings.steps)
    warmup_steps = settings.warmup_steps
    if warmup_steps is None:
        warmup_steps = min(100, settings.steps // 5)
    settings = dataclasses.replace(
        settings, eval_every=every, warmup_steps=warmup_steps
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
    examples = objective(settings).examples
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
    names = ("dtype", "dropout", "attention_dropout", "num_layers")
    given = {name: getattr(settings, name, None) for name in names}
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
    _check_pairs(settings)
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
        # Before the folder: not all settings make one. A run that has begun needs none,
        # nor what it was pretrained from, which may be gone.
        new = None if has_begun else make_model()
    with open_run(settings, strategy) as run:
        tokenizer, train, valid = run.by_chief(
            lambda: _make_data(run, settings),
            lambda: _read_data(run, settings),
            files=(*RUN_TOKENIZER, "cache"),
        )
        examples = objective(settings).examples
        with tfeff.data.damage_named(valid):
            _check_targets(settings, _valid_batches(settings, valid, tokenizer)())
        with (
            own_callbacks.of_training(
                run.directory, settings.config(), run.is_chief
            ) as own,
            strategy.scope(),
            tfeff.data.damage_named(train, valid),
        ):
            validation_data = tfeff.training.distribute(
                _valid_batches(settings, valid, tokenizer)
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
    """Raises where settings have no effect; runs of earlier versions may have them."""
    check_other_text(settings)
    if settings.jit_compile and strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "`jit_compile` must be False on several replicas, whose loop XLA does not "
            "compile; on a TPU it always does. Received: jit_compile=True on "
            f"{strategy.num_replicas_in_sync} replicas"
        )


def _check_pairs(settings):
    """Raises where the sequences of `cache_dir` cannot be made pairs of sentences."""
    is_of_pairs = isinstance(objective(settings).examples, tfeff.data.SentencePairs)
    cache_dir = settings.cache_dir
    if is_of_pairs and cache_dir and cached_crosses_documents(cache_dir):
        raise ValueError(
            "`cache_dir` must have sequences of one document each for pairs of "
            "sentences: those of tfeff cache without --cross_documents. Received: "
            f"cache_dir={cache_dir!r}, objective={settings.objective!r}"
        )


def _finish(run, settings, model, tokenizer, valid, metrics):
    """Writes what the run leaves after the training, and prints where it is."""
    tfeff.training.write_metrics(metrics, run.path("metrics.json"))
    _report(model, metrics, valid.unigram_entropy())
    draw(
        model.encoder, _valid_batches(settings, valid, tokenizer)(), run, settings.plots
    )
    fills = isinstance(model, tfeff.objectives.MaskedLM)
    served = model if fills else model.encoder
    exported = write_encoder(run, model.encoder, tokenizer, served)
    run.finish()
    preset = run.shown(run.path("preset"))
    print(f"the run, to fine-tune: {settings.run_dir}")
    print(f"the encoder and its tokenizer, for Keras code: {preset}")
    outputs = "embeddings and fillings" if fills else "embeddings"
    print(f"text in, {outputs} out: {run.shown(exported)}")
    print_finetune_next(settings.run_dir)


def _valid_batches(settings, valid, tokenizer):
    """Makes the batches to validate by."""
    return functools.partial(
        valid.batches,
        objective(settings).examples,
        settings.batch_size,
        shuffle=False,
        repeat=False,
        tokenizer=tokenizer,
    )


def _check_targets(settings, batches):
    """Raises where words or n-grams are masked and all are larger than the budget.

    Most often the first batch has a target, and is all that is read.
    """
    if settings.masking == "token":
        return
    for _, _, weights in batches:
        if isinstance(weights, dict):  # Pairs of sentences are targets, too.
            weights = weights.get("masked_lm", 1.0)
        if tf.reduce_any(weights > 0):
            return
    raise ValueError(
        "`masking` must be 'token' for text in which no word fits into the share "
        "`mask_rate` of a sequence's tokens, such as text without spaces: a model "
        "would learn nothing. As the settings of `run_dir` are fixed, another folder "
        f"is needed. Received: masking={settings.masking!r}, "
        f"mask_rate={settings.mask_rate}, validation text without a token to predict"
    )


def objective(settings: PretrainSettings):
    """The objective, its examples and model as the settings have them."""
    name = check_choice("objective", settings.objective, tfeff.objectives.names())
    chosen = tfeff.objectives.get(name)
    own = changed(settings).intersection(OBJECTIVE)
    given = {name: getattr(settings, name) for name in own}
    if "generator_override" in given:  # Messages print a plain dict.
        given["generator_override"] = dict(settings.generator_override)
    # The default counts, too: some papers predict another share.
    if settings.masked_lm and chosen.has_setting("mask_rate"):
        given["mask_rate"] = settings.mask_rate
    if not settings.masked_lm and chosen.has_setting("masked"):
        given["masked"] = None
    return chosen.override(**given)


def make_model(settings: PretrainSettings, **changes) -> keras.Model:
    """The compiled model of the settings; `changes` are arguments of the encoder."""
    if settings.pretrained:
        encoder, _ = load_pretrained(settings, seed=settings.seed)
    else:
        names = ("dropout", "attention_dropout")
        rates = {name: getattr(settings, name) for name in names}
        with named_as(overrides="override"):
            encoder = tfeff.encoders.build(
                settings.preset,
                **{
                    "vocabulary_size": settings.vocabulary_size,
                    "max_sequence_length": settings.sequence_length,
                    "dtype": settings.dtype,
                    **{name: rate for name, rate in rates.items() if rate is not None},
                    **settings.override,
                    **changes,
                },
            )
    chosen = objective(settings)
    with named_as(overrides="generator_override", ratio="generator_ratio"):
        if settings.pretrained:
            model = _with_heads(settings, chosen, encoder)
        else:
            model = chosen.make_model(encoder)
    model.compile(
        optimizer=pretraining_optimizer(settings, settings.steps),
        steps_per_execution=settings.steps_per_execution,
        jit_compile=settings.jit_compile,
        accumulation_steps=settings.accumulation_steps,
    )
    return model


def _with_heads(settings, chosen, encoder):
    """The objective's model with the heads of what it starts from, if they fit."""
    found = PretrainedHeads(settings.pretrained, settings.objective)
    like = found.settings(encoder) if chosen.has_setting("activation") else {}
    model = chosen.make_model(encoder, **like)
    kept = found.copy(model)
    own = heads_of(model) or {settings.objective}
    new = sorted(set(own) - set(kept))
    kept = f", its heads of {', '.join(kept)}" if kept else ""
    new = f", with new heads of {', '.join(new)}" if new else ""
    print(f"starting from {settings.pretrained}: its encoder and tokenizer{kept}{new}")
    return model


def pretraining_optimizer(settings: PretrainSettings, steps: int):
    """The optimizer of the settings, for so many steps."""
    return tfeff.training.adamw(
        settings.learning_rate,
        settings.warmup_steps or 0,
        steps,
        weight_decay=settings.weight_decay,
        **settings.adam(),
    )


def token_loss(model: keras.Model, metrics: dict[str, float]) -> float | None:
    """The loss of the predicted tokens; `None` if the model predicts none."""
    if "mask_positions" not in model.input:
        return None
    return metrics.get("masked_lm_loss", metrics["loss"])


def _make_data(run, settings):
    """The tokenizer and the caches of both texts, which an earlier start may have made.

    What an earlier start has made is compared, and used again.
    """
    given = _given_tokenizer(run, settings)
    if settings.cache_dir:
        tokenizer = _tokenizer(run, given, None, settings)
        length = settings.sequence_length
        with named_as(directory="cache_dir"):
            caches = open_caches(settings.cache_dir, tokenizer, length)
        source = f"cache_dir={settings.cache_dir!r}"
    else:
        texts = train_and_validation(settings)
        tokenizer = _tokenizer(run, given, texts[0], settings)
        caches = build_caches(run.path("cache"), *texts, tokenizer, settings)
        source = f"corpus={list(settings.corpus)}"
    keep_caches(run, *caches, source)
    return tokenizer, *caches


def _read_data(run, settings):
    """What `_make_data` has made or read in another process."""
    tokenizer = load_run_tokenizer(run.directory)
    folder = settings.cache_dir or run.path("cache")
    length = settings.sequence_length
    return tokenizer, *open_caches(folder, tokenizer, length, verify=False)


def _report(model, metrics, entropy):
    """Prints the metrics of the validation text, next to predicting by frequency."""
    loss = token_loss(model, metrics)
    if loss is None:
        print(f"validation loss: {metrics['loss']:.3f} nats a pair")
    else:
        print(
            f"unigram entropy of the validation text: {entropy:.3f} nats a token\n"
            f"validation loss: {loss:.3f} nats a masked token, "
            f"{abs(entropy - loss):.3f} {'below' if loss < entropy else 'above'} that"
        )
    for name, value in metrics.items():
        print(f"{name}: {value:.4f}")


def _tokenizer(run, given, documents, settings):
    """The run's tokenizer: from an earlier start, the given one, or trained now."""
    if not has_run_tokenizer(run.directory):
        if given is None:
            given = train_tokenizer(documents, settings)
        save_run_tokenizer(given, run.directory)
    if os.path.exists(run.path("tokenizer.spm")):  # A folder has its own digests.
        run.seal("tokenizer.spm")
    return load_run_tokenizer(run.directory) if given is None else given


def _check_kept(run, tokenizer, settings):
    """Raises where the run's tokenizer is not that of the encoder to start from."""
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(load_run_tokenizer(run.directory)) != fingerprint(tokenizer):
        raise ValueError(
            "`run_dir` must be a new folder where the tokenizer of `pretrained` has "
            f"changed. Received: run_dir={run.shown(run.directory)!r}, which has kept "
            f"another one than pretrained={settings.pretrained!r} has now"
        )


def _given_tokenizer(run, settings):
    """The tokenizer that the settings name; `None` where the run has its own.

    An encoder to start from has the run's, too, until the training has begun.
    """
    is_kept = has_run_tokenizer(run.directory)
    has_begun = is_kept and has_checkpoint(run.directory)
    if settings.pretrained and not has_begun:
        _, tokenizer = tfeff.tasks.load_pretrained(settings.pretrained)
        if is_kept:
            _check_kept(run, tokenizer, settings)
        return tokenizer
    if is_kept:
        return None
    if settings.cache_dir:
        tokenizer = load_run_tokenizer(settings.cache_dir)
    else:
        tokenizer = given_tokenizer(settings)
    if tokenizer is None:
        return None
    if tokenizer.vocabulary_size() > settings.vocabulary_size:
        raise ValueError(
            "`vocabulary_size` must be at least the tokenizer's "
            f"{tokenizer.vocabulary_size()}. Received: "
            f"vocabulary_size={settings.vocabulary_size}"
        )
    return tokenizer
