"""The file of a checkpoint: a whole model with notes, and every damage is found."""

import contextlib
import json
import os
import warnings
import zipfile
from collections.abc import Mapping

import keras

from tfeff.compat.layers import seed_states
from tfeff.compat.saving import num_saved
from tfeff.encoders.quantization import check_keeps_training
from tfeff.layers.checks import check_model
from tfeff.storage.arguments import READ, REPLACE, paths
from tfeff.training.checkpoint_folder import step_in_name
from tfeff.utils.checks import check_bool, check_json
from tfeff.utils.definitions import UNREGISTERED
from tfeff.utils.digests import check_file
from tfeff.utils.files import atomic_file
from tfeff.utils.paths import check_path
from tfeff.utils.reading import DAMAGE, raise_unreadable
from tfeff.utils.run_files import CHECKPOINTS

STEP = "tfeff_step"  # The note that `Checkpoints` adds to a user's.
# Files in the archive beside Keras' own, which Keras ignores.
_NOTES = "run.json"
_SEEDS = "seeds.json"


@paths(path=REPLACE)
def save_checkpoint(
    model: keras.Model, path: str | os.PathLike, notes: Mapping | None = None
) -> None:
    """Saves a model with its optimizer, under its name only once it is complete.

    The states of random generators, such as those of dropout, are saved with any model,
    where Keras leaves them out: the loaded one draws what this one would have drawn.

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
            seeds = [state.numpy().tolist() for state in seed_states(model)]
            archive.writestr(_SEEDS, json.dumps(seeds))


@paths(path=READ)
def load_notes(path: str) -> dict:
    """The notes that `save_checkpoint` saved with the model; may be empty.

    Args:
        path: file name of a checkpoint.

    Raises:
        ValueError: if the file is missing, truncated or corrupted, or is not as a
            `SHA256SUMS` beside it, or of its run, has it.
        OSError: if the system refuses to read it.
    """
    _check_digest(path)
    with _archive(path) as archive:
        return _notes_in(archive)


def check_whole(path: str) -> None:
    """Raises a ValueError unless all parts of a checkpoint have their checksums."""
    with _archive(path) as archive:
        _check_parts(archive)


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
        ValueError: if the file is missing, truncated or corrupted, is not as a
            `SHA256SUMS` beside it, or of its run, has it, or is a run's and of another
            step than its name says, or without the state of the optimizer.
        OSError: if the system refuses to read it.

    Example: see `save_checkpoint`.
    """
    check_bool("compile", compile)
    path = check_path("path", path)
    _check_digest(path)
    with _archive(path) as archive:
        _check_parts(archive)
        notes = _notes_in(archive)
        seeds = _json_in(archive, _SEEDS, list)
    if (named := step_in_name(os.path.basename(path))) is not None:
        step = notes.get(STEP, named)
        if step != named:
            raise ValueError(
                f"The checkpoint {path} must be of the step in its name: it was saved "
                f"after step {step}, perhaps by another run. Delete it to go on from "
                "the one before it."
            )
    try:
        model = keras.models.load_model(path, compile=compile)
    except (*DAMAGE, ImportError) as error:
        raise_unreadable(error, path)
        # Keras adds the configuration of the whole model.
        reason, *_ = str(error).split(" Full object config")
        advice = UNREGISTERED if "Could not locate" in reason else ""
        raise ValueError(
            f"The checkpoint {path} cannot be loaded: {type(error).__name__}: {reason}"
            f"{advice}"
        ) from error
    _restore_seeds(model, seeds, path)
    if compile and STEP in notes:
        _check_optimizer_is_loaded(model, path)
    return model


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


def _check_parts(archive):
    if damaged := archive.testzip():
        raise zipfile.BadZipFile(f"bad checksum of {damaged}")


def _check_digest(path):
    """Compares a checkpoint with its digest: a finished run has those of all files."""
    check_file(path)
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) == CHECKPOINTS:
        check_file(path, os.path.dirname(folder))


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
    return _json_in(archive, _NOTES, dict)


def _json_in(archive, name, kind):
    """The content of a file of JSON; empty in a checkpoint without it."""
    if name not in archive.namelist():
        return kind()
    content = json.loads(archive.read(name))
    if not isinstance(content, kind):
        raise ValueError(
            f"{name} must hold a {kind.__name__}. It holds {content!r:.80}"
        )
    return content


def _restore_seeds(model, seeds, path):
    states = seed_states(model)
    if seeds and len(seeds) != len(states):
        warnings.warn(
            f"The checkpoint {path} has the states of {len(seeds)} random generators, "
            f"the loaded model {len(states)}: dropout will draw other numbers than it "
            "would have. Layers must make generators in `__init__` or `build`",
            stacklevel=1,
        )
        return
    for state, seed in zip(states, seeds):
        state.assign(seed)


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
