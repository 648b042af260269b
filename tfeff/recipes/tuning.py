"""One training on a task: it ends with the weights that are best on its dev part."""

import contextlib
import dataclasses
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import keras
import tensorflow as tf

import tfeff
from tfeff.encoders.quantization import check_keeps_quantization
from tfeff.recipes.answer_settings import AnswerSettings
from tfeff.recipes.baselines import scores_line
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.embed_settings import EmbedSettings
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.run_exports import RunModel, has_model
from tfeff.recipes.runs import check_finite, examples_in_step, make_optimizer
from tfeff.recipes.starting import load_for_training
from tfeff.training import interrupted_fit
from tfeff.training.held_signals import HeldSignals
from tfeff.training.interrupted_fit import interrupted_step
from tfeff.training.scores import write_metrics
from tfeff.utils.files import copy_file
from tfeff.utils.naming import named_as
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import CELLS, DEV_METRICS_TABLE, INTERRUPTED, METRICS, MODEL

TunedSettings: TypeAlias = AnswerSettings | EmbedSettings | FinetuneSettings
LORA = "lora.safetensors"


def make_grid(
    run: tfeff.training.RunDirectory,
    settings: TunedSettings,
    metric: str,
    **axes: Sequence[float],
) -> tfeff.training.Grid:
    """The grid of a run: `axes`, and the other settings that have several values.

    One value of those is no axis, and no part of the names of cells.
    """
    # Where `steps` are given, all numbers of epochs are the same training.
    epochs = settings.epochs[:1] if settings.steps else settings.epochs
    for name, values in ("epochs", epochs), ("weight_decay", settings.weight_decay):
        if len(values) != 1:
            axes[name] = values
    return tfeff.training.Grid(run.path(CELLS), axes, settings.seeds, metric)


def enable_lora(settings: TunedSettings, encoder: tfeff.encoders.Encoder) -> None:
    """Gives the encoder the adapters of the settings, if they have any.

    Args:
        settings: of the recipe.
        encoder: one that is not trained.

    Raises:
        ValueError: if there are adapters to save, and none to train; if tables are new
            or grow, which would stay as they begin; if the encoder is quantized, so
            that it could not be saved with them; or if it has no layers for them.
    """
    if settings.lora_rank is None:
        if settings.save_lora:
            raise ValueError(
                "`save_lora` must be left out without `lora_rank`. Received: "
                "save_lora=True"
            )
        return
    new: dict[str, object] = {}
    if settings.swap_positions is not None:
        new["swap_positions"] = settings.swap_positions
    if settings.sequence_length and encoder.position == "absolute":
        as_pretrained = dataclasses.replace(settings, sequence_length=None)
        step = settings.pretrained_steps[:1]
        longest = load_for_training(as_pretrained, *step)[0].max_sequence_length
        if settings.sequence_length > longest:
            new["sequence_length"] = settings.sequence_length
    if new:
        raise ValueError(
            "`lora_rank` must be left out where tables of positions are new or grow: "
            "adapters train nothing else, and these would stay as they begin. "
            f"Received: lora_rank={settings.lora_rank}"
            + "".join(f", {name}={value!r}" for name, value in new.items())
        )
    with named_as(rank="lora_rank"):
        encoder.enable_lora(settings.lora_rank)
    check_keeps_quantization(encoder)


def best_model(summary: Mapping) -> str:
    """The path of the model of the best cell.

    Args:
        summary: what `tfeff.training.Grid.run` returns.

    Raises:
        ValueError: if the cell has none any more.
    """
    folder = summary["best"]["folder"]
    if not is_there(path := os.path.join(folder, MODEL)):
        raise ValueError(
            f"{folder} must have the model that it has trained, {MODEL}. It is "
            "missing: delete the folder to have the cell trained again"
        )
    return path


def best_of(
    settings: TunedSettings, summary: Mapping, run: tfeff.training.RunDirectory
) -> RunModel:
    """The model of the best cell, whose adapters are copied to the run.

    Args:
        settings: of the recipe.
        summary: as of `best_model`.
        run: the run directory.

    Raises:
        ValueError: if the cell has none any more.
        Diverged: if the model's weights are not finite.
    """
    path = best_model(summary)
    model = tfeff.training.load_checkpoint(path)
    check_finite(model)
    if settings.save_lora:
        copy_file(os.path.join(os.path.dirname(path), LORA), run.path(LORA))
    return RunModel(model, has_model(run, path), functools.partial(copy_file, path))


@dataclasses.dataclass(frozen=True)
class Tuning:
    """How the cells of a grid are trained.

    Attributes:
        settings: of the recipe.
        strategy: where to train.
        callbacks: those of every training.
        metric: the name of the metric that tells the best.
        baseline: as of `make_baseline`, to print beside the metrics.
        num_examples: how many there are to train on.
        sequence_length: tokens of an example.
        make_model: called with a seed, and the step of pretraining if the grid has
            several; makes the model, not compiled, in the strategy's scope.
        make_batches: called with the number of examples in a step, and a seed.
        evaluate: as for `tfeff.training.KeepBest`.
    """

    settings: TunedSettings
    strategy: tf.distribute.Strategy
    callbacks: Callbacks
    metric: str
    baseline: dict
    num_examples: int
    sequence_length: int
    make_model: Callable[[int, int | None], keras.Model]
    make_batches: Callable[[int, int], tf.data.Dataset]
    evaluate: Callable[[keras.Model], dict[str, float]]

    def train(
        self,
        folder: str,
        *,
        learning_rate: float,
        batch_size: int,
        seed: int,
        pretrained_step: int | None = None,
        **others: float,
    ) -> dict[str, float]:
        """Trains one model, saves it at its best, returns its metrics.

        Args:
            folder: the cell's folder, for `dev_metrics.csv` and `model.keras`.
            learning_rate, batch_size, seed: of the cell.
            pretrained_step: of the cell, if the grid has the run's steps.
            **others: `epochs` and `weight_decay` of the cell, if the grid has several.
        """
        settings = self.settings
        cell: dict[str, float] = {
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "seed": seed,
            **others,
        }
        if pretrained_step is not None:
            print(f"pretrained for {pretrained_step:,} steps")
            cell["pretrained_step"] = pretrained_step
        print(
            f"learning rate {learning_rate:g}, batch size {batch_size}, seed {seed}"
            + "".join(f", {x.replace('_', ' ')} {others[x]:g}" for x in others)
        )
        saved = os.path.join(folder, INTERRUPTED)
        if first_step := interrupted_step(saved):
            with contextlib.suppress(FileNotFoundError):
                # Its rows are saved with the weights.
                os.remove(os.path.join(folder, DEV_METRICS_TABLE))
        keras.utils.set_random_seed(seed)
        in_step = examples_in_step(settings, batch_size, self.strategy)
        epochs = others.get("epochs", settings.epochs[0])
        steps = settings.num_steps(self.num_examples, in_step, epochs)
        self._print_warnings(in_step, steps)
        progress = tfeff.training.TrainingProgress(
            steps,
            steps,
            in_step * self.sequence_length,
            first_step,
            metric=f"dev_{self.metric.removeprefix('dev_')}",
        )
        with HeldSignals() as signals:  # Until the model and its metrics are written.
            with (
                contextlib.closing(progress),
                self.callbacks.of_training(
                    folder,
                    {**settings.config(), **cell},
                    # The folder is made anew where a killed training begins again.
                    id_file=f"{folder}.wandb_id.txt",
                    name=os.path.join(
                        settings.run_dir, CELLS, os.path.basename(folder)
                    ),
                ) as own,
                self.strategy.scope(),
            ):
                model = self.make_model(seed, pretrained_step)
                weight_decay = others.get("weight_decay", settings.weight_decay[0])
                self._compile(model, learning_rate, steps, weight_decay)
                best = tfeff.training.KeepBest(
                    self.evaluate,
                    self.metric,
                    settings.eval_every,
                    folder,
                    settings.patience,
                )
                interrupted_fit.fit(
                    model,
                    self.make_batches(in_step, seed),
                    steps,
                    saved,
                    signals,
                    [*own, progress],
                    best,
                )
            if settings.save_lora:
                tfeff.tasks.save_lora(model, os.path.join(folder, LORA))
            model = tfeff.encoders.merge_lora(model)
            tfeff.training.save_checkpoint(model, os.path.join(folder, MODEL))
            # Grid writes them, too; before that a signal would lose the cell.
            write_metrics(best.best, os.path.join(folder, METRICS))
        print_best(best, self.metric, steps, self.baseline)
        return best.best

    def _print_warnings(self, in_step, steps):
        if in_step > self.num_examples:
            print(
                f"  each step takes {in_step:,} rows of {self.num_examples:,} "
                "examples: some of them more than once"
            )
        if (every := self.settings.eval_every) >= steps:
            print(
                f"  it is evaluated after its {steps:,} steps alone, as "
                f"--eval_every={every} says"
            )

    def _compile(self, model, learning_rate, steps, weight_decay):
        """Compiles a model, which has adapters afterwards if the settings say so."""
        settings = self.settings
        if settings.lora_rank is not None:
            model.encoder.enable_lora(settings.lora_rank)
        model.compile(
            make_optimizer(
                settings,
                learning_rate,
                steps,
                weight_decay=weight_decay,
                layer_decay=settings.layer_decay,
                **settings.adam(),
            ),
            accumulation_steps=settings.accumulation_steps,
            jit_compile=False,  # XLA would compile for each length of a batch.
        )


def print_best(
    best: tfeff.training.KeepBest, metric: str, steps: int, baseline: dict
) -> None:
    """Prints where the kept weights are from, and why a training ended early."""
    line = scores_line(best.best, baseline)
    which = "newest" if math.isnan(best.best[metric]) else "best"
    print(f"  {which} at step {best.best_step:,} of {steps:,}: {line}")
    if best.diverged_step is not None:
        print(f"  the training had diverged at step {best.diverged_step:,}")
    if best.stopped_step is not None:
        print(f"  nothing better came: the training ended at {best.stopped_step:,}")
    elif best.diverged_step is None and best.last_step < steps:
        print(f"  a callback ended the training at step {best.last_step:,}")
