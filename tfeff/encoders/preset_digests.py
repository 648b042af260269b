"""Digests of the files of presets, compared on loading, and who has saved them.

An encoder and a tokenizer each note the digests of their own files, so that either can
be saved first.
"""

import json
import os
import warnings
from collections.abc import Callable

import keras

import tfeff
from tfeff.encoders.preset_layout import (
    CONFIGS,
    ENCODER_CONFIG,
    METADATA,
    TASK_FILES,
    TASK_WEIGHTS,
    belongs_to_tokenizer,
)
from tfeff.utils.digests import (
    FILE_NAME,
    check_digests,
    files_below,
    read_digests,
    write_digests,
)
from tfeff.utils.files import write_text
from tfeff.utils.naming import advised

_VERSION = "tfeff_version"  # In `metadata.json`, beside those of Keras and KerasHub.


def add_digests(folder: str, belongs: Callable[[str], bool]) -> None:
    """Writes the digests of those files of a preset to its `SHA256SUMS`."""
    write_digests(folder, [name for name in files_below(folder) if belongs(name)])


def check_preset(folder: str, belongs: Callable[[str], bool]) -> None:
    """Compares those files of a preset with their digests; warns if there are none.

    Raises:
        ValueError: naming the files that are missing or differ.
    """
    try:
        digests = read_digests(folder)
    except FileNotFoundError:
        warnings.warn(
            f"{folder} has no {FILE_NAME}: whether its files are damaged cannot be "
            "checked. Presets that tfeff saves now have one",
            stacklevel=1,
        )
        return
    with advised(f"If a file was changed on purpose, delete {FILE_NAME}"):
        check_digests(folder, [name for name in digests if belongs(name)])
    unknown = [n for n in files_below(folder) if belongs(n) and n not in digests]
    if unknown:
        warnings.warn(
            f"{FILE_NAME} in {folder} does not name {', '.join(unknown)}: whether they "
            "are damaged cannot be checked",
            stacklevel=1,
        )


def check_settings_and_assets(preset: object) -> None:
    """Compares what a preset in a folder has beside weights, which are compared later.

    Only where it has digests: it may be KerasHub's.
    """
    if isinstance(preset, (str, os.PathLike)) and os.path.isdir(preset):
        is_of_tokenizer = belongs_to_tokenizer()
        files = {*CONFIGS, *TASK_FILES} - {TASK_WEIGHTS}
        _check_listed(preset, lambda name: name in files or is_of_tokenizer(name))


def check_beside(filepath: str, belongs: Callable[[str], bool]) -> None:
    """`check_preset` of a file's folder, if that has digests: it may be no preset."""
    _check_listed(os.path.dirname(os.path.abspath(filepath)), belongs)


def _check_listed(folder, belongs):
    if os.path.exists(os.path.join(folder, FILE_NAME)):
        check_preset(folder, belongs)


def saved_dtype(folder: str) -> keras.DTypePolicy:
    """The dtype policy of a preset's encoder, for which KerasHub has Keras' default.

    Raises:
        ValueError: if the configuration is damaged.
    """
    check_preset(folder, lambda name: name in CONFIGS)
    with open(os.path.join(folder, ENCODER_CONFIG), encoding="utf-8") as file:
        return keras.dtype_policies.get(json.load(file)["config"]["dtype"])


def add_version(folder: str) -> None:
    """Notes this version of tfeff in a preset's `metadata.json`."""
    path = os.path.join(folder, METADATA)
    with open(path, encoding="utf-8") as file:
        metadata = json.load(file)
    metadata[_VERSION] = tfeff.__version__
    write_text(path, json.dumps(metadata, indent=4))


def of_another_version(folder: str) -> str:
    """The part of a message that says that another version of tfeff has saved a preset.

    It is empty where this one has.
    """
    try:
        with open(os.path.join(folder, METADATA), encoding="utf-8") as file:
            version = json.load(file)[_VERSION]
    except (OSError, ValueError, LookupError, TypeError):
        return ", or of a newer version of tfeff than this one"
    if version == tfeff.__version__:
        return ""
    return (
        ", or of a newer version of tfeff than this one "
        f"(tfeff {version} saved it, this is {tfeff.__version__})"
    )
