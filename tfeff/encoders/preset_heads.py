"""The heads of a preset, beside its encoder, and the model that they make together.

Each head is a file `NAME_head.npz` of arrays: its weights, and its settings without
axes. `task.json` names the model, such as a classifier, in a preset of one.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfeff.encoders.hub_heads import hub_head_names, hub_task, read_hub_heads
from tfeff.encoders.preset_digests import add_digests, check_preset
from tfeff.encoders.preset_layout import (
    CONFIGS,
    ENCODER_CONFIG,
    HEAD,
    TASK_CONFIG,
    TASK_FILES,
    belongs_to_tokenizer,
    is_weights_file,
)
from tfeff.utils.checks import check_bool
from tfeff.utils.digests import FILE_NAME, files_below, read_digests
from tfeff.utils.files import atomic_folder
from tfeff.utils.paths import check_new_path, check_path
from tfeff.utils.reading import raise_unreadable


def check_preset_path(name: str, path: object, overwrite: bool) -> str:
    """Returns the absolute path of a preset that may be written, else raises.

    Args:
        name: the argument that the path was given as, for errors.
        path: its value.
        overwrite: whether a preset that is there may be replaced.

    Raises:
        ValueError: if something is there, and it is no preset or must not be replaced.
    """
    check_bool("overwrite", overwrite)
    given = check_path(name, path)
    found = _no_preset(given)
    if overwrite and not found:
        real, here = os.path.realpath(given), os.path.realpath(os.curdir)
        if os.path.commonpath([real, here]) == real:
            raise ValueError(
                f"`{name}` must not be the working directory, or above it, for "
                f"overwrite=True. Received: {name}={given!r}"
            )
        return real
    if overwrite and os.path.lexists(given):
        raise ValueError(
            f"`{name}` must be new, or a preset of tfeff, for overwrite=True. "
            f"Received: {name}={given!r}, {found}"
        )
    return check_new_path(
        name, given, "" if found else "Give overwrite=True to replace it"
    )


def _no_preset(folder):
    """Why a folder is not one that `save_preset` has written; "" if it is."""
    if not os.path.isdir(folder):
        return "which is no folder"
    names = set(os.listdir(folder))
    others = sorted(x for x in names - {"assets", FILE_NAME} if not _is_of_preset(x))
    # Files further below are many in a folder of something else.
    files = [] if others else files_below(folder)
    others = others or [x for x in files if not _is_of_preset(x)]
    if others:
        return f"which has {', '.join(others[:5])}"
    missing = {ENCODER_CONFIG, FILE_NAME} - names
    if missing:
        return f"which has no {' and no '.join(sorted(missing))}"
    try:
        known = read_digests(folder)
    except ValueError as error:
        return f"of which {error}"
    unknown = [name for name in files if name not in known]
    return (
        f"whose {FILE_NAME} does not name {', '.join(unknown[:5])}" if unknown else ""
    )


def _is_of_preset(name):
    is_head = name == os.path.basename(name) and name.endswith(HEAD)
    is_known = name in (*CONFIGS, *TASK_FILES) or is_weights_file(name)
    return is_known or is_head or belongs_to_tokenizer()(name)


def save_preset(
    encoder,
    tokenizer,
    path: str,
    heads: Mapping[str, Mapping[str, Any]],
    task: Mapping | None = None,
    replace: bool = False,
) -> None:
    """Writes an encoder, its tokenizer, heads and model as a preset.

    Args:
        encoder: the `Encoder`.
        tokenizer: the KerasHub tokenizer, or `None`.
        path: the folder, from `check_preset_path`.
        heads: the arrays of each head by its name.
        task: the configuration of the model, for JSON; `None` where there is none.
        replace: whether a folder that is there is replaced.
    """
    with atomic_folder(path, replace) as unfinished:
        encoder.save_to_preset(unfinished)
        if tokenizer is not None:
            tokenizer.save_to_preset(unfinished)
            # KerasHub's own tokenizers write no digests.
            add_digests(unfinished, belongs_to_tokenizer())
        for name, arrays in heads.items():
            np.savez(os.path.join(unfinished, name + HEAD), **arrays)
        if task is not None:
            path = os.path.join(unfinished, TASK_CONFIG)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(task, file, indent=4)
        add_digests(unfinished, lambda name: name == TASK_CONFIG or name.endswith(HEAD))


def head_names(folder: str) -> list[str]:
    """The names of a preset's heads, also of KerasHub's tasks."""
    files = [x.removesuffix(HEAD) for x in os.listdir(folder) if x.endswith(HEAD)]
    return sorted(files) or sorted(hub_head_names(_read_task(folder)))


def read_heads(folder: str) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of all heads of a preset, by their names.

    Raises:
        ValueError, OSError: as `read_head`.
    """
    names = head_names(folder)
    if any(os.path.exists(os.path.join(folder, name + HEAD)) for name in names):
        return {name: read_head(folder, name) for name in names}
    # KerasHub keeps the weights of all heads together: its task is read once.
    return read_hub_heads(folder, _read_task(folder)) if names else {}


def read_head(folder: str, name: str) -> dict[str, np.ndarray]:
    """The arrays of one of a preset's heads.

    Raises:
        ValueError: if the file is missing or damaged.
        OSError: if the system refuses to read it.
    """
    path = os.path.join(folder, name + HEAD)
    if not os.path.exists(path):
        task = _read_task(folder)
        if name in hub_head_names(task):
            return read_hub_heads(folder, task)[name]
    check_preset(folder, lambda file: file == name + HEAD)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    # A damaged header may claim any size, ask for a password, say, or for an unknown
    # compression.
    except Exception as error:
        raise_unreadable(error, path)
        raise ValueError(f"{path} is damaged: {error}") from error


def read_task(folder: str) -> dict | None:
    """The configuration of a preset's model; `None` if it has heads alone.

    Raises:
        ValueError: if the file is damaged, or of a task that tfeff does not have.
    """
    task = _read_task(folder)
    return hub_task(task) if hub_head_names(task) else task


def _read_task(folder):
    path = os.path.join(folder, TASK_CONFIG)
    if not os.path.exists(path):
        return None
    check_preset(folder, lambda file: file == TASK_CONFIG)
    try:
        with open(path, encoding="utf-8") as file:
            task = json.load(file)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(task, dict):
        raise ValueError(f"{path} must hold a configuration. It holds {task!r}")
    return task
