"""Whole models on disk, written so that a crash or a full disk loses nothing."""

import contextlib
import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from tfeff.compat.layers import sublayers
from tfeff.compat.models import frozen_alone
from tfeff.compat.optimizers import trained_variables
from tfeff.compat.saving import ReadsCopies, num_saved
from tfeff.encoders.quantization import check_keeps_training
from tfeff.layers.checks import check_model
from tfeff.storage.arguments import READ, READ_WHOLE, REPLACE, paths
from tfeff.storage.local import local_run
from tfeff.training.background import Background
from tfeff.training.loss_scale import unscaled
from tfeff.utils.checks import (
    check_bool,
    check_callable,
    check_integer,
    check_iterable,
    check_json,
    check_path,
)
from tfeff.utils.files import atomic_file
from tfeff.utils.reading import DAMAGE, raise_unreadable

_NAME = re.compile(r"step-(\d+)\.keras")
_KEEP_WITHIN = 2  # Checkpoints within an epoch; the older may replace a damaged one.
_STEP = "tfeff_step"  # The note that `Checkpoints` adds to a user's.
# Packages whose classes Keras loads without their being registered.
_LOADED = ("keras", "keras_hub", "builtins")
_NOTES = "run.json"  # A file in the archive beside Keras' own; Keras ignores it.


@paths(path=REPLACE)
def save_checkpoint(
    model: keras.Model, path: str | os.PathLike, notes: Mapping | None = None
) -> None:
    """Saves a model with its optimizer, under its name only once it is complete.

    Args:
        model: a compiled, built model.
        path: file name that ends in `.keras`. A file of that name is replaced.
        notes: JSON values by name to keep in the file.

    Raises:
        TypeError: if `model` is no Keras model, or another argument of another type.
        ValueError: if `path` does not end in `.keras`, or the model has LoRA adapters,
            which Keras does not save as such.
        OSError: if the disk is full or not writable. What was at `path` is then
            still there, and nothing else is left behind.

    Example:

    >>> import os, tempfile
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> model = tfeff.tasks.Classifier(encoder, num_classes=2)
    >>> model.compile()
    >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
    >>> save_checkpoint(model, path)
    >>> load_checkpoint(path).num_classes
    2
    """
    check_model(model)
    if not check_path("path", path).endswith(".keras"):
        raise ValueError(f"`path` must end in .keras. Received: path={path!r}")
    text = json.dumps(check_json("notes", {} if notes is None else notes))
    check_keeps_training(model)
    with atomic_file(path) as unfinished:
        model.save(unfinished)
        with zipfile.ZipFile(unfinished, "a") as archive:
            archive.writestr(_NOTES, text)


@paths(path=READ)
def load_notes(path: str) -> dict:
    """The notes that `save_checkpoint` saved with the model; may be empty.

    Args:
        path: file name of a checkpoint.

    Raises:
        ValueError: if the file is missing, truncated or corrupted.
        OSError: if the system refuses to read it.
    """
    with _archive(path) as archive:
        return _notes_in(archive)


@paths(path=READ)
def load_checkpoint(path: str | os.PathLike, compile: bool = True) -> keras.Model:
    """Loads a model that `save_checkpoint` saved, ready to train on.

    Args:
        path: file name that ends in `.keras`.
        compile: boolean; `False` leaves out the optimizer, its state and the losses.

    Returns:
        The model with its weights; compiled, with its optimizer's state, unless
        `compile` is `False`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the file is missing, truncated or corrupted, or is a run's and
            of another step than its name says, or without the state of the optimizer.
        OSError: if the system refuses to read it.

    Example: see `save_checkpoint`.
    """
    check_bool("compile", compile)
    path = check_path("path", path)
    with _archive(path) as archive:
        if damaged := archive.testzip():
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        notes = _notes_in(archive)
    if match := _NAME.fullmatch(os.path.basename(path)):
        step = notes.get(_STEP, int(match[1]))
        if step != int(match[1]):
            raise ValueError(
                f"The checkpoint {path} must be of the step in its name: it was saved "
                f"after step {step}, perhaps by another run. Delete it to go on from "
                "the one before it."
            )
    try:
        model = keras.models.load_model(path, compile=compile)
    except DAMAGE as error:
        raise_unreadable(error, path)
        # Keras adds the configuration of the whole model.
        reason, *_ = str(error).split(" Full object config")
        raise ValueError(
            f"The checkpoint {path} cannot be loaded: {type(error).__name__}: {reason}"
        ) from error
    if compile and _STEP in notes:
        _check_optimizer_is_loaded(model, path)
    return model


def check_can_be_loaded(model: keras.Model) -> None:
    """Raises where Keras would not save the configuration of a model, or not load it.

    Raises:
        ValueError: naming the classes and functions that are not registered.
    """
    try:
        unknown = sorted({*_unknown(keras.saving.serialize_keras_object(model))})
    except Exception as error:  # From anybody's `get_config`.
        raise ValueError(
            "`make_model` must make a model that can be saved. Received: a "
            f"{type(model).__name__}, whose configuration cannot be made: "
            f"{type(error).__name__}: {error}"
        ) from error
    if unknown:
        raise ValueError(
            "`make_model` must make a model whose checkpoints can be loaded: what is "
            "not of Keras must be registered by "
            "`keras.saving.register_keras_serializable`. Received: a "
            f"{type(model).__name__} with {', '.join(unknown)}"
        )


def _unknown(config):
    """The names of what a configuration has, and Keras does not find."""
    if isinstance(config, dict):
        if "class_name" in config and not _is_known(config):
            is_function = config["class_name"] == "function"
            yield str(config["config" if is_function else "class_name"]).strip("_")
        config = [*config.values()]
    if isinstance(config, (list, tuple)):
        for item in config:
            yield from _unknown(item)


def _is_known(config):
    """Whether Keras finds the class or the function of a configuration."""
    if config["class_name"] in ("function", "__lambda__"):
        try:
            keras.saving.deserialize_keras_object(config)
        except (TypeError, ValueError):  # Lambdas, unless the user has allowed them.
            return False
        return True
    if "registered_name" not in config:  # Of a type that Keras knows by its name.
        return True
    package = str(config.get("module")).partition(".")[0]
    if package in _LOADED:
        return True
    registered = config["registered_name"]
    return keras.saving.get_registered_object(registered) is not None


def _check_optimizer_is_loaded(model, path):
    """Raises where Keras has skipped the optimizer's state, and only warned of it."""
    optimizer = getattr(model, "optimizer", None)
    found = len(getattr(optimizer, "variables", ()))
    with _archive(path) as archive:
        saved = num_saved(archive)
    if saved == found:
        return
    reason = (
        "its class has a `compile` of its own, and needs `get_compile_config` and "
        "`compile_from_config` to be compiled when it is loaded"
        if optimizer is None
        else "what was frozen after the model had been compiled must be so before, in "
        "a new run"
    )
    raise ValueError(
        f"The checkpoint {path} must have the state of its model's optimizer: it has "
        f"{saved} variables, and the loaded optimizer {found}; {reason}. "
        "`compile=False` loads the weights alone"
    )


@contextlib.contextmanager
def _archive(path):
    """The archive of a checkpoint; errors are damage, unless the system refuses it."""
    if not os.path.exists(check_path("path", path)):
        raise ValueError(f"`path` must be a file: there is no checkpoint at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive.infolist())
            yield archive
    # A damaged header may ask for a password, say, or for an unknown compression.
    except Exception as error:
        raise_unreadable(error, path)
        raise ValueError(
            f"The checkpoint {path} is truncated or corrupted ({error}). Delete it "
            "to go on from the one before it."
        ) from error


def _notes_in(archive):
    if _NOTES not in archive.namelist():
        return {}
    notes = json.loads(archive.read(_NOTES))
    if not isinstance(notes, dict):
        raise ValueError(f"{_NOTES} must hold an object. It holds {notes!r:.80}")
    return notes


def _check_members(path, members):
    """Raises if the archive's list of files has damage that `zipfile` accepts."""
    with open(path, "rb") as file:
        file.seek(-22, os.SEEK_END)  # The end record; bytes 10 and 11 count the files.
        number = int.from_bytes(file.read(22)[10:12], "little")
    # A file whose comment or extra field is said to be too long hides those behind it.
    if number != len(members):
        raise zipfile.BadZipFile(f"{len(members)} files in place of {number}")
    for member in members:
        is_stored = member.compress_type == zipfile.ZIP_STORED
        if is_stored and member.compress_size != member.file_size:
            raise zipfile.BadZipFile(f"bad size of {member.filename}")


@paths(directory=READ_WHOLE)
def latest_checkpoint(directory: str | os.PathLike) -> tuple[str | None, int]:
    """The newest checkpoint of a folder.

    Args:
        directory: the folder, which need not exist: `checkpoints/` of a run.

    Returns:
        The file's path and its step; `(None, 0)` where there is none.

    Raises:
        TypeError: if `directory` is no path.

    Example:

    >>> import tempfile
    >>> latest_checkpoint(tempfile.mkdtemp())
    (None, 0)
    """
    directory = check_path("directory", directory)
    steps = checkpoint_steps(directory)
    if not steps:
        return None, 0
    return checkpoint_path(directory, steps[-1]), steps[-1]


def run_checkpoint(run_dir: str, step: int | None = None) -> tuple[str, int]:
    """The file of a checkpoint of a run, and its step.

    Args:
        run_dir: the run's directory.
        step: integer, the step; `None` for the newest.

    Raises:
        ValueError: if the run has no checkpoint of this step; it names those that
            there are.
    """
    folder = os.path.join(
        local_run("run_dir", run_dir, step, newest=True), "checkpoints"
    )
    steps = checkpoint_steps(folder)
    if not steps or step not in (None, *steps):
        kept = f"those of steps {', '.join(map(str, steps))}" if steps else "none"
        raise ValueError(
            "`step` must be that of a checkpoint that the run has kept. Received: "
            f"step {step} of {run_dir}, which has {kept}"
        )
    step = steps[-1] if step is None else step
    return checkpoint_path(folder, step), step


def checkpoint_path(directory: str, step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return os.path.join(directory, f"step-{step:08d}.keras")


def checkpoint_steps(directory: str) -> list[int]:
    """The steps of a folder's checkpoints, in increasing order.

    Raises:
        OSError: if something is there that cannot be read, such as a link to a disk
            that is missing: a run would begin anew.
    """
    try:
        names = {*os.listdir(directory)}
    except (FileNotFoundError, NotADirectoryError) as error:
        if not os.path.lexists(directory):
            return []
        reason = "it is a file, or a link to what is not there"
        raise OSError(error.errno, reason, os.fspath(directory)) from error
    steps = (int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
    # Files that other programs have named, such as step-5.keras, are none.
    return sorted(step for step in steps if checkpoint_path("", step) in names)


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
        # step may be within it, and is earlier where `fit` goes on.
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
        notes = {**self._notes(), **notes, _STEP: step}
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
