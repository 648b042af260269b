"""A tokenizer alone, from whatever holds one."""

import os

import keras_hub
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff import data
from tfeff.convert.folders import (
    TOKENIZER_FILES,
    check_listed,
    download,
    module_folder,
    without_scheme,
)
from tfeff.convert.json_tokenizer import TokenizerJson
from tfeff.convert.reading import read_bytes, read_json
from tfeff.convert.sources import tokens_family
from tfeff.convert.tokenizer import make_tokenizer, make_tokenizer_of_file
from tfeff.encoders.preset_layout import preset_folder
from tfeff.storage.arguments import READ_TOKENIZER, paths
from tfeff.tasks.pretrained import split_step
from tfeff.tasks.run_tokenizer import (
    has_run_tokenizer,
    load_preset_tokenizer,
    load_run_tokenizer,
)
from tfeff.utils.near_misses import near_miss
from tfeff.utils.paths import check_path

# The files of a folder in the order in which they tell the tokenizer, and its family;
# None where their content tells it.
_FILES = {
    "vocab.txt": "bert",
    "spiece.model": None,
    "30k-clean.model": "albert",
    "vocab.json": "roberta",
    "merges.txt": "roberta",
    "tokenizer.json": None,
    "sentencepiece.bpe.model": "xlm-roberta",
}
_CHOICES = (
    "a preset, a run or RUN@STEP; a SentencePiece model, vocab.txt, vocab.json with "
    "merges.txt, or tokenizer.json; a folder of Hugging Face with one of these; or a "
    "name on the Hugging Face hub"
)


@paths(source=READ_TOKENIZER)
def load_tokenizer(source: str | os.PathLike) -> keras_hub.tokenizers.Tokenizer:
    """Reads a tokenizer from whatever holds one.

    Args:
        source: one of

            - a preset, or a run's folder, or `"RUN@STEP"`;
            - a file that `tfeff.data.save_tokenizer` wrote, or another SentencePiece
              model with ALBERT's special pieces. Of `spiece.model`, the name of
              published ones, case and accents are as `tfeff convert` reads them;
            - `vocab.txt` of WordPiece, `vocab.json` beside `merges.txt` of byte-level
              BPE, or `tokenizer.json` of the `tokenizers` library. A
              `tokenizer_config.json` beside them counts;
            - a folder of Hugging Face, or of a TensorFlow checkpoint, with one of
              these. It needs no weights;
            - a name on the Hugging Face hub, of which the tokenizer alone is
              downloaded.

    Returns:
        The KerasHub tokenizer. Its ids are those of the `tokenizers` library, as with
        `tfeff convert`.

    Raises:
        TypeError: if `source` is no path.
        ValueError: if there is no tokenizer, and then it says what can be given; if a
            file is damaged, or asks for what tfeff's tokenizers do not have.

    Example:
    ```python
    import tfeff

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s"]
    with open("vocab.txt", "w") as file:
        file.write("\\n".join(pieces))
    tokenizer = tfeff.convert.load_tokenizer("vocab.txt")
    assert list(tokenizer("Cats")) == [5, 6]
    ```
    """
    path = check_path("source", without_scheme(source))
    if os.path.isfile(path):
        return _load_file(path)
    folder, _ = split_step(path)
    if os.path.isdir(folder):
        return _load_folder(folder)
    try:
        folder = download(path, TOKENIZER_FILES)
    except ValueError as error:
        above = os.path.dirname(os.path.abspath(path))
        near = os.listdir(above) if os.path.isdir(above) else ()
        raise ValueError(
            f"`source` must be {_CHOICES}. Received: source={path!r}, where there is "
            f"no file or folder.{near_miss(os.path.basename(path), near)} As a name "
            f"on the hub: {error}"
        ) from error
    return _load_folder(folder)


def _load_file(path):
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.getsize(path):
        raise ValueError(f"`source` must be {_CHOICES}. Received: {path!r} is empty")
    is_json = read_bytes(path, 1) == b"{"
    if is_json and _is_keras_file(path):
        is_preset = os.path.isdir(os.path.join(folder, "assets"))
        return load_preset_tokenizer(folder) if is_preset else data.load_tokenizer(path)
    if name in _FILES:
        return make_tokenizer(folder, _family_of_file(folder, name))
    if is_json or name.endswith(".txt"):
        return make_tokenizer_of_file(path)
    return data.load_tokenizer(path)


def _load_folder(source):
    if has_run_tokenizer(source):
        return load_run_tokenizer(source)
    folder = module_folder(preset_folder(source))
    files = sorted(os.listdir(folder))
    check_listed(folder, TOKENIZER_FILES)
    path = os.path.join(folder, "tokenizer.json")
    if os.path.exists(path) and _is_keras_file(path):
        return load_preset_tokenizer(folder)
    found = [name for name in _FILES if name in files]
    if not found:
        shown = ", ".join(files[:9]) + (", …" if len(files) > 9 else "")
        raise ValueError(
            f"`source` must be {_CHOICES}. Received: source={source!r}, a folder "
            f"without a tokenizer, which holds {shown or 'nothing'}"
        )
    return make_tokenizer(folder, _family(folder, found))


def _is_keras_file(path):
    # A vocabulary may have a token of this name, whose id is a number.
    return isinstance(read_json(path).get("class_name"), str)


def _family(folder, files):
    """The family that `config.json` names; else that of the first file."""
    path = os.path.join(folder, "config.json")
    if os.path.exists(path):
        family = tokens_family(read_json(path).get("model_type"))
        if family is not None:
            return family
    return _family_of_file(folder, files[0])


def _family_of_file(folder, name):
    if _FILES[name] is not None:
        return _FILES[name]
    if name == "tokenizer.json":
        return TokenizerJson(os.path.join(folder, name)).family
    try:
        model = ModelProto.FromString(read_bytes(os.path.join(folder, name)))
    except Exception:  # Protobuf's; what reads the whole file says what is wrong.
        return "albert"
    pieces = {piece.piece for piece in model.pieces}
    return "xlnet" if "<cls>" in pieces else "albert"
