import importlib.util
import math

import pytest

from tests.benchmarks.scripts import run

ROW = dict(
    backend="tensorflow",
    topology="v3:2x2",
    layers="2",
    batch_size="16",
    length="512",
    dropout="0.0",
    memory_efficient="False",
    flops="2000000000000",
    bytes="30000000000",
    arguments="400000000",
    cycles="18800000",
)


@pytest.fixture(scope="module")
def tpu(load):
    return load("tpu.py")


@pytest.mark.parametrize(
    "estimate, seconds", [(0.124, 0.124), (-2.876, 0.124), (-0.25, 0.75), (0.0, 0.0)]
)
def test_operations_of_unknown_cost(tpu, estimate, seconds):
    assert tpu["corrected"](estimate) == pytest.approx(seconds, abs=1e-12)


def test_table(tpu, tmp_path):
    path = str(tmp_path / "tpu.csv")
    assert tpu["read"](path) == []
    rows = [
        ROW | dict(preset="shatter_base", seconds="0.018", temporary="300000000"),
        ROW | dict(preset="bert_base", seconds="0.02", temporary="600000000"),
    ]
    for row in rows:
        tpu["record"](path, tpu["FIELDS"], [row])
    for row, wanted in zip(tpu["read"](path), rows, strict=True):
        assert wanted.items() <= row.items()
    assert [cells(line) for line in tpu["table"](rows)[2:]] == [
        "shatter_base 18.0 0.900 0.85 18.8 1.000 2.000 30.0 300 0.500 400",
        "bert_base 20.0 1.000 - 18.8 1.000 2.000 30.0 600 1.000 400",
    ]
    assert [cells(line) for line in tpu["table"](rows[:1])[2:]] == [
        "shatter_base 18.0 - 0.85 18.8 - 2.000 30.0 300 - 400"
    ]


def cells(line):
    return " ".join(cell.strip() or "-" for cell in line.split("|")[1:-1])


def test_copies_are_dropped(tpu):
    mlir = pytest.importorskip(
        "jax._src.interpreters.mlir", reason="jax is not installed (extra tpu)"
    )
    from jaxlib.mlir import ir

    text = """
    func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %y = stablehlo.negate %x : tensor<2xf32>
      %z = "mhlo.copy"(%y) : (tensor<2xf32>) -> tensor<2xf32>
      %v = "mhlo.copy"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %z, %v : tensor<2xf32>, tensor<2xf32>
    }
    """
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        tpu["drop_copies"](module)
        operations = list(module.body.operations[0].entry_block)
        assert [operation.name for operation in operations] == [
            "stablehlo.negate",
            "func.return",
        ]
        results = list(operations[1].operands)
        assert results[0] == operations[0].result
        assert results[1] == module.body.operations[0].entry_block.arguments[0]


def test_cycles_of_a_schedule(tpu):
    errors = pytest.importorskip("jax.errors", reason="jax is not installed")

    class Program:
        def __init__(self, text):
            self.text = text

        def hlo_modules(self):
            if self.text is None:
                raise errors.JaxRuntimeError("INTERNAL")
            return [self]

        def to_string(self):
            return self.text

    text = '{"estimated_cycles":"12"} {"x":"5"} {"estimated_cycles":"30"}'
    assert tpu["scheduled_cycles"](Program(text)) == 42
    assert math.isnan(tpu["scheduled_cycles"](Program(None)))


@pytest.mark.slow
@pytest.mark.skipif(
    not (importlib.util.find_spec("jax") and importlib.util.find_spec("libtpu")),
    reason="jax and libtpu are not installed (extra tpu)",
)
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_steps_are_compiled_for_a_tpu(tpu, backend, tmp_path):
    presets = ["bert_tiny", "convbert_small", "shatter_tiny"]
    result = run(
        "tpu.py",
        *("--layers=1", "--batch_size=2", "--length=128", f"--backend={backend}"),
        f"--presets={','.join(presets)}",
        f"--results={tmp_path}",
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = tpu["read"](str(tmp_path / "tpu.csv"))
    assert [row["preset"] for row in rows] == presets
    for row in rows:
        assert 0 < float(row["seconds"]) < float(row["cycles"]) / 1e8
        assert int(row["flops"]) > 6 * 2 * 128 * 128**2
    assert "bert_tiny" in (tmp_path / "tpu.md").read_text(encoding="utf-8")
