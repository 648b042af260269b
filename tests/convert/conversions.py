"""The goldens, converted by the command and loaded from the presets."""

import functools
import json
import shutil
import sys
import types
from pathlib import Path

import numpy as np

from tests.checks import assert_close
from tfeff.command.main import main
from tfeff.encoders import Encoder

GOLDENS = Path(__file__).parent / "goldens"
HEAD_GOLDENS = Path(__file__).parent / "head_goldens"
TOKENIZER_GOLDENS = Path(__file__).parent / "tokenizer_goldens"
# Of tokenizers the setting for which their family's class has another default.
OF_CLASSES = {
    "bert_accents": "strip_accents",
    "bert_cased": "do_lower_case",
    "bert_whole_chinese": "tokenize_chinese_chars",
    "roberta_prefix_space": "add_prefix_space",
}
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
INPUTS = ("token_ids", "segment_ids", "padding_mask")


def hub(monkeypatch, snapshot_download):
    """Puts a function in place of the library that downloads from the hub."""
    module = types.ModuleType("huggingface_hub")
    module.snapshot_download = snapshot_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


@functools.cache
def preset(name, root):
    """The preset of a golden, under the folder `root`; made once."""
    destination = Path(root) / name
    assert main(["convert", str(GOLDENS / name), str(destination)]) == 0
    return str(destination)


@functools.cache
def arrays(name):
    """The inputs and outputs of a golden."""
    with np.load(GOLDENS / name / "outputs.npz") as file:
        return dict(file)


def check_hidden_states(directory, name):
    """The preset's hidden states, at real tokens, are the golden's."""
    golden = arrays(name)
    outputs = Encoder.from_preset(str(directory))({key: golden[key] for key in INPUTS})
    states = [np.asarray(state) for state in outputs["hidden_states"]]
    # Model Garden does not give the state before the first block.
    expected = golden.get("hidden_states", golden.get("blocks"))
    assert len(states) - len(expected) == (0 if "hidden_states" in golden else 1)
    real = golden["padding_mask"].astype(bool)
    for index, state in enumerate(expected, len(states) - len(expected)):
        assert_close(states[index][real], state[real], 1e-4, f"X^{index} of {name}")
        # ELECTRA's golden is itself 1.2e-5 from what float64 gives, all others 3e-6.
        bound = 1.5e-5 if name == "electra_discriminator" else 1e-5
        assert np.abs(states[index][real] - state[real]).max() < bound


def write_safetensors(path, tensors, **changes):
    """Writes arrays in the format of safetensors."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        dtype = DTYPES.get(str(array.dtype), "I64")
        header[name] = dict(
            dtype=dtype,
            shape=list(array.shape),
            data_offsets=[len(data), len(data) + array.nbytes],
        )
        header[name] |= changes
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def copied(name, folder):
    """A copy of a golden, to be damaged."""
    return Path(shutil.copytree(GOLDENS / name, Path(folder) / name))


def changed(name, folder, file="config.json", **changes):
    """A copy of a golden with changes in its configuration."""
    source = copied(name, folder)
    config = json.loads((source / file).read_text()) | changes
    (source / file).write_text(json.dumps(config))
    return source
