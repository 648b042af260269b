"""The goldens, converted by the command and loaded from the presets."""

import functools
import shutil
from pathlib import Path

import numpy as np

from tests.checks import assert_close
from tfeff.command.main import main
from tfeff.encoders import Encoder

GOLDENS = Path(__file__).parent / "goldens"
INPUTS = ("token_ids", "segment_ids", "padding_mask")


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
        assert np.abs(states[index][real] - state[real]).max() < 1e-5


def copied(name, folder):
    """A copy of a golden, to be damaged."""
    return Path(shutil.copytree(GOLDENS / name, Path(folder) / name))
