"""Files of presets, and their digests, written on saving and compared on loading.

An encoder and a tokenizer each note the digests of their own files, so that either can
be saved first.
"""

import contextlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator

import keras
import numpy as np

import tfeff
from tfeff.encoders.presets import presets
from tfeff.storage.arguments import READ_MODEL, WRITE, paths
from tfeff.utils.digests import (
    FILE_NAME,
    check_digests,
    files_below,
    known_digests,
    read_digests,
    sha256,
    write_digests,
    write_list,
)
from tfeff.utils.disks import reserve
from tfeff.utils.files import write_text
from tfeff.utils.partial import partial_path
from tfeff.utils.reading import DAMAGE, is_unreadable

HEAD = "_head.npz"  # The end of the name of a head's file.
CONFIGS = ("config.json", "metadata.json")
_VERSION = "tfeff_version"  # In `metadata.json`, beside those of Keras and KerasHub.
# A preset's files of KerasHub's task beside its backbone and its tokenizer.
TASK_WEIGHTS = "task.weights.h5"
TASK_FILES = ("task.json", TASK_WEIGHTS, "preprocessor.json")


def is_weights_file(name: str) -> bool:
    """Whether a preset's file has weights of the encoder, or their index."""
    return re.fullmatch(r"model(_\d+)?\.weights\.(h5|json)", name) is not None


def preset_folder(path: str) -> str:
    """The folder of a preset: a run has it inside, another folder is it itself."""
    inner = os.path.join(path, "preset")
    return inner if os.path.isdir(inner) else path


def belongs_to_tokenizer(config_file: str = "tokenizer.json") -> Callable[[str], bool]:
    """Whether a preset's file belongs to the tokenizer with a configuration file."""
    assets = f"assets/{config_file.split('.')[0]}/"
    return lambda name: name == config_file or name.startswith(assets)


def checkpoint_hint(names: Iterable[str]) -> str:
    """The end of a message if the files of a folder are what `tfeff convert` reads."""
    is_theirs = CONFIGS[0] in names and any(n.endswith(".safetensors") for n in names)
    if not is_theirs or any(map(is_weights_file, names)):
        return ""
    return (
        ". It is a checkpoint of Hugging Face, of which `tfeff convert` makes a preset"
    )


def architecture_hint(name: object) -> str:
    """The end of a message if a name is one of `presets`, which have no weights."""
    if not isinstance(name, str) or name not in presets():
        return ""
    return (
        f". {name!r} is the name of an architecture, which has no trained weights: "
        f"`tfeff.encoders.build({name!r})` makes an encoder of it with new ones"
    )


def add_digests(folder: str, belongs: Callable[[str], bool]) -> None:
    """Writes the digests of those files of a preset to its `SHA256SUMS`."""
    write_digests(folder, [name for name in files_below(folder) if belongs(name)])


def add_version(folder: str) -> None:
    """Notes this version of tfeff in a preset's `metadata.json`."""
    path = os.path.join(folder, CONFIGS[1])
    with open(path, encoding="utf-8") as file:
        metadata = json.load(file)
    metadata[_VERSION] = tfeff.__version__
    write_text(path, json.dumps(metadata, indent=4))


def written_by(folder: str) -> str:
    """The part of a message that says which version of tfeff has saved a preset."""
    try:
        with open(os.path.join(folder, CONFIGS[1]), encoding="utf-8") as file:
            version = json.load(file)[_VERSION]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return f" (tfeff {version} saved it, this is {tfeff.__version__})"


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
        _check_replaces(preset_dir, filter(_is_config, names))
        others = _other_weights(preset_dir, set(filter(is_weights_file, names)))
        # The encoder and the tokenizer of a task have noted theirs.
        noted = known_digests(whole)
        own = [name for name in names if name not in noted]
        noted |= {name: sha256(os.path.join(whole, name)) for name in own}
        digests = known_digests(preset_dir) | noted
        listed = {name: digests[name] for name in digests.keys() - others}
        write_list(os.path.join(whole, FILE_NAME), listed)
        # Configurations last: without them the weights are no preset.
        for name in [*sorted(names, key=_is_config), FILE_NAME]:
            path = os.path.join(preset_dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(os.path.join(whole, name), path)
    for name in others:
        os.remove(os.path.join(preset_dir, name))


def _is_config(name):
    """Whether a preset's file describes an object; of tokenizers, assets do not."""
    is_json = name == os.path.basename(name) and name.endswith(".json")
    return is_json and not is_weights_file(name)


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
    if {CONFIGS[0], TASK_WEIGHTS} <= names:
        heads.append(TASK_WEIGHTS)
    if heads:
        raise ValueError(
            "`preset_dir` must be another folder, or have no heads: those that are "
            "there were trained on the encoder that would be replaced. "
            f"Received: preset_dir={os.fspath(preset_dir)!r} with {', '.join(heads)}"
        )


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
    try:
        check_digests(folder, [name for name in digests if belongs(name)])
    except ValueError as error:
        raise ValueError(
            f"{error}. If a file was changed on purpose, delete {FILE_NAME}"
        ) from error
    unknown = [n for n in files_below(folder) if belongs(n) and n not in digests]
    if unknown:
        warnings.warn(
            f"{FILE_NAME} in {folder} does not name {', '.join(unknown)}: whether they "
            "are damaged cannot be checked",
            stacklevel=1,
        )


def saved_dtype(folder: str) -> keras.DTypePolicy:
    """The dtype policy of a preset's encoder, for which KerasHub has Keras' default.

    Raises:
        ValueError: if the configuration is damaged.
    """
    check_preset(folder, lambda name: name in CONFIGS)
    with open(os.path.join(folder, CONFIGS[0]), encoding="utf-8") as file:
        return keras.dtype_policies.get(json.load(file)["config"]["dtype"])


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


def _is_encoder_file(name):
    return name in CONFIGS or is_weights_file(name)


class EncoderFiles:
    """The mixin of `Encoder` that saves and loads presets."""

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Writes the encoder to a folder, with the digests of its files.

        It replaces an encoder that the folder has, once the new one is whole: on a full
        disk the earlier one stays.

        Args:
            preset_dir: the folder; it is made if it is missing.
            max_shard_size: number of gigabytes beyond which the weights are written to
                several files.

        Raises:
            ValueError: if the folder has heads that were trained on another encoder.
        """
        check_no_heads(preset_dir)
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole, max_shard_size=max_shard_size)
            add_version(whole)

    def save_weights(self, filepath, *args, **kwargs):
        in_gigabytes = kwargs.get("max_shard_size")
        largest = in_gigabytes and max(int(in_gigabytes * 1e9), 1 << 20)
        reserve_weights(filepath, self.weights, largest)
        super().save_weights(filepath, *args, **kwargs)

    @classmethod
    @paths(preset=READ_MODEL)
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Reads an encoder from a preset.

        The files in a local folder are compared with its `SHA256SUMS`; a `UserWarning`
        says so if there is none. Names on a hub are left to the hub's own checks.

        Args:
            preset: a folder, that of a preset or of a run, or a preset of tfeff on a
                hub, such as `"hf://someone/some-shatter"`. Of other models on a hub
                `tfeff convert` makes one.
            load_weights: whether the weights are read, or initialised.
            **kwargs: arguments of the encoder that override the preset's.

        Raises:
            ValueError: if a file is missing or damaged, or a layer cannot be made; if
                it is a checkpoint of Hugging Face, or the name of an architecture.
            OSError: if the system refuses to read a file.
        """
        is_local = isinstance(preset, (str, os.PathLike)) and os.path.isdir(preset)
        hint = architecture_hint(preset)
        if is_local:
            preset = preset_folder(os.fspath(preset))
            hint = checkpoint_hint(os.listdir(preset))
        if hint:
            raise ValueError(
                "`preset` must be a preset of tfeff, a folder or on a hub. "
                f"Received: preset={os.fspath(preset)!r}{hint}"
            )
        if is_local:
            check_preset(preset, lambda name: name in CONFIGS)
        try:
            return super().from_preset(preset, load_weights, **kwargs)
        except DAMAGE as error:
            unreadable = isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
            has_message = isinstance(error, ValueError) and not unreadable
            of_arguments = kwargs and isinstance(error, (AttributeError, TypeError))
            if not is_local or has_message or of_arguments or is_unreadable(error):
                raise
            raise ValueError(
                f"{preset} cannot be loaded, as a file is damaged, a layer of its own "
                "fails, or a newer version of tfeff has written it"
                f"{written_by(preset)}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def load_weights(self, filepath, *args, **kwargs):
        """Reads weights from a file; in a preset, compared with `SHA256SUMS`."""
        if is_weights_file(os.path.basename(filepath)):
            # KerasHub's own classes come here alone.
            check_beside(filepath, _is_encoder_file)
        return super().load_weights(filepath, *args, **kwargs)


class ReadsURL:
    """The mixin of KerasHub's classes that reads presets at URLs, too."""

    @classmethod
    @paths(preset=READ_MODEL)
    def from_preset(cls, preset, *args, **kwargs):
        """Reads a preset, as KerasHub's class does.

        Args:
            preset: a folder, a URL, or a preset on a hub.
            *args, **kwargs: as of KerasHub's class.

        Raises:
            ValueError: if a file differs from `SHA256SUMS`, where the folder has one.
        """
        check_settings_and_assets(preset)
        return super().from_preset(preset, *args, **kwargs)


class TokenizerFiles(ReadsURL):
    """The mixin of a tokenizer that saves and loads presets."""

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir):
        """Writes the tokenizer to a folder, with the digests of its files.

        Args:
            preset_dir: the folder, which may have an encoder; or the URL of a new one.
        """
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole)

    def load_preset_assets(self, preset):
        if os.path.isdir(preset):
            check_preset(preset, belongs_to_tokenizer(self.config_file))
        super().load_preset_assets(preset)
