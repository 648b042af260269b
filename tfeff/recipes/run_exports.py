"""The model, preset and export of a run, over several starts of it."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import tfeff
from tfeff.encoders.encoder import encoder_of
from tfeff.encoders.preset_layout import ENCODER_CONFIG
from tfeff.utils.digests import FILE_NAME, check_digests, sha256
from tfeff.utils.files import atomic_folder
from tfeff.utils.naming import advised
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import EXPORT, MODEL, PRESET

# Of a preset, and of an export.
_MAIN_FILES = (ENCODER_CONFIG, "saved_model.pb")


def export_options(
    examples: tfeff.data.TextExamples
    | tfeff.data.ChoiceExamples
    | tfeff.data.TokenExamples,
) -> dict:
    """The options of `save_for_serving` that follow from the examples of a task."""
    if not isinstance(examples, tfeff.data.TextExamples):
        return {}
    options: dict[str, Any] = {"pairs": examples.second is not None}
    if examples.label_names is not None:
        options["label_names"] = examples.label_names
    return options


def has_model(run: tfeff.training.RunDirectory, path: str) -> bool:
    """Whether an earlier start has kept the model of a file as the run's."""
    kept = run.path(MODEL)
    return is_there(kept) and sha256(kept) == sha256(path)


@dataclasses.dataclass(frozen=True)
class RunModel:
    """The model of a run, as far as an earlier start has kept it.

    Attributes:
        model: the model.
        is_kept: whether the run's `model.keras` is there, and of this model.
        save: called with a path, writes the model's file.
    """

    model: keras.Model
    is_kept: bool
    save: Callable[[str], object]


def write_model(
    run: tfeff.training.RunDirectory, found: RunModel, tokenizer, **options: Any
) -> str:
    """Writes the run's `model.keras`, its `preset/` and its export, all of one model.

    Those of another model, such as of cells that were deleted since, are replaced: the
    preset by a new one, the export by the next version. A line says so.

    Args:
        run: the run directory.
        found, tokenizer: what to keep.
        **options: those of `tfeff.export.save_version`.

    Returns:
        Where the export is.
    """
    model = found.model
    write_preset = functools.partial(tfeff.tasks.save_pretrained, model, tokenizer)
    # A first start writes the model before the preset.
    has_others = any(is_there(run.path(name)) for name in (MODEL, PRESET))
    if not found.is_kept and has_others:
        make_anew(run.path(PRESET), write_preset)
        exported = tfeff.export.save_version(
            model, tokenizer, run.path(EXPORT), **options
        )
        # Last, as the next start of a run that is killed before must do it all again.
        found.save(run.path(MODEL))
        _tell_replaced(run, MODEL, exported)
        return exported
    if not found.is_kept:
        found.save(run.path(MODEL))
    make_once(run.path(PRESET), write_preset)
    return export_once(run, model, tokenizer, **options)


def write_encoder(
    run: tfeff.training.RunDirectory,
    model: keras.Model,
    tokenizer,
    served: keras.Model,
    **options: Any,
) -> str:
    """Writes the `preset/` and the export of a run that trains one model.

    Those of another training, such as of checkpoints that were deleted since, are
    replaced: the preset by a new one, the export by the next version. A line says so.

    Args:
        run: the run directory.
        model: for the preset, an encoder or a model around one.
        tokenizer: its tokenizer.
        served: for the export, the model or its encoder.
        **options: those of `tfeff.export.save_version`.

    Returns:
        Where the export is.
    """
    preset = run.path(PRESET)
    write_preset = functools.partial(tfeff.tasks.save_pretrained, model, tokenizer)
    # Presets come before exports: an export without one may be of another training.
    has_others = is_there(preset) or has_export(run)
    if not has_others or _has_encoder(preset, encoder_of(model)):
        make_once(preset, write_preset)
        return export_once(run, served, tokenizer, **options)
    exported = tfeff.export.save_version(served, tokenizer, run.path(EXPORT), **options)
    # Last, as the next start of a run that is killed before must do it all again.
    make_anew(preset, write_preset)
    _tell_replaced(run, PRESET, exported)
    return exported


def _tell_replaced(run, name, exported):
    """Prints that the model of this training has replaced another's, or none."""
    print(
        f"{run.shown(run.path(name))} was of another training, or deleted: "
        f"{run.shown(run.path(PRESET))} has the encoder of this one now, and "
        f"{run.shown(exported)} is the export"
    )


def _has_encoder(preset, encoder):
    """Whether a preset is there, and has the weights of an encoder."""
    if not is_there(preset):
        return False
    check_made(preset)
    kept = tfeff.encoders.Encoder.from_preset(preset, dtype=encoder.dtype_policy)
    return same_weights(kept, encoder)


def same_weights(one: keras.Model, other: keras.Model) -> bool:
    """Whether two models have the same weights, in the same order."""
    weights, others = one.get_weights(), other.get_weights()
    return len(weights) == len(others) and all(map(np.array_equal, weights, others))


def make_anew(path: str, write: Callable[[str], object]) -> None:
    """Calls `write` to make a folder in place of the one of an earlier start."""
    with atomic_folder(os.path.realpath(path), replace=True) as unfinished:
        write(unfinished)


def make_once(path: str, write: Callable[[str], object]) -> None:
    """Calls `write(path)` to make a folder; checks the one of an earlier start."""
    if is_there(path):
        check_made(path)
    else:
        write(path)


def check_made(path: str) -> None:
    """Checks a preset or an export of an earlier start, by its digests if it has some.

    Raises:
        ValueError: if it is neither, or damaged.
    """
    with advised(f"Delete {path} to have it made again"):
        if not any(os.path.isfile(os.path.join(path, name)) for name in _MAIN_FILES):
            raise ValueError(
                f"{path} must be a folder with {' or '.join(_MAIN_FILES)}. It has none"
            )
        if is_there(os.path.join(path, FILE_NAME)):
            check_digests(path)


def export_once(
    run: tfeff.training.RunDirectory, model: keras.Model, tokenizer, **options
) -> str:
    """Exports to `export/1`, or checks what an earlier start has exported.

    Args:
        run: the run directory.
        model, tokenizer, **options: as of `tfeff.export.save_version`.

    Returns:
        Where the export is.
    """
    if not has_export(run):
        return tfeff.export.save_version(model, tokenizer, run.path(EXPORT), **options)
    check_made(newest_export(run))
    return newest_export(run)


def has_export(run: tfeff.training.RunDirectory) -> bool:
    """Whether a run has an export."""
    return bool(tfeff.export.versions(run.path(EXPORT)))


def newest_export(run: tfeff.training.RunDirectory) -> str:
    """The newest version of a run's export, or `export` where all are deleted."""
    folder = run.path(EXPORT)
    return [folder, *tfeff.export.versions(folder)][-1]
