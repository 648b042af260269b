"""Whole models on disk, written so that a crash or a full disk loses nothing."""

import importlib
import os
import re
import zipfile

import keras

_NAME = re.compile(r"step-(\d+)\.keras")


def save_checkpoint(model: keras.Model, path: str) -> None:
    """Saves a model with its optimizer, under its name only once it is complete.

    Args:
        model: a compiled, built model.
        path: file name that ends in `.keras`. A file of that name is replaced.

    Raises:
        OSError: if the disk is full or not writable. What was at `path` is then
            still there, and nothing else is left behind.

    Example:

    >>> import tempfile, tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> model = tfeff.tasks.Classifier(encoder, num_classes=2)
    >>> model.compile()
    >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
    >>> save_checkpoint(model, path)
    >>> load_checkpoint(path).num_classes
    2
    """
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".partial-{os.getpid()}-{name}")
    try:
        model.save(partial)
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def load_checkpoint(path: str) -> keras.Model:
    """Loads a model that `save_checkpoint` saved, ready to train on.

    Args:
        path: file name that ends in `.keras`.

    Returns:
        The compiled model with its weights and its optimizer's state.

    Raises:
        ValueError: if the file is missing, truncated or corrupted.

    Example: see `save_checkpoint`.
    """
    if not os.path.exists(path):
        raise ValueError(f"There is no checkpoint at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except (zipfile.BadZipFile, OSError) as error:
        damaged = str(error)
    if damaged:
        raise ValueError(
            f"The checkpoint {path} is truncated or corrupted ({damaged}). Delete it "
            "to go on from the one before it."
        )
    # Keras knows a class once its module is imported, and names of tfeff are imported
    # when they are first used.
    for name in ("objectives", "tasks"):
        package = importlib.import_module(f"tfeff.{name}")
        for public in package.__all__:
            getattr(package, public)
    return keras.models.load_model(path)


def latest_checkpoint(directory: str) -> tuple[str | None, int]:
    """The newest checkpoint of a folder.

    Args:
        directory: the folder, which need not exist: `checkpoints/` of a run.

    Returns:
        The file's path and its step; `(None, 0)` where there is none.

    Example:

    >>> import tempfile
    >>> latest_checkpoint(tempfile.mkdtemp())
    (None, 0)
    """
    steps = _steps(directory)
    if not steps:
        return None, 0
    return checkpoint_path(directory, steps[-1]), steps[-1]


def checkpoint_path(directory: str, step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return os.path.join(directory, f"step-{step:08d}.keras")


def _steps(directory: str) -> list[int]:
    if not os.path.isdir(directory):
        return []
    matches = (_NAME.fullmatch(name) for name in os.listdir(directory))
    return sorted(int(match[1]) for match in matches if match)


class Checkpoints(keras.callbacks.Callback):
    """Saves the whole model after every epoch and keeps the newest few.

    Args:
        directory: folder for `step-NNNNNNNN.keras`; made if missing.
        steps_per_epoch: integer, to count steps in file names.
        keep: integer, how many checkpoints to keep. Older ones are deleted once a
            new one is safely on disk.

    Example:

    >>> callback = Checkpoints("run/checkpoints", steps_per_epoch=100, keep=3)
    """

    def __init__(self, directory: str, steps_per_epoch: int, keep: int = 2):
        super().__init__()
        self._directory = directory
        self._steps_per_epoch = steps_per_epoch
        self._keep = keep

    def on_epoch_end(self, epoch, logs=None):
        os.makedirs(self._directory, exist_ok=True)
        step = (epoch + 1) * self._steps_per_epoch
        save_checkpoint(self.model, checkpoint_path(self._directory, step))
        for old in _steps(self._directory)[: -self._keep]:
            os.remove(checkpoint_path(self._directory, old))
