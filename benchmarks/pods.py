"""The cost of a pretraining step on slices of TPU pods, by compiler, without a TPU.

Compiles the step of `tpu.py`, of Keras' JAX backend, for all cores of each slice: every
core has all weights and `--batch_size` sequences, and XLA adds what sums the gradients.
Reports what the compiler expects of one core, time and memory, and the bytes of the
collective operations, for which the compiler writes no cost: their time is bytes over
the published bandwidth of the links, see `collectives.py`.

TensorFlow's `TPUStrategy` cannot be compiled without a TPU. It runs the same step in
each replica and sums the same gradients.

Rows are added to `pods.csv` in `--results` as they come, and rows that are already
there are not made again: delete those that the code has overtaken.

    python benchmarks/pods.py --topologies=v3:4x4 --presets=bert_base,shatter_base
"""

import math
import os

import collectives
from absl import app, flags
from rows import markdown, read, record, write_tables
from steps import VOCABULARY, compile_jax, in_own_process, make_batch, make_model
from tpu_costs import corrected, scheduled_cycles, without_tpu

SETTINGS = ("layers", "batch_size", "length")
COSTS = (
    *("hosts", "chips", "replicas", "seconds", "cycles", "temporary", "arguments"),
    *("weights", "reduced", "moved", "collective_seconds"),
)
FIELDS = (*SETTINGS, "preset", "topology", *COSTS)

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "topologies",
    ["v3:2x2", "v3:2x4", "v3:4x4", "v5e:2x2", "v5e:2x4", "v5e:4x4"],
    "Slices: 4 chips, 8 of two hosts, 16.",
)
flags.DEFINE_list("presets", ["bert_base", "shatter_base"], "As of tpu.py.")
flags.DEFINE_integer("layers", 12, "Blocks of each encoder.", lower_bound=1)
flags.DEFINE_integer("batch_size", 16, "Sequences on each core.", lower_bound=1)
flags.DEFINE_integer("length", 512, "Tokens in a sequence.", lower_bound=1)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the rows that are missing; reports in the end."""
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "pods.csv")
    settings = {name: str(getattr(FLAGS, name)) for name in SETTINGS}
    for topology in FLAGS.topologies:
        for preset in FLAGS.presets:
            case = {**settings, "preset": preset, "topology": topology}
            if any(case.items() <= row.items() for row in read(path)):
                continue
            row = {**case, **in_own_process(measure, case)}
            record(path, FIELDS, [row])
            print(", ".join(f"{name} {row[name]}" for name in row), flush=True)
    write_tables(path, SETTINGS, head(), table)


def measure(case: dict[str, str]) -> dict[str, float]:
    """Compiles the step of a case (`SETTINGS`, preset, topology); returns its `COSTS`:

    of one core the estimated `seconds`, corrected, the `cycles` of the final schedule,
    and bytes of `temporary` memory and of `arguments`; bytes of the trainable
    `weights` in float32, of what is `reduced` over all cores, and of what else is
    `moved` among them; and the `collective_seconds` of both.
    """
    os.environ["KERAS_BACKEND"] = "jax"
    without_tpu()
    import keras
    from jax.experimental import topologies

    keras.config.set_dtype_policy("mixed_bfloat16")
    devices = topologies.get_topology_desc(case["topology"], "tpu").devices
    length = int(case["length"])
    model = make_model(
        case["preset"],
        num_layers=int(case["layers"]),
        dropout=0.0,
        max_sequence_length=max(512, length),
    )
    batch = make_batch(int(case["batch_size"]) * len(devices), length)
    return costs(model, batch, case["topology"], devices)


def costs(model, batch, topology: str, devices) -> dict[str, float]:
    """The `COSTS` of a model's step with a batch's rows divided among the devices."""
    program = compile_jax(model, batch, *devices)
    memory = program.get_compiled_memory_stats()
    operations = collectives.collectives(program.hlo_modules()[0].to_string())
    tpu, chips = topology.partition(":")[0], len({tuple(d.coords) for d in devices})
    kinds = {"all-reduce": 0, "others": 0}
    for operation in operations:
        kind = operation.kind if operation.kind in kinds else "others"
        kinds[kind] += operation.bytes
    sizes = [math.prod(variable.shape) for variable in model.trainable_variables]
    return {
        "hosts": len({device.process_index for device in devices}),
        "chips": chips,
        "replicas": len(devices),
        "seconds": round(corrected(program.cost_analysis()["optimal_seconds"]), 6),
        "cycles": scheduled_cycles(program),
        "temporary": memory.temp_size_in_bytes,
        "arguments": memory.argument_size_in_bytes,
        "weights": 4 * sum(sizes),
        "reduced": kinds["all-reduce"],
        "moved": kinds["others"],
        "collective_seconds": round(collectives.seconds(operations, tpu, chips), 6),
    }


def head() -> list[str]:
    """The lines before the tables."""
    return [
        "# A pretraining step on slices of TPU pods, as the compiler estimates it\n",
        f"Masked language model with {VOCABULARY} tokens, 15 % masked, AdamW, mixed "
        "bfloat16, Keras' JAX step, the batch divided among all cores. Nothing ran on "
        "a TPU. The time of collective operations is an assumption: their bytes over "
        "the published bandwidth of two links a chip, without overlap or latency.\n",
    ]


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a Markdown table of rows with the same settings."""
    head = (
        *("preset", "slice", "hosts", "chips", "replicas", "ms", "collectives, ms"),
        *("share", "reduced MB", "moved MB", "weights MB", "temporary MB", "tokens/s"),
    )
    lines = []
    for row in rows:
        step, between = float(row["seconds"]), float(row["collective_seconds"])
        tokens = int(row["batch_size"]) * int(row["length"]) * int(row["replicas"])
        megabytes = (
            f"{int(row[name]) / 1e6:.1f}"
            for name in ("reduced", "moved", "weights", "temporary")
        )
        cells = (
            *(row[name] for name in ("preset", "topology", *COSTS[:3])),
            f"{step * 1e3:.1f}",
            f"{between * 1e3:.2f}",
            f"{between / (step + between):.3f}",
            *megabytes,
            f"{tokens / (step + between):,.0f}",
        )
        lines.append(cells)
    return markdown(head, lines)


if __name__ == "__main__":
    app.run(main)
