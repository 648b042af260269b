"""Names of the files of presets, and what they belong to."""

import os
import re
from collections.abc import Callable, Iterable

from tfeff.encoders.presets import presets
from tfeff.utils.run_files import PRESET

ENCODER_CONFIG = "config.json"
METADATA = "metadata.json"
CONFIGS = (ENCODER_CONFIG, METADATA)
TOKENIZER_CONFIG = "tokenizer.json"
# A preset's files of KerasHub's task beside its backbone and its tokenizer.
TASK_CONFIG = "task.json"
TASK_WEIGHTS = "task.weights.h5"
TASK_FILES = (TASK_CONFIG, TASK_WEIGHTS, "preprocessor.json")
HEAD = "_head.npz"  # The end of the name of a head's file.


def is_weights_file(name: str) -> bool:
    """Whether a preset's file has weights of the encoder, or their index."""
    return re.fullmatch(r"model(_\d+)?\.weights\.(h5|json)", name) is not None


def is_config(name: str) -> bool:
    """Whether a preset's file describes an object; of tokenizers, assets do not."""
    is_json = name == os.path.basename(name) and name.endswith(".json")
    return is_json and not is_weights_file(name)


def preset_folder(path: str) -> str:
    """The folder of a preset: a run has it inside, another folder is it itself."""
    inner = os.path.join(path, PRESET)
    return inner if os.path.isdir(inner) else path


def belongs_to_tokenizer(config_file: str = TOKENIZER_CONFIG) -> Callable[[str], bool]:
    """Whether a preset's file belongs to the tokenizer with a configuration file."""
    assets = f"assets/{config_file.split('.')[0]}/"
    return lambda name: name == config_file or name.startswith(assets)


def checkpoint_hint(names: Iterable[str]) -> str:
    """The end of a message if the files of a folder are what `tfeff convert` reads."""
    names = set(names)
    weights = [name for name in names if name.endswith(".safetensors")]
    is_theirs = ENCODER_CONFIG in names and weights
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
