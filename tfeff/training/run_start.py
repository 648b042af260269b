"""Where a start of a run begins: at its newest checkpoint, or at step 0."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras

from tfeff.training.agreement import check_equal_settings, join_workers
from tfeff.training.checkpoint_file import load_checkpoint, load_notes
from tfeff.training.checkpoint_folder import latest_checkpoint
from tfeff.training.loadable import check_can_be_loaded
from tfeff.training.metrics_file import restore
from tfeff.training.workers import from_chief, several_workers
from tfeff.utils.digests import sha256_of_arrays
from tfeff.utils.run_files import CHECKPOINTS, METRICS_TABLE


@dataclasses.dataclass(frozen=True)
class RunStart:
    """The state that one start of a run goes on from.

    Args:
        model: the model, loaded or new.
        step: integer, the steps that are done.
        notes: the notes of the checkpoint.
        table: the text of `metrics.csv` so far.
    """

    model: Any
    step: int
    notes: Mapping
    table: str


def begin_run(
    run,
    make_model: Callable[[], keras.Model],
    make_dataset: Callable,
    validation_data: Any,
    total_steps: int,
    steps_per_epoch: int,
) -> RunStart:
    """Loads the newest checkpoint or makes the model, and restores the metrics.

    All of several workers call it.

    Args:
        run: the `RunDirectory`.
        make_model, make_dataset, validation_data, total_steps, steps_per_epoch: those
            of `RunDirectory.fit`.

    Raises:
        ValueError: if the steps do not fit those trained so far; if the new models of
            several workers have other weights; see `join_workers`.
    """
    if several_workers():
        steps = {"total_steps": total_steps, "steps_per_epoch": steps_per_epoch}
        datasets = (make_dataset(0), validation_data)
        checkpoint, step = join_workers(run, steps, datasets)
    else:
        checkpoint, step = latest_checkpoint(run.path(CHECKPOINTS))
    if step > total_steps:
        raise ValueError(
            "`total_steps` must be at least the steps that the run has trained. "
            f"Received: total_steps={total_steps}, a checkpoint of step {step}"
        )
    model, notes = load_or_make(checkpoint, make_model)
    if checkpoint is None and several_workers():
        # TensorFlow makes variables equal, and not what is assigned to them then.
        digest = sha256_of_arrays(model.get_weights())
        check_equal_settings({"weights": digest[:16]})
    if steps_per_epoch % model.steps_per_execution:
        raise ValueError(
            "`steps_per_epoch` must be a multiple of the model's "
            f"`steps_per_execution`. Received: steps_per_epoch={steps_per_epoch}, "
            f"steps_per_execution={model.steps_per_execution}"
        )
    # Within an epoch a training goes on as it began; at its end, it may change.
    before = notes.get("steps_per_epoch")
    if before != steps_per_epoch and (step % (before or 1) or step % steps_per_epoch):
        raise ValueError(
            "`steps_per_epoch` must be that of the run's checkpoints. Received: "
            f"steps_per_epoch={steps_per_epoch}, a checkpoint of step {step} with "
            f"steps_per_epoch={before}"
        )
    return RunStart(model, step, notes, restore_table(run, step, notes))


def load_or_make(
    checkpoint: str | None, make_model: Callable[[], keras.Model]
) -> tuple[Any, Mapping]:
    """The model of a checkpoint and its notes; without a checkpoint, a new model."""
    if checkpoint is None:
        model = make_model()
        check_can_be_loaded(model)
        return model, {METRICS_TABLE: ""}
    return load_checkpoint(checkpoint), load_notes(checkpoint)


def restore_table(run, step: int, notes: Mapping) -> str:
    """Restores `metrics.csv` in the chief; returns its text in all workers."""
    path = run.path(METRICS_TABLE)
    return from_chief(lambda: restore(path, step, notes.get(METRICS_TABLE)))
