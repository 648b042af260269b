"""The page's table of presets and formats: `python -m tests.export.matrix`.

It computes the cells that are empty: delete those that the code has overtaken. It needs
the extras `onnx` and `tpu`, and PyTorch. All presets of a kind, which differ in their
sizes alone, have one row. Each is made tiny, with three layers and random weights, and
compared with Keras on TensorFlow.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tests.subjects.formats import (
    LENGTHS,
    error,
    exported,
    named_outputs,
    randomized,
    runner,
)
from tfeff.encoders import presets

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "EXPORT.md"
FORMATS = {"SavedModel": "tf_saved_model", "LiteRT": "litert", "ONNX": "onnx"}
BACKENDS = {"JAX": "jax", "PyTorch": "torch"}
COLUMNS = (*FORMATS, *BACKENDS, "int8")
YES = "✓"
# Of float32, and of int8 beside it.
TOLERANCE, INT8_TOLERANCE = 1e-5, 0.1
_SIZES = {
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    *("embedding_dim", "dropout"),
}
_ON_BACKEND = """
import sys
if sys.argv[1] == "torch":
    import torch  # Before TensorFlow, with which its compiler does not get along.
import keras, numpy as np
from tests.subjects.encoders import tiny
assert keras.backend.backend() == sys.argv[1]
saved, results = np.load(sys.argv[2]), {}
for name in sys.argv[4:]:
    encoder = tiny(name, num_layers=3)
    weights = [saved[f"{name}/{i}"] for i in range(len(encoder.weights))]
    encoder.set_weights(weights)
    outputs = encoder({x: saved[f"{name}/{x}"] for x in encoder.input})
    states = outputs["hidden_states"]
    for index, x in enumerate(states):
        results[f"{name}/{index}"] = keras.ops.convert_to_numpy(x)
np.savez(sys.argv[3], **results)
"""


def kinds() -> list[list[str]]:
    """The names of all presets, those of one kind together."""
    groups = {}
    for name, preset in presets().items():
        config = {k: v for k, v in preset["config"].items() if k not in _SIZES}
        groups.setdefault(json.dumps(config, sort_keys=True), []).append(name)
    return list(groups.values())


def make_encoder(name):
    return randomized(tiny(name, num_layers=3))


def format_cell(name: str, column: str, folder: Path) -> str:
    """Whether a preset's export agrees with Keras, for batches of any size."""
    encoder = make_encoder(name)
    call = runner(exported(encoder, folder, FORMATS[column]))
    errors = []
    for lengths in LENGTHS:
        batch = batch_of(encoder, lengths, max(lengths))
        errors.append(error(call(batch), named_outputs(encoder, batch)))
    return _cell(max(errors))


def int8_cell(name: str, folder: Path) -> str:
    """The quantizers whose exports are close to float32.

    Keras' is exported as a SavedModel, which agrees with Keras; ONNX Runtime's is of
    the weights of an ONNX file.
    """
    from onnxruntime.quantization import quantize_dynamic

    encoder = make_encoder(name)
    batch = batch_of(encoder, LENGTHS[0], max(LENGTHS[0]))
    exact = named_outputs(encoder, batch)
    path = exported(encoder, folder, "onnx")
    quantize_dynamic(path, folder / "int8.onnx")
    found = {"ONNX Runtime": runner(str(folder / "int8.onnx"))(batch)}
    encoder.quantize("int8")
    found["Keras"] = runner(exported(encoder, folder, "tf_saved_model"))(batch)
    # In a graph as the export is: operation by operation an activation halfway between
    # two of its 255 values may be rounded to the other one.
    in_graph = tf.function(lambda batch: named_outputs(encoder, batch))
    assert error(found["Keras"], in_graph(batch)) <= TOLERANCE
    scale = max(float(np.abs(x).max()) for x in exact.values())
    close = [x for x in found if 0 < error(found[x], exact) <= INT8_TOLERANCE * scale]
    return ", ".join(sorted(close)) or "–"


def backend_cells(column: str, folder: Path) -> dict[str, str]:
    """By preset, whether an encoder computes the same with another backend of Keras."""
    arrays, expected, names = {}, {}, [names[0] for names in kinds()]
    for name in names:
        encoder = make_encoder(name)
        batch = batch_of(encoder)
        expected[name] = encoder(batch)["hidden_states"]
        arrays |= {f"{name}/{x}": array for x, array in batch.items()}
        arrays |= {f"{name}/{i}": w for i, w in enumerate(encoder.get_weights())}
    given, results = folder / "given.npz", folder / "results.npz"
    np.savez(given, **arrays)
    backend = BACKENDS[column]
    done = subprocess.run(
        [sys.executable, "-c", _ON_BACKEND, backend, given, results, *names],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with np.load(results) as found:
        return {
            name: _cell(
                max(
                    float(np.abs(found[f"{name}/{i}"] - np.asarray(x)).max())
                    for i, x in enumerate(expected[name])
                )
            )
            for name in names
        }


def _cell(error: float) -> str:
    return YES if error <= TOLERANCE else f"{error:.0e}"


def format_table(cells: dict[str, dict[str, str]]) -> str:
    """The table of cells by the first preset of a kind, then by column."""
    lines = [" | ".join(("| presets", *COLUMNS)) + " |", "|---" * 7 + "|"]
    for names in kinds():
        row = (cells[names[0]][column] for column in COLUMNS)
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(" | ".join((f"| {listed}", *row)) + " |")
    return "\n".join(lines)


def read_table(page: str) -> dict[str, dict[str, str]]:
    """The cells of the page, and raises unless its rows and columns are today's."""
    table = page.split("| presets | ")[1].split("\n\n")[0].splitlines()
    columns = [x.strip() for x in table[0].strip("| ").split("|")]
    assert columns == list(COLUMNS)
    cells = {}
    for names, line in zip(kinds(), table[2:], strict=True):
        first, *row = (x.strip() for x in line.strip().strip("|").split("|"))
        assert first == ", ".join(f"`{name}`" for name in names)
        cells[names[0]] = dict(zip(columns, row, strict=True))
    return cells


def main():
    """Computes the cells that are empty, and writes the page after each row."""
    cells = read_table(PAGE.read_text(encoding="utf-8"))
    for column in BACKENDS:
        if not all(row[column] for row in cells.values()):
            with tempfile.TemporaryDirectory() as folder:
                for name, cell in backend_cells(column, Path(folder)).items():
                    cells[name][column] = cell
            write_table(cells)
    for name, row in cells.items():
        for column in (*FORMATS, "int8"):
            if row[column]:
                continue
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                row[column] = (
                    int8_cell(name, folder)
                    if column == "int8"
                    else format_cell(name, column, folder)
                )
        write_table(cells)
        print(name, row, flush=True)


def write_table(cells):
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split("| presets | ")
    after = after.split("\n\n", 1)[1]
    PAGE.write_text(f"{before}{format_table(cells)}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
