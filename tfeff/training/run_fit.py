"""The training of a run directory, from where it stopped to its end."""

import contextlib
import dataclasses
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import keras

from tfeff.training.averages import take_averages
from tfeff.training.checkpoints import Checkpoints
from tfeff.training.divergence import StopWhenDiverged
from tfeff.training.early_stopping import StopEarly, earlier_losses
from tfeff.training.epochs import ResumeEpoch, StoppedWithinEpoch, StopWithinEpoch
from tfeff.training.held_signals import HeldSignals
from tfeff.training.joint_end import joint_end
from tfeff.training.metrics_file import MetricsFile, parse_rows
from tfeff.training.progress import TrainingProgress
from tfeff.training.run_callbacks import AddRates, DrawCurve, WriteBoard
from tfeff.training.run_start import begin_run
from tfeff.utils.job_output import say
from tfeff.utils.run_files import CHECKPOINTS, METRICS_TABLE, TENSORBOARD


@dataclasses.dataclass(frozen=True)
class FitSchedule:
    """How long a run trains and what it keeps; see `RunDirectory.fit`."""

    total_steps: int
    steps_per_epoch: int
    run_steps: int
    tokens_per_step: int
    patience: int | None
    keep_checkpoints: int
    keep_steps: Sequence[int]


def fit_run(
    run,
    schedule: FitSchedule,
    make_model: Callable[[], keras.Model],
    make_dataset: Callable,
    validation_data: Any,
    callbacks: Sequence[keras.callbacks.Callback],
) -> keras.Model:
    """Trains the model of a run to the end, from the newest checkpoint if there is one.

    Args:
        run: the `RunDirectory`.
        schedule: how long, and what is kept.
        make_model, make_dataset, validation_data, callbacks: those of
            `RunDirectory.fit`.

    Returns:
        The trained model.
    """
    total_steps, steps_per_epoch = schedule.total_steps, schedule.steps_per_epoch
    start = begin_run(
        run, make_model, make_dataset, validation_data, total_steps, steps_per_epoch
    )
    model, step = start.model, start.step
    metrics_file = MetricsFile(run.path(METRICS_TABLE), start.table)
    checkpoints = _checkpoints(run, schedule, metrics_file, step)
    losses = earlier_losses(parse_rows(start.table), schedule.patience)
    stop_early = StopEarly(schedule.patience, losses)
    if step == total_steps or stop_early.is_over:
        take_averages(model)
        return model
    progress = TrainingProgress(
        schedule.run_steps, steps_per_epoch, schedule.tokens_per_step, step
    )
    dataset = make_dataset(step)
    stop_when_diverged = StopWhenDiverged(
        f"{run.shown(run.path(CHECKPOINTS))} keeps what was saved before. "
        "Start a new run with a lower learning rate or a longer warm-up."
    )
    all_callbacks = [
        ResumeEpoch(
            step % steps_per_epoch, start.notes.get("metrics"), dataset.element_spec
        ),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: run.check_held()),
        AddRates(steps_per_epoch),
        *callbacks,
        stop_early,
        progress,
        stop_when_diverged,  # Before those that write files.
        *(_writers(run, metrics_file, checkpoints) if run.is_chief else []),
    ]
    stopped_at = None
    with contextlib.ExitStack() as stack:
        is_over = stack.enter_context(joint_end(stack.enter_context(HeldSignals())))
        # Published before a signal acts, which may end the process.
        stack.enter_context(run.published())
        stack.callback(checkpoints.wait)
        stack.callback(progress.close)
        stop_within_epoch = StopWithinEpoch(
            is_over, stop_when_diverged.on_epoch_end, checkpoints, steps_per_epoch, step
        )
        try:
            model.fit(
                dataset,
                initial_epoch=step // steps_per_epoch,
                epochs=total_steps // steps_per_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_data=validation_data,
                shuffle=False,
                verbose=0,
                callbacks=[*all_callbacks, stop_within_epoch],
            )
        except StoppedWithinEpoch as stop:
            stopped_at = stop.step
            # Keras does this at the end of `fit`.
            take_averages(model)
            for callback in all_callbacks:
                callback.on_train_end(stop.logs)
        run.share()  # The others do not go on where the chief cannot publish.
    if run.is_chief:
        _say_why_it_ended(schedule, stop_early, stopped_at)
    return model


def _checkpoints(run, schedule, metrics_file, step):
    """The checkpoints of the run, of which the chief removes old ones."""
    checkpoints = Checkpoints(
        run.path(CHECKPOINTS),
        schedule.steps_per_epoch,
        schedule.keep_checkpoints,
        lambda: {
            "steps_per_epoch": schedule.steps_per_epoch,
            METRICS_TABLE: metrics_file.text(),
        },
        schedule.keep_steps,
        step,
    )
    if run.is_chief:
        checkpoints.remove_old()
    return checkpoints


def _writers(run, metrics_file, checkpoints):
    """The callbacks that write files."""
    board = WriteBoard(run.path(TENSORBOARD))
    has_plots = importlib.util.find_spec("matplotlib")
    curve = [DrawCurve(run.directory)] if has_plots else []
    # Last: a checkpoint promises that its row of metrics is there.
    return [metrics_file, board, *curve, checkpoints]


def _say_why_it_ended(schedule, stop_early, stopped_at):
    """Says at which step a training ended that did not reach its last."""
    if stop_early.is_over:
        step = stop_early.epochs * schedule.steps_per_epoch
        say(
            f"the training ended at step {step:,}: no new lowest validation loss in "
            f"{schedule.patience} validations"
        )
    if stopped_at is not None:
        say(f"the training ended at step {stopped_at:,}: a callback stopped it")
