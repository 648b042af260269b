"""The files of presets are written beside what is there, and replace it when whole."""

import contextlib
import json
import math
import os
from collections.abc import Iterable, Iterator

import keras
import numpy as np

from tfeff.encoders.preset_layout import (
    ENCODER_CONFIG,
    HEAD,
    TASK_WEIGHTS,
    is_config,
    is_weights_file,
)
from tfeff.utils.digests import (
    FILE_NAME,
    files_below,
    known_digests,
    sha256,
    write_list,
)
from tfeff.utils.disks import reserve
from tfeff.utils.partial import partial_path


@contextlib.contextmanager
def replaced_when_whole(preset_dir: str) -> Iterator[str]:
    """Yields a new folder, whose files then replace those of a preset.

    On a full disk the earlier files stay. The digests of the new ones are noted, and
    the weights of an earlier encoder are removed.

    Args:
        preset_dir: the folder of the preset; it is made if it is missing.

    Raises:
        ValueError: if a file that would be replaced is not a preset's.
    """
    preset_dir = os.fspath(preset_dir)
    os.makedirs(preset_dir, exist_ok=True)
    with partial_path(os.path.join(preset_dir, "preset"), preset_dir) as whole:
        yield whole
        names = files_below(whole)
        _check_replaces(preset_dir, filter(is_config, names))
        others = _other_weights(preset_dir, set(filter(is_weights_file, names)))
        # The encoder and the tokenizer of a task have noted theirs.
        noted = known_digests(whole)
        own = [name for name in names if name not in noted]
        noted |= {name: sha256(os.path.join(whole, name)) for name in own}
        digests = known_digests(preset_dir) | noted
        listed = {name: digests[name] for name in digests.keys() - others}
        write_list(os.path.join(whole, FILE_NAME), listed)
        # Configurations last: without them the weights are no preset.
        for name in [*sorted(names, key=is_config), FILE_NAME]:
            path = os.path.join(preset_dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(os.path.join(whole, name), path)
    for name in others:
        os.remove(os.path.join(preset_dir, name))


def _check_replaces(folder, names):
    """Raises where one of these files is there and is not a configuration of Keras."""
    others = []
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                keys = json.load(file).keys()
        except (AttributeError, OSError, RecursionError, ValueError):
            keys = ()
        if not {"class_name", "keras_version"} & set(keys):
            others.append(name)
    if others:
        raise ValueError(
            "`preset_dir` must be another folder, or have no other files that a preset "
            "has, too: those that are there are not a preset's, or damaged. Received: "
            f"preset_dir={folder!r} with {', '.join(others)}"
        )


def _other_weights(folder, new):
    """The weights of an earlier preset: KerasHub would prefer a single file to several.

    `new` are the files of weights that are written; where there are none, others stay.
    """
    return {n for n in os.listdir(folder) if is_weights_file(n)} - new if new else set()


def check_no_heads(preset_dir: str | os.PathLike, replaced: Iterable[str] = ()) -> None:
    """Raises where a folder has heads, which belong to the encoder that is there.

    Args:
        preset_dir: the folder.
        replaced: the names of files that are replaced with the encoder.

    Raises:
        ValueError: naming them.
    """
    names = set(os.listdir(preset_dir) if os.path.isdir(preset_dir) else ())
    names -= {*replaced}
    heads = sorted(name for name in names if name.endswith(HEAD))
    # KerasHub writes the heads of a task that is being saved before its encoder.
    if {ENCODER_CONFIG, TASK_WEIGHTS} <= names:
        heads.append(TASK_WEIGHTS)
    if heads:
        raise ValueError(
            "`preset_dir` must be another folder, or have no heads: those that are "
            "there were trained on the encoder that would be replaced. "
            f"Received: preset_dir={os.fspath(preset_dir)!r} with {', '.join(heads)}"
        )


def reserve_weights(
    filepath: str | os.PathLike, weights: Iterable, largest: int | None = None
) -> None:
    """Raises an OSError where a file of weights has no room; see `reserve`.

    Args:
        filepath: the file, which may be there.
        weights: the weights.
        largest: integer, the most bytes of one file; `None` if there is one alone.
    """
    folder = os.path.dirname(os.path.abspath(filepath))
    if os.path.isdir(folder):
        there = os.path.getsize(filepath) if os.path.isfile(filepath) else 0
        reserve(folder, _size_of_file(list(weights)) - there, largest)


def _size_of_file(weights):
    """The bytes that HDF5 takes for weights, and no fewer."""
    sizes = (math.prod(w.shape) * np.dtype(_stored(w)).itemsize for w in weights)
    return sum(sizes) + 4096 * (1 + len(weights))


def _stored(weight):
    """The dtype of a weight in a file, where numbers of 4 bits take a byte each."""
    dtype = keras.backend.standardize_dtype(weight.dtype)
    return {"bfloat16": "float16", "int4": "int8", "uint4": "uint8"}.get(dtype, dtype)
