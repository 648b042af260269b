"""A training pass holds a few arrays of the scores' size, whatever the attention."""

import subprocess
import sys

import pytest

from tests.subjects.peak_memory import ATTENTIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_training_pass_on_tensorflow(name):
    """Also where a loop's steps could all begin at once."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.subjects.peak_memory", name],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 16
