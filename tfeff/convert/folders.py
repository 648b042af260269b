"""Folders of checkpoints: their files, and those that are downloaded from the hub."""

import fnmatch
import os
import warnings
from collections.abc import Sequence
from typing import Any

from tfeff.convert.reading import read_json
from tfeff.utils.digests import FILE_NAME, compare, read_list
from tfeff.utils.near_misses import near_miss
from tfeff.utils.paths import is_hub_address, is_hub_name, is_name

MODULES = "modules.json"
TOKENIZER_FILES = [
    *("*.json", "*vocab.txt", "*merges.txt", "*.model"),
    *("*vocabulary.txt", "*.spm"),  # Presets of Keras have them.
]


def check_listed(directory: str, patterns: Sequence[str]) -> None:
    """Compares files of a folder with its `SHA256SUMS`, which `to_huggingface` writes.

    Of a list of somebody else, lines of another form do not count.

    Args:
        directory: the folder.
        patterns: of the names of the files that are read.

    Raises:
        ValueError: naming the files that differ.
    """
    path = os.path.join(directory, FILE_NAME)
    names = [name for _, name in read_list(path)] if os.path.isfile(path) else []
    for name in names:
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            compare(path, name)


def without_scheme(source: Any) -> Any:
    """A name on the hub without `hf://` or its address; anything else as it is."""
    if not isinstance(source, str):
        return source
    if is_hub_address(source):
        return "/".join(source.rstrip("/").split("/")[-2:])
    return source.removeprefix("hf://")


def module_folder(directory: str) -> str:
    """The folder, or the Transformer's in sentence-transformers' old layout.

    Raises:
        ValueError: if the list of its modules is damaged.
    """
    files = os.listdir(directory)
    if MODULES not in files or "config.json" in files:
        return directory
    path = os.path.join(directory, MODULES)
    modules = read_json(path, list)
    try:
        folders = [module["path"] for module in modules if module["idx"] == 0]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path!r} must give the path of each module. It is damaged: {error!r}"
        ) from error
    # The list must not lead out of its folder.
    found = [os.path.join(directory, name) for name in folders if is_name(name)]
    if len(found) != 1 or not os.path.isdir(found[0]):
        raise ValueError(
            f"{path!r} must name the folder of one Transformer as the first module. It "
            f"names {folders}"
        )
    return found[0]


def sentence_configs(directory: str) -> list[str]:
    """The files, such as `sentence_bert_config.json`, of a Transformer's settings."""
    return [
        os.path.join(directory, name)
        for name in sorted(os.listdir(directory))
        if name.startswith("sentence_") and name.endswith("_config.json")
    ]


def download(name: str, patterns: Sequence[str]) -> str:
    """The local folder of a snapshot from the hub, of files of the patterns.

    Raises:
        ValueError: if it cannot be downloaded.
    """
    if not is_hub_name(name):
        raise ValueError(
            f"`source` must be a folder that exists, or a name on the Hugging Face "
            f"hub. Received: source={name!r}"
        )
    owner, _, below = name.partition("/")
    if below and os.path.isdir(owner):
        raise ValueError(
            f"`source` must be a folder that exists, or a name on the Hugging Face "
            f"hub. Received: source={name!r}: the folder {owner} has no {below}."
            f"{near_miss(below, os.listdir(owner))} If it is a name on the hub, `hf "
            f"download {name}` prints the folder of a copy"
        )
    from huggingface_hub import snapshot_download  # It takes a while.

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "TRUE", "YES"):
        warnings.warn(
            f"HF_HUB_OFFLINE is set: of {name} those files are read that were "
            "downloaded before. Others that it has, such as a tokenizer's, are missing",
            stacklevel=1,
        )
    try:
        return snapshot_download(name, allow_patterns=list(patterns))
    except Exception as error:  # Errors of many libraries: requests, httpx, the hub's.
        raise ValueError(
            f"`source` must be a folder that exists, or a name on the Hugging Face "
            f"hub. Received: source={name!r}, which is not a folder and cannot be "
            f"downloaded: {error}. Without a network, download it elsewhere with "
            f"`hf download {name}` and pass the folder"
        ) from error
