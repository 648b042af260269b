"""The cost of a pretraining step on a TPU, estimated by its compiler, without a TPU.

Compiles the whole step of each preset (embeddings, blocks, masked LM head on the
masked positions, gradients, AdamW, mixed bfloat16) for one core of a TPU, with the
compiler in `libtpu` (`pip install '.[tpu]'`), and reports what that expects: time,
operations, bytes and memory, beside what the papers measured. The step is that of
Keras' TensorFlow backend, as `fit` runs it, or that of its JAX backend. `keras_hub`
among the presets is KerasHub's BERT with the same head, loss and optimizer.

Rows are added to `tpu.csv` in `--results` as they come, and rows that are already
there are not made again: delete those that the code has overtaken.

    python benchmarks/tpu.py --layers=2 --presets=bert_base,shatter_base
"""

import os

from absl import app, flags
from rows import markdown, read, record, write_tables
from steps import VOCABULARY, compile_jax, in_own_process, make_batch, make_model
from tpu_costs import corrected, scheduled_cycles, without_tpu

REFERENCE = "bert_base"
PRESETS = (
    "bert_base,keras_hub,shatter_base,bert_rab_base,bert_rpe_base,xlnet_base,"
    "xlnet_two_streams,shaw_base,"
    "huang_absolute_base,huang1_base,huang2_base,huang3_base,huang4_base,"
    "blockbert_n2_base,blockbert_n3_base,sparsebert_base,convbert_small,"
    "convbert_medium_small,convbert_base,albert_base,distilbert_base,no_position_base,"
    "part_mask_base,one_head_softmax_base,one_head_sigmoid_base,part_bias_base"
)
# Training time over BERT's: Shatter's table 1, on TPU v3 (its XLNet runs two
# streams, twice the work of one); BlockBERT's table 2, on GPUs and over RoBERTa's.
PAPERS = {
    "shatter_base": 0.85,
    "bert_rab_base": 1.21,
    "xlnet_two_streams": 2.3,
    "bert_rpe_base": 3.9,
    "blockbert_n2_base": 0.88,
    "blockbert_n3_base": 0.875,
}
SETTINGS = (
    *("backend", "topology", "layers", "batch_size", "length", "dropout"),
    "memory_efficient",
)
COSTS = ("seconds", "flops", "bytes", "temporary", "arguments", "cycles")
FIELDS = (*SETTINGS, "preset", *COSTS)

FLAGS = flags.FLAGS
flags.DEFINE_list("presets", PRESETS, "Presets of `tfeff.encoders`, and keras_hub.")
flags.DEFINE_enum("backend", "tensorflow", ["tensorflow", "jax"], "Keras' backend.")
flags.DEFINE_string("topology", "v3:2x2", "TPU, such as v3:2x2, v5e:2x2 or v6e:2x2.")
flags.DEFINE_integer("layers", 12, "Blocks of each encoder.", lower_bound=1)
flags.DEFINE_integer("batch_size", 16, "Sequences on the core.", lower_bound=1)
flags.DEFINE_integer("length", 512, "Tokens in a sequence.", lower_bound=1)
flags.DEFINE_float("dropout", 0.0, "Dropout rate of every preset.")
flags.DEFINE_enum(
    "memory_efficient", "False", ["False", "attention", "block"], "What is recomputed."
)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the rows that are missing, and reports after each."""
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "tpu.csv")
    settings = {name: str(getattr(FLAGS, name)) for name in SETTINGS}
    failures = []
    for preset in FLAGS.presets:
        case = {**settings, "preset": preset}
        if any(case.items() <= row.items() for row in read(path)):
            continue
        try:
            row = {**case, **in_own_process(measure, case)}
        except Exception as error:  # The other presets may well compile.
            failures.append(preset)
            print(f"{preset} failed: {error}", flush=True)
            continue
        record(path, FIELDS, [row])
        print(", ".join(f"{name} {row[name]}" for name in row), flush=True)
        report(path)
    if failures:
        raise SystemExit(f"not compiled: {', '.join(failures)}")


def measure(case: dict[str, str]) -> dict[str, float]:
    """Compiles the step of a case (`SETTINGS` and preset); returns its `COSTS`:

    the estimated `seconds`, corrected; `flops`; `bytes` accessed; bytes of
    `temporary` memory and of `arguments`; and the `cycles` of the final schedule,
    which count the copies between layouts that the estimate knows no cost for.
    """
    os.environ["KERAS_BACKEND"] = case["backend"]
    without_tpu()
    import keras
    from jax.experimental import topologies

    keras.config.set_dtype_policy("mixed_bfloat16")
    topology = topologies.get_topology_desc(case["topology"], "tpu")
    sizes = {
        "num_layers": int(case["layers"]),
        "dropout": float(case["dropout"]),
        "max_sequence_length": max(512, int(case["length"])),
    }
    if case["memory_efficient"] != "False":  # KerasHub's has no such argument.
        sizes["memory_efficient"] = case["memory_efficient"]
    model = make_model(case["preset"], **sizes)
    batch = make_batch(int(case["batch_size"]), int(case["length"]))
    compilers = {"tensorflow": compile_tensorflow, "jax": compile_jax}
    program = compilers[case["backend"]](model, batch, topology.devices[0])
    costs, memory = program.cost_analysis(), program.get_compiled_memory_stats()
    return {
        "seconds": round(corrected(costs["optimal_seconds"]), 6),
        "flops": int(costs["flops"]),
        "bytes": int(costs["bytes accessed"]),
        "temporary": memory.temp_size_in_bytes,
        "arguments": memory.argument_size_in_bytes,
        "cycles": scheduled_cycles(program),
    }


def compile_tensorflow(model, batch, device):
    """TensorFlow's program of `model.train_step`, compiled for a TPU `device`."""
    import numpy as np
    import tensorflow as tf
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir

    step = tf.function(model.train_step, jit_compile=True)
    hlo = step.experimental_get_compiler_ir(batch)(stage="hlo_serialized")
    with mlir.make_ir_context():
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo))
        drop_copies(module)
        assignment = np.array([[device.id]])
        options = compiler.get_compile_options(
            num_replicas=1, num_partitions=1, device_assignment=assignment
        )
        return device.client.compile(module, _jax.DeviceList((device,)), options)


def drop_copies(module) -> None:
    """Takes out the copies of results: StableHLO has no such operation."""
    from jaxlib.mlir import ir

    copies = []

    def collect(operation):
        if operation.name == "mhlo.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for copy in copies:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def report(path: str) -> None:
    """Writes the Markdown tables, one for each of the settings in the CSV file."""
    lines = [
        "# A pretraining step on one TPU core, as its compiler estimates it\n",
        f"Masked language model with {VOCABULARY} tokens, 15 % masked, AdamW, mixed "
        "bfloat16. Nothing ran on a TPU. The cycles, unlike the time, count copies "
        "between layouts.\n",
    ]
    write_tables(path, SETTINGS, lines, table)


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a Markdown table of rows with the same settings."""
    bert = next((row for row in rows if row["preset"] == REFERENCE), None)
    head = (
        *("preset", "ms", "/ BERT", "paper", "Mcycles", "/ BERT", "TFLOP"),
        *("GB accessed", "temporary MB", "/ BERT", "argument MB"),
    )
    lines = []
    for row in rows:
        cells = (
            row["preset"],
            f"{float(row['seconds']) * 1e3:.1f}",
            ratio(row, bert, "seconds"),
            str(PAPERS.get(row["preset"], "")),
            f"{float(row['cycles']) / 1e6:.1f}",
            ratio(row, bert, "cycles"),
            f"{float(row['flops']) / 1e12:.3f}",
            f"{float(row['bytes']) / 1e9:.1f}",
            f"{float(row['temporary']) / 1e6:.0f}",
            ratio(row, bert, "temporary"),
            f"{float(row['arguments']) / 1e6:.0f}",
        )
        lines.append(cells)
    return markdown(head, lines)


def ratio(row: dict[str, str], reference: dict[str, str] | None, cost: str) -> str:
    """A cost over that of `reference`; empty without one."""
    return f"{float(row[cost]) / float(reference[cost]):.3f}" if reference else ""


if __name__ == "__main__":
    app.run(main)
