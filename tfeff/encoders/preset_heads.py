"""The heads of a preset, beside its encoder, and the model that they make together.

Each head is a file `NAME_head.npz` of arrays: its weights, and its settings without
axes. `task.json` names the model, such as a classifier, in a preset of one.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfeff.encoders.preset_files import (
    HEAD,
    add_digests,
    check_preset,
    tokenizer_files,
)
from tfeff.utils.files import atomic_folder

_TASK = "task.json"


def save_preset(
    encoder,
    tokenizer,
    path: str,
    heads: Mapping[str, Mapping[str, Any]],
    task: Mapping | None = None,
) -> None:
    """Writes an encoder, its tokenizer, heads and model as a preset.

    Args:
        encoder: the `Encoder`.
        tokenizer: the KerasHub tokenizer, or `None`.
        path: the folder, from `check_new_path`.
        heads: the arrays of each head by its name.
        task: the configuration of the model, for JSON; `None` where there is none.
    """
    with atomic_folder(path) as unfinished:
        encoder.save_to_preset(unfinished)
        if tokenizer is not None:
            tokenizer.save_to_preset(unfinished)
            # KerasHub's own tokenizers write no digests.
            add_digests(unfinished, tokenizer_files())
        for name, arrays in heads.items():
            np.savez(os.path.join(unfinished, name + HEAD), **arrays)
        if task is not None:
            with open(os.path.join(unfinished, _TASK), "w", encoding="utf-8") as file:
                json.dump(task, file, indent=4)
        add_digests(unfinished, lambda name: name == _TASK or name.endswith(HEAD))


def head_names(folder: str) -> list[str]:
    """The names of a preset's heads."""
    return sorted(
        name.removesuffix(HEAD) for name in os.listdir(folder) if name.endswith(HEAD)
    )


def read_head(folder: str, name: str) -> dict[str, np.ndarray]:
    """The arrays of one of a preset's heads.

    Raises:
        ValueError: if the file is missing or damaged.
    """
    path = os.path.join(folder, name + HEAD)
    check_preset(folder, lambda file: file == name + HEAD)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    # A damaged header may claim any size, ask for a password, say, or for an unknown
    # compression.
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def read_task(folder: str) -> dict | None:
    """The configuration of a preset's model; `None` if it has heads alone.

    Raises:
        ValueError: if the file is damaged.
    """
    path = os.path.join(folder, _TASK)
    if not os.path.exists(path):
        return None
    check_preset(folder, lambda file: file == _TASK)
    try:
        with open(path, encoding="utf-8") as file:
            task = json.load(file)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(task, dict):
        raise ValueError(f"{path} must hold a configuration. It holds {task!r}")
    return task
