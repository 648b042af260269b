"""What TensorFlow began, JAX and PyTorch train on with the same numbers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.checks import assert_close
from tests.subjects import backends
from tfeff.training import load_checkpoint

REPOSITORY = Path(__file__).resolve().parents[1]
# Half precision rounds elsewhere on each backend.
TOLERANCES = {"masked_lm in half precision": 2e-2}
QUICK = ("masked_lm in parts",)


def trained(backend, cases, folder):
    """Trains the cases here and on the other backend."""
    expected = {}
    for case in cases:
        backends.begin(case, folder)
        expected[case] = backends.go_on(case, folder)
    result = subprocess.run(
        [sys.executable, "-m", "tests.subjects.backends", folder, *cases],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KERAS_BACKEND": backend},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return expected


@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(QUICK, id="quick"),
        pytest.param(
            [case for case in backends.CASES if case not in QUICK],
            id="all",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_training(backend, cases, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    assert keras.backend.backend() == "tensorflow"
    for case, expected in trained(backend, cases, tmp_path).items():
        tolerance = TOLERANCES.get(case, 1e-5)
        with np.load(backends.path(tmp_path, case, f"{backend}.npz")) as found:
            assert set(found.files) == set(expected)
            for name, value in expected.items():
                assert_close(found[name], value, tolerance, f"{case}: {name}")
            # And back.
            model = load_checkpoint(backends.path(tmp_path, case, f"{backend}.keras"))
            for index, variable in enumerate(model.weights):
                saved = found[f"weight {index} {variable.path}"]
                np.testing.assert_array_equal(variable.numpy(), saved)
            steps = int(model.optimizer.iterations.numpy())
            assert steps == 2 * backends.STEPS
