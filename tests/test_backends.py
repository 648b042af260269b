"""What TensorFlow began, JAX and PyTorch train on with the same numbers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close
from tests.subjects import backend_layers, backends, objectives, second_gradients
from tfeff import recipes, training
from tfeff.command.main import main
from tfeff.tasks.augmentation.mlm_candidates import MLMCandidates
from tfeff.training import load_checkpoint

REPOSITORY = Path(__file__).resolve().parents[1]
# It rounds elsewhere on each backend.
HALF_PRECISION = "masked_lm in half precision"
QUICK = ("masked_lm in parts",)


def run(backend, *program):
    """Runs a module of Python on another backend; skips the test if there is none."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    result = subprocess.run(
        [sys.executable, *program],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KERAS_BACKEND": backend},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def trained(backend, cases, folder):
    """Trains the cases here and on the other backend."""
    expected = {}
    # To trace so many small models takes longer than to train them.
    tf.config.run_functions_eagerly(len(cases) > len(QUICK))
    try:
        for case in cases:
            backends.begin(case, folder)
            expected[case] = backends.go_on(case, folder)
    finally:
        tf.config.run_functions_eagerly(False)
    run(backend, "-m", "tests.subjects.backends", folder, *cases)
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
        with np.load(backends.path(tmp_path, case, f"{backend}.npz")) as found:
            assert set(found.files) == set(expected)
            for name, value in expected.items():
                if case == HALF_PRECISION:
                    error = np.linalg.norm(found[name] - value)
                    assert error <= 0.01 * np.linalg.norm(value), name
                else:
                    assert_close(found[name], value, 1e-5, f"{case}: {name}")
            # And back.
            model = load_checkpoint(backends.path(tmp_path, case, f"{backend}.keras"))
            for index, variable in enumerate(model.weights):
                saved = found[f"weight {index} {variable.path}"]
                np.testing.assert_array_equal(variable.numpy(), saved)
            steps = int(model.optimizer.iterations.numpy())
            assert steps == 2 * backends.STEPS


# Those on JAX are in tests/test_jax_backend.py.
def test_values_and_gradients_of_attentions_on_torch(tmp_path):
    run("torch", "-m", "tests.subjects.backend_layers", tmp_path / "torch.npz")
    expected = backend_layers.numbers()
    with np.load(tmp_path / "torch.npz") as found:
        assert set(found.files) == set(expected)
        for name, value in expected.items():
            assert_close(found[name], value, 2e-5, name)


def test_torch_knows_all_weights():
    run("torch", "-m", "tests.subjects.torch_parameters")


@pytest.mark.slow
def test_transforms_of_torch():
    run("torch", "-m", "tests.subjects.torch_transforms")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_gradients_of_gradients(backend):
    errors = [
        line.split("\t")
        for line in run(backend, "-m", "tests.subjects.second_gradients").splitlines()
    ]
    assert len(errors) > len(second_gradients.NAMES)
    assert not [(name, error) for name, error in errors if float(error) > 2e-3]


IN_FLOAT64 = """
import keras, numpy as np
from tests.subjects.encoders import tiny
from tfeff.tasks import Classifier
for activation in ("gelu", "gelu_tanh"):
    encoder = tiny(
        "bert_tiny", dtype="float64", feedforward={"activation": activation}
    )
    inputs = {name: np.ones((2, 5), "int32") for name in encoder.input}
    model = Classifier(encoder, 2)
    model.compile()
    losses = model.fit(inputs, np.array([0, 1]), epochs=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    output = encoder(inputs)["sequence_output"]
    assert keras.backend.standardize_dtype(output.dtype) == "float64"
"""


@pytest.mark.slow
def test_training_in_float64_on_torch():
    run("torch", "-c", IN_FLOAT64)


GOES_ON = """
import sys, keras, numpy as np
from tests.subjects.objectives import make_encoder
from tfeff.tasks import Classifier, SpanQA, TokenClassifier
from tfeff.training import AdamW, load_checkpoint, save_checkpoint
ids = np.random.default_rng(0).integers(5, 30, (12, 8)).astype("int32")
# Answers are in the second segment.
segments = 0 * ids + (np.arange(8) > 2)
inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": 0 * ids + 1}
classes = ids[:, 0] % 2
spans = {"start": 3 + classes, "end": 4 + classes}
for task, labels in (
    (lambda encoder: Classifier(encoder, 2, dropout=0.5), classes),
    (lambda encoder: TokenClassifier(encoder, 2, dropout=0.5), ids % 2),
    (lambda encoder: SpanQA(encoder, dropout=0.5), spans),
):
    def fit(model):
        shown = {"batch_size": 4, "shuffle": False, "verbose": 0}
        # Data that are drawn meanwhile change nothing.
        data = {"validation_data": (inputs, labels)} if model is other else {}
        return model.fit(inputs, labels, **shown, **data).history["loss"][0]
    other = None
    model = task(make_encoder(dropout=0.1))
    model.compile(AdamW(1e-3))
    fit(model)
    save_checkpoint(model, f"{sys.argv[1]}/model.keras")
    other = load_checkpoint(f"{sys.argv[1]}/model.keras")
    losses = fit(model), fit(other), fit(model)
    assert losses[0] == losses[1] != losses[2], losses
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_a_loaded_task_draws_the_dropout_that_it_would_have_had(backend, tmp_path):
    run(backend, "-c", GOES_ON, tmp_path)


FROZEN = """
import numpy as np
from tests.subjects.objectives import make_encoder
from tfeff.tasks import Classifier
from tfeff.training import AdamW
ids = np.full((4, 8), 7, "int32")
inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
model = Classifier(make_encoder(), 2)
for parameter in model.encoder.parameters():
    parameter.requires_grad_(False)
encoder, head = model.encoder, model.get_layer("logits")
for accumulation_steps in (1, 2):
    before = encoder.get_weights(), head.get_weights()
    model.compile(AdamW(1e-2), accumulation_steps=accumulation_steps)
    model.fit(inputs, np.array([0, 1, 1, 1]), verbose=0)
    for one, two in zip(before[0], encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(before[1][0], head.get_weights()[0])
"""


@pytest.mark.slow
def test_weights_that_pytorch_itself_has_frozen():
    run("torch", "-c", FROZEN)


IN_HALF_PRECISION = """
import keras, numpy as np
from keras import ops
from tfeff.layers import RelativeAttention
rng = np.random.default_rng(0)
x = rng.normal(size=(2, 256, 8)).astype("float32")
for method, reach in (("bias", None), ("rpe", 255), ("huang1", 255), ("huang4", 255)):
    whole = RelativeAttention(2, method, reach)
    whole.build(x.shape)
    whole.set_weights([rng.normal(size=w.shape) / 2 for w in whole.weights])
    expected = ops.convert_to_numpy(whole(x))
    keras.config.set_floatx("bfloat16")
    half = RelativeAttention(2, method, reach, dtype="bfloat16")
    half.build(x.shape)
    for weight, value in zip(half.weights, whole.weights, strict=True):
        weight.assign(ops.cast(value, weight.dtype))
    found = half(ops.convert_to_tensor(x, "bfloat16"))
    keras.config.set_floatx("float32")
    error = ops.convert_to_numpy(ops.cast(found, "float32")) - expected
    assert np.linalg.norm(error) <= 0.02 * np.linalg.norm(expected), method
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_positions_where_floats_are_bfloat16(backend):
    run(backend, "-c", IN_HALF_PRECISION)


@pytest.fixture
def on_jax(monkeypatch):
    """Keras says that it runs on JAX."""
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("`make_strategy`", lambda path: training.make_strategy()),
        (
            "`RunDirectory`",
            lambda path: training.RunDirectory(f"{path}/run", {}),
        ),
        ("`head_importance`", lambda path: training.head_importance(None, None)),
        (
            "`save_for_serving`",
            lambda path: tfeff.export.save_for_serving(None, None, f"{path}/export"),
        ),
        (
            "`export` with format='onnx'",
            lambda path: tfeff.export.export_model(
                keras.Sequential(), f"{path}/model.onnx", format="onnx"
            ),
        ),
        (
            "`augment` with a masked language model",
            lambda path: MLMCandidates(None, None, 1, 1),
        ),
        (
            "Recipes",
            lambda path: recipes.evaluate(
                recipes.EvaluateSettings(run_dir="run", corpus=("text",))
            ),
        ),
    ],
)
def test_what_tensorflow_alone_can_do_says_so(name, call, on_jax, tmp_path):
    message = f"{name}.* must have TensorFlow.*unset KERAS_BACKEND.*backend='jax'"
    with pytest.raises(ValueError, match=message):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_command_does_nothing_first(on_jax, tmp_path, capsys):
    assert main(["pretrain", f"--run_dir={tmp_path}/run", "--steps=4"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: Recipes") and "unset KERAS_BACKEND" in error
    assert not list(tmp_path.iterdir())


def test_several_steps_an_execution_on_torch(monkeypatch):
    model = objectives.make_masked_lm("bert_tiny")
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(ValueError, match="steps_per_execution.*PyTorch.*=2"):
        model.compile(steps_per_execution=2)


def test_a_saved_model_is_compiled_for_the_machine_that_loads_it():
    model = objectives.make_masked_lm("bert_tiny")
    assert model.get_compile_config()["jit_compile"] == "auto"
    model.compile(jit_compile=False)
    assert model.get_compile_config()["jit_compile"] is False
