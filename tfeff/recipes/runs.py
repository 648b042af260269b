"""Run directories of recipes, and checks that several recipes share."""

import contextlib
import logging
import math
import os
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

import tfeff
from tfeff.recipes.fields import fields_of
from tfeff.recipes.moved_data import moved
from tfeff.recipes.settings import Settings, of_command
from tfeff.storage.arguments import READ_MODEL, paths
from tfeff.training.held_signals import HeldSignals
from tfeff.training.scores import score_text
from tfeff.training.workers import several_workers
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.job_output import job_output
from tfeff.utils.json_files import read_object
from tfeff.utils.loggers import quieter
from tfeff.utils.naming import named_as
from tfeff.utils.paths import check_model_path, is_url
from tfeff.utils.random_state import own_random_state
from tfeff.utils.run_files import CONFIG


@contextlib.contextmanager
def open_run(
    settings: Any, strategy: tf.distribute.Strategy | None = None
) -> Iterator[tfeff.training.RunDirectory]:
    """Opens the run directory of settings; its lock is released at the end.

    Args:
        settings: they have `run_dir`.
        strategy: that of the training, if it may have several workers.
    """
    if not is_url(settings.run_dir):
        # It gets an export, and the run works with its absolute path.
        check_model_path("run_dir", os.path.abspath(settings.run_dir))
    strategy = strategy or tf.distribute.get_strategy()

    def upgrade(config):
        config = upgraded(type(settings), settings.run_dir, config)
        return config | moved(settings, settings.run_dir, config)

    with contextlib.ExitStack() as stack:
        # A signal between making and entering it would leave it locked.
        with HeldSignals(), strategy.scope(), named_as(directory="run_dir"):
            run = tfeff.training.RunDirectory(
                settings.run_dir, settings.config(), upgrade
            )
            stack.enter_context(run)
        yield run


def upgraded(cls: type[Settings], folder: str, config: dict) -> dict:
    """The configuration of a run or a cache as this version writes it.

    Args:
        cls: its settings.
        folder: where it is.
        config: what its `config.json` holds.

    Raises:
        ValueError: if it is of another command, or has names that are no settings of
            the class, which names the argument `directory`; if a value is none that
            the setting can have, which names the file.
    """
    known = {"command", *(field.name for field in fields_of(cls))}
    difference = None
    if config.get("command") != cls.command:
        difference = f"it is {of_command(config)}, not of `tfeff {cls.command}`"
    elif others := sorted(set(config) - known):
        difference = f"{cls.__name__} has no {', '.join(others)}"
    if difference is not None:
        raise ValueError(
            "`directory` must be another folder, or one that this command has made. "
            f"Received: directory={folder!r}, whose config.json is of another command, "
            f"or of another version of tfeff: {difference}"
        )
    try:
        return cls.upgraded(config)
    except (TypeError, ValueError) as error:
        path = os.path.join(folder, CONFIG)
        raise ValueError(f"{path} must hold {cls.__name__}: {error}") from error


@paths(run_dir=READ_MODEL)
def read_config(run_dir: str) -> dict:
    """The configuration of a run's directory.

    Raises:
        ValueError: if it is missing or damaged.
    """
    path = os.path.join(run_dir, CONFIG)
    if not os.path.isfile(path):
        raise ValueError(
            "`run_dir` must be the folder of a run, which has a config.json. "
            f"Received: run_dir={run_dir!r}"
        )
    return read_object(path)


@contextlib.contextmanager
def recipe_running() -> Iterator[None]:
    """The changes that every recipe makes to the process, and undoes.

    TensorFlow's messages about exports are left out, and lines that cannot be printed:
    see `job_output`. The recipe's seeds are not those of the code that calls it.

    Raises:
        ValueError: on another backend: recipes use strategies and write SavedModels.
    """
    check_tensorflow("Recipes, which are the commands of tfeff that run models,")
    with (
        quieter("absl", logging.WARNING),
        quieter("tensorflow", logging.WARNING),
        job_output(),
        own_random_state(),
    ):
        yield


def pads_to_longest(settings: Any, encoder: tfeff.encoders.Encoder) -> bool:
    """Whether batches are padded to their longest row alone, where nobody chooses.

    They are not where more padding changes the outputs, nor on a TPU, which compiles
    for each shape.
    """
    return not (encoder.length_dependent or settings.strategy == "tpu")


def examples_in_step(
    settings: Any, batch_size: int, strategy: tf.distribute.Strategy
) -> int:
    """The number of examples in a step: those of all batches of an update.

    Raises:
        ValueError: if they are more than a tensor can hold; if several batches
            cannot be divided among the replicas, or a batch among the replicas of
            several workers, each of which reads its own rows.
    """
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        in_parts = several_workers() or settings.accumulation_steps > 1
    if in_parts and batch_size % replicas:
        raise ValueError(
            "The batch size must be a multiple of the number of replicas with "
            "`accumulation_steps`, and with several workers. Received: batches of "
            f"{batch_size}, {replicas} replicas, "
            f"accumulation_steps={settings.accumulation_steps}"
        )
    in_step = batch_size * settings.accumulation_steps
    if in_step * (settings.sequence_length or 1) > tf.int32.max:
        is_summed = settings.accumulation_steps > 1
        raise ValueError(
            f"`{'accumulation_steps' if is_summed else 'batch_size'}` must make steps "
            f"of at most {tf.int32.max:,} tokens. Received: {batch_size=}, "
            f"accumulation_steps={settings.accumulation_steps}, "
            f"sequence_length={settings.sequence_length}"
        )
    return in_step


def check_batch_sizes(settings: Any, strategy: tf.distribute.Strategy) -> None:
    """Raises where a batch size of a grid makes no step, as `examples_in_step` does."""
    with named_as(batch_size="batch_sizes"):
        for batch_size in settings.batch_sizes:
            examples_in_step(settings, batch_size, strategy)


def make_optimizer(settings: Any, learning_rate: float, steps: int, **others):
    """AdamW that warms up for a share of the steps and decays within them."""
    return tfeff.training.adamw(
        learning_rate,
        math.floor(settings.warmup * steps),
        steps,
        **{"weight_decay": settings.weight_decay, **others},
    )


def check_finite(model: keras.Model) -> None:
    """Raises where a training left weights that are not finite."""
    if not tfeff.training.is_finite(model):
        raise tfeff.training.Diverged(
            "The training has diverged: no setting gave a model. Lower rates may do; a "
            "new `run_dir` is needed."
        )


def metrics_line(metrics: dict[str, float]) -> str:
    """Metrics in a line."""
    return ", ".join(f"{name} {score_text(value)}" for name, value in metrics.items())
