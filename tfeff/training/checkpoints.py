"""Checkpoints while `fit` trains: written by a thread, and the newest few kept."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from tfeff.compat.layers import sublayers
from tfeff.compat.models import frozen_alone
from tfeff.compat.optimizers import trained_variables
from tfeff.compat.saving import ReadsCopies
from tfeff.encoders.quantization import check_keeps_training
from tfeff.training.background import Background
from tfeff.training.checkpoint_file import STEP, save_checkpoint
from tfeff.training.checkpoint_folder import checkpoint_path, checkpoint_steps
from tfeff.training.loss_scale import unscaled
from tfeff.utils.checks import check_callable, check_integer, check_iterable
from tfeff.utils.paths import check_path

_KEEP_WITHIN = 2  # Checkpoints within an epoch; the older may replace a damaged one.


class Checkpoints(keras.callbacks.Callback):
    """Saves the whole model after every epoch; keeps the newest few, and some for good.

    The training waits until the model's variables are copied from the device into
    memory, no longer: a thread writes the copies to the disk. It writes one checkpoint
    at a time, and `fit` ends when the last one is written. Its errors, such as that
    of a full disk, are raised after the next step.

    Args:
        directory: folder for `step-NNNNNNNN.keras`; made if missing.
        steps_per_epoch: integer, the steps of an epoch of `fit`, to count steps in file
            names.
        keep: integer, how many checkpoints to keep. Older ones are deleted once a
            new one is safely on disk, and those within an epoch with them. Of those
            within the epoch that is not over, after signals or where a callback stopped
            the training, the newest two are kept.
        notes: called for the notes to save with each model, see `save_checkpoint`.
        keep_steps: integers, multiples of `steps_per_epoch`: the steps whose
            checkpoints are never deleted.
        first_step: integer, steps that are done when the training begins; `None` for
            those of the epochs before `initial_epoch` of `fit`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if a number is not positive, or one of `keep_steps` is no multiple
            of `steps_per_epoch`; before the first step, if epochs have another number
            of steps, or at the end of one where the data alone tell it, up to less than
            `steps_per_execution` more; before the first step, if the folder has
            checkpoints of later steps than those that are done, which are another
            training's, or if the model's optimizer is for other weights than those
            that train, since layers were frozen after it was compiled, or weights
            without their layers.

    Example:

    >>> callback = Checkpoints("run/checkpoints", steps_per_epoch=100, keep=3)
    >>> isinstance(callback, keras.callbacks.Callback)
    True
    """

    def __init__(
        self,
        directory: str | os.PathLike,
        steps_per_epoch: int,
        keep: int = 2,
        notes: Callable[[], Mapping] = dict,
        keep_steps: Sequence[int] = (),
        first_step: int | None = None,
    ):
        super().__init__()
        self._background = Background()
        self._directory = os.path.abspath(check_path("directory", directory))
        self._steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch)
        self._keep = check_integer("keep", keep)
        self._notes = check_callable("notes", notes)
        self._keep_steps = check_kept_steps(keep_steps, self._steps_per_epoch)
        if first_step is not None:
            first_step = check_integer("first_step", first_step, 0)
        self._first_step = first_step
        self._has_begun = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_keeps_training(self.model)
        _check_frozen(self.model)
        self._has_begun = False
        # Keras has `None` where the data do not tell it.
        self._check_steps((self.params or {}).get("steps") or self._steps_per_epoch)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._steps = 0
        if self._has_begun:
            return
        self._has_begun = True
        # Only here does Keras tell a callback which epoch is the first one. The first
        # step may be within it, and is earlier where `fit` resumes.
        self._check_folder(max(epoch * self._steps_per_epoch, self._first_step or 0))

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._background.check()
        self._steps = batch + 1
        # The last of several `steps_per_execution` may be beyond the epoch's.
        if 0 <= self._steps - self._steps_per_epoch < self.model.steps_per_execution:
            self._steps = self._steps_per_epoch

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._background.check()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        # A callback may have stopped within the epoch, which Keras then ends.
        if not self.model.stop_training:
            self._check_steps(self._steps)
        self.save(epoch * self._steps_per_epoch + self._steps)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self.wait()

    def save(self, step: int, **notes: Any) -> None:
        """Saves the model as it is after `step` steps, with more notes.

        A thread writes it, and then deletes older ones; see `wait`.
        """
        self.wait()
        os.makedirs(self._directory, exist_ok=True)
        model, path = self.model, checkpoint_path(self._directory, step)
        notes = {**self._notes(), **notes, STEP: step}
        copies = _copies(model)

        def write():
            with keras.device("cpu:0"), ReadsCopies(copies):
                save_checkpoint(model, path, notes)
            self.remove_old()

        self._background.start(write)

    def wait(self) -> None:
        """Waits until what is being saved is on the disk.

        Raises:
            OSError: if it cannot be written; those before it are still there.
        """
        self._background.wait()

    def _check_steps(self, steps):
        """Raises if the steps of an epoch are not those that file names count."""
        if steps != self._steps_per_epoch:
            raise ValueError(
                "`steps_per_epoch` must be the number of steps of an epoch. Received: "
                f"steps_per_epoch={self._steps_per_epoch}, an epoch of {steps} steps"
            )

    def _check_folder(self, first_step):
        """Raises if what the folder has is not what the training goes on from."""
        newest = max(checkpoint_steps(self._directory), default=0)
        if newest > first_step:
            epoch, within = divmod(newest, self._steps_per_epoch)
            way = f"give `fit` `initial_epoch={epoch}`"
            if within:
                way += (
                    f" and `Checkpoints` `first_step={newest}`. A callback had stopped "
                    "within that epoch, which begins anew then"
                )
            raise ValueError(
                "`directory` must have no checkpoints of another training. Received: "
                f"directory={self._directory!r}, which has one of step {newest}, for a "
                f"training that begins at step {first_step}. Use another folder, or "
                f"go on from that checkpoint: load it, and {way}"
            )

    def remove_old(self) -> None:
        """Deletes checkpoints older than the newest few, but those kept for good."""
        steps = checkpoint_steps(self._directory)
        whole = [step for step in steps if step % self._steps_per_epoch == 0]
        within = [step for step in steps if step > max(whole, default=0)]
        kept = {*whole[-self._keep :], *within[-_KEEP_WITHIN:], *self._keep_steps}
        for step in steps:
            if step not in kept:
                os.remove(checkpoint_path(self._directory, step))


def _check_frozen(model):
    """Raises if a loaded checkpoint would train other weights than its optimizer's.

    A loaded model knows which layers are frozen: its optimizer is for the others.
    """
    if (frozen := frozen_alone(model)) and not _freezes_itself(model):
        raise ValueError(
            "The model must have no weights that are frozen alone for a checkpoint, "
            "which keeps the layers that are: freeze its layer, and compile again. "
            f"Received: trainable=False of {frozen[0].path}, and True of its layer"
        )
    optimizer = unscaled(model.optimizer)
    if not getattr(optimizer, "built", False):
        return
    known, trained = trained_variables(optimizer), model.trainable_variables
    if [id(x) for x in known] != [id(x) for x in trained]:
        raise ValueError(
            "The model's optimizer must be for the weights that train, for a "
            "checkpoint: compile again after freezing layers, or freeing them. "
            f"Received: an optimizer of {len(known)} weights, {len(trained)} that train"
        )


def _freezes_itself(model):
    """Whether the model is made with as many weights that train as it has now."""
    again = type(model).from_config(model.get_config())
    again.build_from_config(model.get_build_config())
    return len(again.trainable_variables) == len(model.trainable_variables)


def _copies(model):
    """All variables that are saved, with their values in memory.

    A model within, such as a teacher, is saved with its own optimizer, if it has one.
    """
    variables = list(model.variables)
    for part in sublayers(model):
        variables += getattr(getattr(part, "optimizer", None), "variables", ())
    return [(variable, variable.numpy()) for variable in variables]


def check_kept_steps(
    keep_steps: Sequence[int], steps_per_epoch: int, total_steps: int | None = None
) -> list[int]:
    """The steps whose checkpoints are kept for good, as a list of integers.

    Raises:
        TypeError: if they are not integers.
        ValueError: if one is no multiple of `steps_per_epoch`, or beyond `total_steps`.
    """
    check_iterable("keep_steps", keep_steps, "integers")
    keep_steps = [check_integer("keep_steps", step) for step in keep_steps]
    if any(step % steps_per_epoch for step in keep_steps):
        raise ValueError(
            "`keep_steps` must be multiples of the steps between checkpoints. "
            f"Received: keep_steps={keep_steps}, with a checkpoint every "
            f"{steps_per_epoch} steps"
        )
    if total_steps is not None and any(step > total_steps for step in keep_steps):
        raise ValueError(
            f"`keep_steps` must be at most {total_steps}, the steps of the run. "
            f"Received: keep_steps={keep_steps}"
        )
    return keep_steps
