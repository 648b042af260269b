import os
import subprocess
import sys

import numpy as np
import pytest

import tfeff
from tests.benchmarks.scripts import FOLDER
from tests.checks import assert_close

jax = pytest.importorskip("jax", reason="jax is not installed (extra tpu)")

REPOSITORY = FOLDER.parent
TINY = {
    "layers": 2,
    "hidden_dim": 256,
    "batch_size": 2,
    "length": 16,
    "rounds": 2,
    "steps": 1,
    "matrix_size": 64,
}


@pytest.fixture(scope="module")
def gpu(load):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "tensorflow")  # The module changes it.
        yield load("gpu.py")


@pytest.fixture
def run_without_tensorflow(tmp_path):
    """Runs a program on JAX where the packages on TensorFlow are not installed."""
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "sitecustomize.py").write_text(
        "import sys\nsys.modules.update(tensorflow=None, keras_hub=None)\n"
    )
    path = os.pathsep.join(map(str, (absent, REPOSITORY, FOLDER)))
    environment = {"PYTHONPATH": path, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    return lambda *command: subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "preset", [name for name in tfeff.encoders.presets() if name.endswith("_base")]
)
def test_models_are_those_of_the_presets(gpu, preset):
    vocabulary_size, sizes = 11, dict(num_layers=2, num_heads=12, hidden_dim=24)
    inputs, labels = gpu["make_batch"](3, 7, vocabulary_size)
    inputs["padding_mask"][1, 5:] = inputs["padding_mask"][2, 1:] = 0
    variant = preset.removesuffix("_base")
    model = gpu["make_model"](variant, inputs, vocabulary_size=vocabulary_size, **sizes)
    encoder = tfeff.encoders.build(
        preset,
        vocabulary_size=vocabulary_size,
        intermediate_dim=96,
        dropout=0.0,
        **sizes,
    )
    expected = tfeff.objectives.MaskedLM(encoder)
    rng = np.random.default_rng(0)
    for weight, other in zip(model.weights, expected.weights, strict=True):
        value = rng.normal(0, 0.3, weight.shape)
        weight.assign(value)
        other.assign(value)
    assert_close(model(inputs), expected(inputs), 1e-5, preset)
    assert labels.shape == inputs["mask_positions"].shape == (3, 2)


PEERS = """
import numpy as np
from gpu_peers import JaxAttention, KerasAttention
from tfeff.layers import SelfAttention

rng = np.random.default_rng(0)
hidden = rng.normal(size=(3, 5, 8)).astype("float32")
mask = np.arange(5) < np.array([[5], [3], [1]])
weights = [rng.normal(size=(8, 8) if i % 2 == 0 else 8) for i in range(8)]
bert, peer, keras_peer = SelfAttention(2), JaxAttention(2, "xla"), KerasAttention(2)
for layer in (bert, peer, keras_peer):
    layer.build((3, 5, 8))
bert.set_weights(weights)
peer.set_weights(weights)
shapes = [w.shape for w in keras_peer.get_weights()]
keras_peer.set_weights([w.reshape(s) for w, s in zip(weights, shapes, strict=True)])
expected = np.asarray(bert(hidden, padding_mask=mask))
for layer in (peer, keras_peer):
    result = np.asarray(layer(hidden, padding_mask=mask))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
"""


def test_peers_compute_bert(run_without_tensorflow):
    result = run_without_tensorflow("-c", PEERS)
    assert result.returncode == 0, result.stderr


def test_operations_of_matrix_products(gpu):
    def flops(function, *shapes):
        arrays = [jax.numpy.ones(shape) for shape in shapes]
        return gpu["matrix_flops"](jax.make_jaxpr(function)(*arrays).jaxpr)

    def product(x, y):
        return jax.numpy.tanh(jax.jit(jax.numpy.matmul)(x, y))

    def repeated(x, y):
        return jax.lax.scan(lambda z, _: (product(z, y), None), x, length=3)[0]

    assert flops(product, (2, 5), (5, 7)) == 2 * 2 * 5 * 7
    assert flops(product, (4, 2, 5), (4, 5, 7)) == 4 * 2 * 2 * 5 * 7
    assert flops(repeated, (2, 5), (5, 5)) == 3 * 2 * 2 * 5 * 5
    gradients = jax.grad(lambda x, y: product(x, y).sum(), (0, 1))
    assert flops(gradients, (2, 5), (5, 7)) == 3 * 2 * 2 * 5 * 7


def test_each_is_timed_in_every_round(gpu):
    calls = []
    runs = {name: (lambda name=name: calls.append(name)) for name in "ab"}
    seconds = gpu["interleaved"](runs, rounds=3, steps=2)
    assert "".join(calls) == "ab" + "aabb" + "bbaa" + "aabb"
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}
    assert all((times > 0).all() for times in seconds.values())


def test_table(gpu):
    row = dict(
        **dict.fromkeys(("train_ms", "infer_ms"), "20.5"),
        **dict.fromkeys(("train_low", "infer_low"), "0.7"),
        **dict.fromkeys(("train_ratio", "infer_ratio"), "0.75"),
        **dict.fromkeys(("train_high", "infer_high"), "0.8"),
        **dict(tflop="6.1234", tflop_a_second="298.71", share="0.4321"),
    )
    rows = [
        row | dict(variant="shatter", temporary="300000000", peak=""),
        row | dict(variant="bert", temporary="600000000", peak="5000000000"),
    ]
    times = "20.50 0.750 (0.700–0.800) " * 2
    assert [cells(line) for line in gpu["table"](rows)[2:]] == [
        f"shatter {times}6.123 299 43.2% 300 0.500 -",
        f"bert {times}6.123 299 43.2% 600 1.000 5000",
    ]
    assert cells(gpu["table"](rows[:1])[2]) == (
        f"shatter {times}6.123 299 43.2% 300 - -"
    )


def cells(line):
    return " ".join(cell.strip() or "-" for cell in line.split("|")[1:-1])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "No GPU: JAX"),
        (["--variants=bert,brt"], "--variants"),
        (["--hidden_dim=200"], "--hidden_dim"),
    ],
)
def test_what_cannot_be_measured(run_without_tensorflow, tmp_path, arguments, message):
    results = tmp_path / "results"
    result = run_without_tensorflow(
        FOLDER / "gpu.py", f"--results={results}", *arguments
    )
    assert result.returncode != 0
    assert message in result.stdout + result.stderr
    assert not results.exists()


@pytest.mark.slow
def test_rows_are_made_once(run_without_tensorflow, tmp_path, gpu):
    sizes = [f"--{name}={value}" for name, value in TINY.items()]
    command = (FOLDER / "gpu.py", "--allow_cpu", f"--results={tmp_path}", *sizes)
    result = run_without_tensorflow(
        *command, "--variants=bert,jax_attention,shatter_half"
    )
    assert result.returncode == 0, result.stderr
    rows = gpu["read"](str(tmp_path / "gpu.csv"))
    assert [row["variant"] for row in rows] == ["bert", "jax_attention", "shatter_half"]
    assert rows[0]["tflop"] == rows[1]["tflop"]
    assert float(rows[2]["tflop"]) < float(rows[0]["tflop"])
    assert all(float(row["train_ms"]) > 0 for row in rows)
    assert "| jax_attention |" in (tmp_path / "gpu.md").read_text()
    again = run_without_tensorflow(
        *command, "--variants=bert,jax_attention,shatter_half"
    )
    assert again.returncode == 0 and again.stdout == ""
