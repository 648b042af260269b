"""Fixtures and the TensorFlow set-up that all tests share."""

import os
import random
from pathlib import Path

# TensorFlow reads these once, when it is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import numpy as np
import pytest
import tensorflow as tf

# Distribution tests need two devices: MirroredStrategy(["CPU:0", "CPU:1"]).
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# The comparisons are to 1e-5; TensorFloat-32 products are good to 1e-3 only.
tf.config.experimental.enable_tensor_float_32_execution(False)
if "PYTEST_XDIST_WORKER" in os.environ:
    # The processes share the cores: more threads would only hinder each other.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


@pytest.fixture(autouse=True)
def _seed():
    # Keras draws the seeds of its layers from Python's generator. TensorFlow's own
    # seed is left alone: setting it ends every tokenizer of tensorflow-text.
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; a test that asks for it skips without it."""
    beside_repository = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("TFEFF_DATA", beside_repository))
    if not path.is_dir():
        pytest.skip(f"no data at {path}: set TFEFF_DATA to the folder that holds it")
    return path
