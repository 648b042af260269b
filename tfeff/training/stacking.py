"""Progressive stacking: a deep model trained through shallower ones."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras

from tfeff.training.agreement import agree_on_checkpoint
from tfeff.training.averages import check_no_averages
from tfeff.training.checkpoint_file import load_notes
from tfeff.training.checkpoint_folder import checkpoint_path, latest_checkpoint
from tfeff.training.checkpoints import Checkpoints, check_kept_steps
from tfeff.training.double_depth import OPTIMIZERS, double_depth
from tfeff.training.early_stopping import StopAtPlateau, check_patience, earlier_losses
from tfeff.training.lost_workers import lost_workers_named
from tfeff.training.metrics_file import parse_rows
from tfeff.training.other_weights import check_leaves_weights
from tfeff.training.run import RunDirectory
from tfeff.training.run_start import load_or_make, restore_table
from tfeff.training.workers import from_chief
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.run_files import CHECKPOINTS


@lost_workers_named()
def train_by_stacking(
    run: RunDirectory,
    make_model: Callable[[], keras.Model],
    make_dataset: Callable,
    *,
    num_layers: int,
    switch_steps: Sequence[int],
    total_steps: int,
    steps_per_epoch: int,
    tokens_per_step: int,
    validation_data: Any = None,
    patience: int | None = None,
    optimizer: str = "copy",
    keep_checkpoints: int = 2,
    keep_steps: Sequence[int] = (),
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> keras.Model:
    """Trains a model of `L / 2^k` layers, and doubles it `k` times on the way to `L`.

    The model grows (`tfeff.training.double_depth`) after each of `k` steps, or earlier
    where the validation loss stops falling. Steps, data and the run's files count
    through all stages; each row of `metrics.csv` has its `num_layers`. The checkpoint
    of the step at which the model grows holds the grown model, so that a killed run
    goes on at the depth it had, to the same numbers.

    Call it in the scope of the distribution strategy.

    Args:
        run: the run directory.
        make_model: makes the compiled model of the first stage, with an `encoder`
            of `L / 2^k` blocks; not called on resuming.
        make_dataset: as for `RunDirectory.fit`.
        num_layers: integer `L`, blocks of the model in the end.
        switch_steps: `k` increasing integers, multiples of `steps_per_epoch` below
            `total_steps`: the steps after which the model grows at the latest.
        total_steps: integer, steps of all stages together.
        steps_per_epoch: integer, as for `RunDirectory.fit`.
        tokens_per_step: integer, as for `RunDirectory.fit`.
        validation_data: as for `RunDirectory.fit`; needed for `patience`.
        patience: integer, validations in a row without a new lowest `val_loss` of
            the stage, after which the model grows before its `switch_steps`; `None`
            disables this.
        optimizer: string, as for `double_depth`: `"copy"` for the moments of each layer
            in both of its copies, `"reset"` for new ones, as the paper has it; the
            schedule of the rate goes on through all stages.
        keep_checkpoints: integer, as for `RunDirectory.fit`.
        keep_steps: integers, as for `RunDirectory.fit`; of a step at which the model
            grows, the grown model is kept.
        callbacks: as for `RunDirectory.fit`, which is called for each stage. One that
            stops the training ends all stages. None may put back earlier weights at
            the end of a stage, of which the next one would be made.

    Returns:
        The trained model, of full depth unless a callback has stopped the training.

    Raises:
        TypeError: if a number is not an integer.
        ValueError: if the steps do not fit each other or those trained so far,
            `patience` comes without validation data, also of earlier epochs of the
            stage, the first model has not `L / 2^k` blocks, `optimizer` is another
            string, that of a model that is to grow keeps moving averages of weights
            (`use_ema`), or a callback puts back earlier weights, as `KeepBest` does.

    Example: `tfeff.recipes.stack` is one.

    Reference:
        Gong et al., "Efficient training of BERT by progressively stacking",
        algorithm 1.
    """
    switch_steps = list(switch_steps)
    num_layers = check_integer("num_layers", num_layers)
    check_switch_steps(switch_steps, total_steps, steps_per_epoch)
    keep_steps = check_kept_steps(keep_steps, steps_per_epoch, total_steps)
    patience = check_patience(patience, validation_data)
    check_choice("optimizer", optimizer, OPTIMIZERS)
    check_leaves_weights(callbacks)
    checkpoints = run.path(CHECKPOINTS)
    checkpoint, step = agree_on_checkpoint(run)
    model, notes = load_or_make(checkpoint, make_model)
    # The rows tell whether a stage is over.
    rows = parse_rows(restore_table(run, step, notes))
    growths = _growths_left(model.encoder.num_layers, num_layers, len(switch_steps))
    if not checkpoint and growths < len(switch_steps):
        raise ValueError(
            "`make_model` must make a model of `num_layers` / 2^k layers, with k the "
            f"number of `switch_steps`. Received: {model.encoder.num_layers} layers, "
            f"num_layers={num_layers}, switch_steps={switch_steps}"
        )
    if growths:
        check_no_averages("make_model", model.optimizer)
    for left in range(growths, -1, -1):
        depth = model.encoder.num_layers
        of_stage = patience if left else None
        stage = StopAtPlateau(of_stage, _losses_of_stage(rows, depth, of_stage))
        if not stage.is_over:
            last = switch_steps[-left] if left else total_steps

            def grown(model: keras.Model = model) -> keras.Model:
                return model

            model = run.fit(
                grown,
                make_dataset,
                total_steps=last,
                steps_per_epoch=steps_per_epoch,
                tokens_per_step=tokens_per_step,
                validation_data=validation_data,
                keep_checkpoints=keep_checkpoints,
                keep_steps=[kept for kept in keep_steps if kept <= last],
                callbacks=[_depth_added(depth), *callbacks, stage],
                run_steps=total_steps,
            )
            if model.stop_training and not stage.has_ended:
                return model
            step = from_chief(lambda: latest_checkpoint(checkpoints)[1])
        if left:
            model = double_depth(model, optimizer)
            saver = Checkpoints(
                checkpoints,
                steps_per_epoch,
                keep_checkpoints,
                functools.partial(load_notes, checkpoint_path(checkpoints, step)),
                keep_steps,
            )
            saver.set_model(model)
            from_chief(functools.partial(_save, saver, step))
    return model


def _save(saver, step):
    """Saves a model in this process alone, and waits until it is on the disk.

    In the strategy's scope all workers would have to save it together.
    """
    saver.save(step)
    saver.wait()


def _depth_added(num_layers):
    """A callback that notes the depth in the metrics."""
    return keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(num_layers=num_layers)
    )


def _losses_of_stage(rows, num_layers, patience):
    own = (row for row in rows if int(row["num_layers"]) == num_layers)
    return earlier_losses(own, patience)


def _growths_left(depth, num_layers, most):
    """The number of doublings from this depth to `num_layers`."""
    for growths in range(most + 1):
        if depth * 2**growths == num_layers:
            return growths
    raise ValueError(
        "`num_layers` must be the model's number of layers, doubled at most as often "
        f"as there are `switch_steps`. Received: num_layers={num_layers}, a model of "
        f"{depth} layers, {most} switch_steps"
    )


def check_switch_steps(
    switches: Sequence[int], total: int, steps_per_epoch: int
) -> None:
    """Raises unless the steps increase up to below `total`, all of whole epochs."""
    steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch)
    for step in switches:
        check_integer("switch_steps", step)
    check_integer("total_steps", total)
    steps = [*switches, total]
    multiples = all(step % steps_per_epoch == 0 for step in steps)
    if not multiples or any(a >= b for a, b in zip(steps, steps[1:])):
        raise ValueError(
            "`switch_steps` must increase up to below `total_steps`, all multiples of "
            f"`steps_per_epoch`. Received: switch_steps={switches}, "
            f"total_steps={total}, steps_per_epoch={steps_per_epoch}"
        )
