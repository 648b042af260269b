"""The tokenizer of a run directory, of any kind.

One that `tfeff.data.save_tokenizer` keeps whole is the file `tokenizer.spm`; any other
is the folder `tokenizer/`, with the files that a KerasHub preset has of its tokenizer.
"""

import os

import keras
import keras_hub

from tfeff import data
from tfeff.encoders.preset_digests import add_digests, check_preset
from tfeff.encoders.preset_layout import TOKENIZER_CONFIG, belongs_to_tokenizer
from tfeff.storage.arguments import READ_MODEL, paths
from tfeff.training.run_seal import seal_file
from tfeff.utils.files import atomic_folder
from tfeff.utils.json_files import read_object
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import TOKENIZER_FILE, TOKENIZER_FOLDER

RUN_TOKENIZER = (TOKENIZER_FILE, f"{TOKENIZER_FILE}.sha256", TOKENIZER_FOLDER)


def save_run_tokenizer(tokenizer: keras_hub.tokenizers.Tokenizer, run_dir: str) -> None:
    """Writes a tokenizer to a run directory that has none, atomically."""
    try:
        data.save_tokenizer(tokenizer, os.path.join(run_dir, TOKENIZER_FILE))
        return
    except (TypeError, ValueError):
        pass  # The file alone would not make the same tokenizer.
    folder = os.path.abspath(os.path.join(run_dir, TOKENIZER_FOLDER))
    with atomic_folder(folder) as unfinished:
        tokenizer.save_to_preset(unfinished)
        # KerasHub's own tokenizers write no digests.
        add_digests(unfinished, belongs_to_tokenizer())


def seal_run_tokenizer(run_dir: str) -> None:
    """Notes the digest of a tokenizer's file, so that damage is found on loading.

    A folder has its own digests.

    Raises:
        ValueError: if the file is no more as it was.
    """
    path = os.path.join(run_dir, TOKENIZER_FILE)
    if is_there(path):
        seal_file(path)


def has_run_tokenizer(run_dir: str) -> bool:
    """Whether a run directory has its tokenizer."""
    names = (TOKENIZER_FILE, TOKENIZER_FOLDER)
    return any(is_there(os.path.join(run_dir, name)) for name in names)


@paths(run_dir=READ_MODEL)
def load_run_tokenizer(run_dir: str) -> keras_hub.tokenizers.Tokenizer:
    """Reads the tokenizer of a run directory.

    Raises:
        ValueError: if it is missing or damaged.
    """
    folder = os.path.abspath(os.path.join(run_dir, TOKENIZER_FOLDER))
    if not os.path.isdir(folder):
        return data.load_tokenizer(os.path.join(run_dir, TOKENIZER_FILE))
    return load_preset_tokenizer(folder)


def load_preset_tokenizer(folder: str) -> keras_hub.tokenizers.Tokenizer:
    """Reads the tokenizer of a preset, with or without an encoder beside it.

    Raises:
        ValueError: if it is damaged.
    """
    check_preset(folder, belongs_to_tokenizer())
    try:
        return read_preset_tokenizer(folder)
    except Exception as error:  # From Keras, KerasHub, SentencePiece.
        raise ValueError(
            f"{folder!r} must hold a whole KerasHub tokenizer, tokenizer.json and "
            f"assets/tokenizer. It does not: {error}"
        ) from error


def read_preset_tokenizer(folder: str) -> keras_hub.tokenizers.Tokenizer:
    """The tokenizer in the files of a preset; damage raises the libraries' errors.

    KerasHub itself needs the configuration of an encoder beside it, and looks for a
    tokenizer of the encoder's class.
    """
    config = read_object(os.path.join(folder, TOKENIZER_CONFIG))
    tokenizer = keras.saving.deserialize_keras_object(config)
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise ValueError("tokenizer.json must name the tokenizer's class")
    tokenizer.load_preset_assets(folder)
    return tokenizer
