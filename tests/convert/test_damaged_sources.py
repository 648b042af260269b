"""Sources with a damaged file: refused by name, or what the file says is what counts.

Neither JSON, vocabularies nor safetensors have checksums: a flipped byte may make
another number, word or weight of them, and nobody can tell. Then the result must be
what the damaged file says, never a default in its place. TensorFlow's checkpoints
have checksums, so that no flip changes a weight.
"""

import io
import json
import shutil
import warnings

import numpy as np
import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tests.convert.conversions import GOLDENS, copied
from tfeff.convert import convert, harmless

_NOT_OF_THE_SOURCE = ("outputs.npz", "tokens.json")
# The tokens themselves are checked; how they are looked for in a text is not used.
_SETTINGS_OF_TOKENS = {"added_tokens_decoder"}
_EACH_KIND = (
    "bert_pretraining",
    "bert_relative_key",
    "albert",
    "convbert_grouped",
    "xlnet",
    "garden_bert",
    "garden_albert",
)


def files(name):
    """The names of a golden's files."""
    names = sorted(path.name for path in (GOLDENS / name).iterdir())
    return [file for file in names if file not in _NOT_OF_THE_SOURCE]


def damages(content, generator, flips):
    """Damaged versions of a file's content, and where a byte was flipped."""
    yield b"", None
    yield content[: int(generator.integers(1, len(content)))], None
    for place in generator.integers(len(content), size=flips).tolist():
        byte = content[place] ^ 1 << int(generator.integers(8))
        yield content[:place] + bytes([byte]) + content[place + 1 :], place


def check(golden, file, flips, original, tmp_path, seed=0):
    """Converts a golden with one file damaged, and counts how often it is refused."""
    source, folder = copied(golden, tmp_path), tmp_path / "out"
    folder.mkdir()
    content = (source / file).read_bytes()
    generator = np.random.default_rng([seed, *file.encode()])
    refused = 0
    for damaged, place in damages(content, generator, flips):
        (source / file).write_bytes(damaged)
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                result = convert(source, folder / "preset")
        except (OSError, TypeError, ValueError) as error:
            # Where two files contradict each other, the message says between which.
            assert file in str(error) or f"{golden}/" in str(error), error
            assert list(folder.iterdir()) == [], (damaged, place)
            refused += 1
            continue
        shutil.rmtree(folder / "preset")
        told = [str(warning.message) for warning in told]
        assert is_what_it_says(original, result, file, content, damaged, place, told), (
            f"byte {place} of {file} was flipped, {content[place - 30 : place + 30]}, "
            f"and became {damaged[place - 30 : place + 30]}"
        )
    return refused


def is_what_it_says(original, result, file, content, damaged, place, told):
    """Whether nothing but what a damaged file says is in the result."""
    same_weights = all(
        np.array_equal(array, other)
        for array, other in zip(
            original.encoder.get_weights(), result.encoder.get_weights(), strict=True
        )
    )
    if file.endswith("index.json"):
        return same_weights
    if file.endswith(".json"):
        if any(file in message for message in told):
            return True
        before, after = json.loads(content), json.loads(damaged)
        changed = {n for n in {*before, *after} if before.get(n) != after.get(n)}
        if changed <= harmless.CONFIG | harmless.TOKENIZER | _SETTINGS_OF_TOKENS:
            return same_weights
        return configs(original) != configs(result)
    if file == "vocab.txt":
        with io.TextIOWrapper(io.BytesIO(damaged), encoding="utf-8") as lines:
            pieces = [line.removesuffix("\n") for line in lines]
        return same_weights and result.tokenizer.get_vocabulary() == pieces
    if file == "spiece.model":
        pieces = [piece.piece for piece in ModelProto.FromString(damaged).pieces]
        return same_weights and result.tokenizer.get_vocabulary() == pieces
    if file.endswith(".safetensors"):
        header = 8 + int.from_bytes(content[:8], "little")
        return place >= header or same_weights
    return same_weights


def configs(converted):
    tokenizer = converted.tokenizer
    parts = converted.encoder.get_config(), tokenizer and tokenizer.get_config()
    return [
        {key: value for key, value in (part or {}).items() if key != "name"}
        for part in parts
    ]


@pytest.mark.quick("bert")
@pytest.mark.parametrize("golden", ["bert", "albert", "garden_bert"])
def test_damaged_files(golden, tmp_path):
    original = convert(GOLDENS / golden, tmp_path / "original")
    for file in files(golden):
        # What is empty or cut short, at least; a text may be cut behind a line.
        assert check(golden, file, 1, original, tmp_path / file) > 0


@pytest.mark.slow
@pytest.mark.parametrize("golden", _EACH_KIND)
def test_many_damaged_files(golden, tmp_path):
    original = convert(GOLDENS / golden, tmp_path / "original")
    for file in files(golden):
        flips = 4 if file == "spiece.model" else 12
        assert check(golden, file, flips, original, tmp_path / file, seed=1) > 0
