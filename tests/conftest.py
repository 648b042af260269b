"""Fixtures and the TensorFlow set-up that all tests share."""

import gc
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

# TensorFlow reads these once, when it is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
# What a developer has set for themselves counts for no test, nor for its processes.
os.environ.pop("FORCE_COLOR", None)
os.environ.pop("TTY_COMPATIBLE", None)
os.environ.pop("TTY_INTERACTIVE", None)
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["KERAS_HOME"] = tempfile.mkdtemp(prefix="tfeff-tests-")
os.environ["TFEFF_CACHE"] = os.path.join(os.environ["KERAS_HOME"], "copies")

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, settings
from tensorflow.python.framework.ops import gradient_registry

# No test fails because a machine is slow: neither a case nor the drawing of cases.
settings.register_profile(
    "tfeff",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tfeff")

# Distribution tests need two devices: MirroredStrategy(["CPU:0", "CPU:1"]).
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# Shells let what they run in the background ignore Ctrl-C, and so do its processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The comparisons are to 1e-5; TensorFloat-32 products are good to 1e-3 only.
tf.config.experimental.enable_tensor_float_32_execution(False)
if "PYTEST_XDIST_WORKER" in os.environ:
    # The processes share the cores: more threads would only hinder each other.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def pytest_unconfigure():
    shutil.rmtree(os.environ["KERAS_HOME"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)  # Before `-m` chooses.
def pytest_collection_modifyitems(config, items):
    unknown = {}
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick is None:
            continue
        if item.callspec.id not in quick.args:
            item.add_marker(pytest.mark.slow)
        name = item.nodeid.partition("[")[0]
        unknown.setdefault(name, set(quick.args)).discard(item.callspec.id)
    wrong = {name: ids for name, ids in unknown.items() if ids}
    if wrong and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"`quick` must name parameters of the test: {wrong}")


def pytest_collection_finish():
    # The half a million objects of imported modules stay to the end: to look through
    # them for garbage again and again takes a tenth of the suite's time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="module", autouse=True)
def _modules_leave_nothing():
    """What stands after a module, of new imports, stays to the end."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _tests_leave_no_graph():
    """The models and graphs of a test end with it.

    TensorFlow's table of gradients has an entry for each use of a custom gradient in
    a graph, for ever, and each holds its graph, whose captures hold the weights:
    gigabytes over the suite, which every `gc.collect` of Keras looks through.
    """
    table = gradient_registry._registry
    before = set(table)
    yield
    new = [x for x in table if x not in before and x.startswith("CustomGradient-")]
    for name in new:
        del table[name]
    if new:
        gc.collect()


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
