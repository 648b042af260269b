"""BlockBERT's table 7: the time of inference in half precision, on a GPU.

Encoders at base size read random tokens, in float16 throughout and with Keras on JAX;
the mean of `--runs` runs is reported, and "OOM" where the device's memory does not
suffice. The paper's device has 32 GB: `--memory_fraction` leaves that much of a larger
one. Each case has a process of its own. BERT's attention is fused on a GPU that has it;
`unfused_attention` is BERT without that, as the paper's RoBERTa.

Needs Keras, JAX and absl alone. Rows are added to `gpu_test_time.csv` in `--results` as
they come, and rows that are already there are not made again.

    PYTHONPATH=. python benchmarks/gpu_test_time.py --memory_fraction=0.4
"""

import os
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from absl import app, flags
from gpu_device import find_gpu
from gpu_models import VARIANTS, make_batch, make_encoder
from rows import markdown, read, record, write_tables
from steps import VOCABULARY, in_own_process

HEAD_DIM = 64
PAPER = {  # Seconds on a V100 of 32 GB; None where its memory did not suffice.
    "unfused_attention": {8: 0.1371, 16: None, 24: None, 32: None},
    "blockbert_n2": {8: 0.0990, 16: 0.1869, 24: None, 32: None},
    "blockbert_n3": {8: 0.0954, 16: 0.1790, 24: 0.2634, 32: None},
}
OUT_OF_MEMORY = "OOM"
SETTINGS = ("device", "memory_fraction", "layers", "hidden_dim", "length", "runs")
FIELDS = (*SETTINGS, "variant", "batch_size", "seconds", "peak")

FLAGS = flags.FLAGS
flags.DEFINE_list("variants", [*PAPER, "bert"], "What to measure.")
flags.DEFINE_list("batch_sizes", ["8", "16", "24", "32"], "Sequences in a batch.")
flags.DEFINE_integer("length", 1024, "Tokens in a sequence.", lower_bound=2)
flags.DEFINE_integer("layers", 12, "Blocks of each encoder.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 768, "Width, 64 for each head.", lower_bound=192)
flags.DEFINE_integer("runs", 30, "Times that each is run.", lower_bound=1)
flags.DEFINE_float(
    "memory_fraction", None, "Share of the device's memory that may be used."
)
flags.DEFINE_boolean("allow_cpu", False, "Run without a GPU too, as the tests do.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.register_validator(
    "variants",
    lambda names: set(names) <= set(VARIANTS),
    f"must be of {', '.join(VARIANTS)}",
)
flags.register_validator(
    "batch_sizes",
    lambda sizes: all(size.isdecimal() and int(size) for size in sizes),
    "must be integers above 0",
)
flags.register_validator(
    "hidden_dim", lambda dim: dim % HEAD_DIM == 0, f"must be a multiple of {HEAD_DIM}"
)
flags.register_validator(
    "memory_fraction",
    lambda share: share is None or 0 < share <= 1,
    "must be in (0, 1]",
)


def main(_):
    """Makes the rows that are missing, and reports after each."""
    if FLAGS.memory_fraction:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(FLAGS.memory_fraction)
    device = find_gpu(FLAGS.allow_cpu)
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "gpu_test_time.csv")
    settings = {name: getattr(FLAGS, name) for name in SETTINGS if name != "device"}
    settings["memory_fraction"] = FLAGS.memory_fraction or 1.0
    for variant in FLAGS.variants:
        for batch_size in map(int, FLAGS.batch_sizes):
            case = {"device": device, **settings}
            case |= {"variant": variant, "batch_size": batch_size}
            case = {name: str(value) for name, value in case.items()}
            if any(case.items() <= row.items() for row in read(path)):
                continue
            sizes = (FLAGS.layers, FLAGS.hidden_dim, batch_size, FLAGS.length)
            seconds, peak = in_own_process(measure, variant, *sizes, FLAGS.runs)
            record(path, FIELDS, [{**case, "seconds": seconds, "peak": peak}])
            print(variant, batch_size, seconds, flush=True)
            report(path)


def measure(variant, layers, hidden_dim, batch_size, length, runs) -> tuple:
    """Mean seconds of a run, or "OOM", and the device's peak in bytes."""
    keras.config.set_dtype_policy("float16")
    inputs, _ = make_batch(batch_size, length, VOCABULARY)
    heads = hidden_dim // HEAD_DIM
    try:
        model, _ = make_encoder(variant, inputs, layers, heads, hidden_dim, VOCABULARY)
        inputs = jax.device_put({name: inputs[name] for name in model.input})
        seconds = mean_seconds(forward_of(model, inputs), runs)
    except jax.errors.JaxRuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return OUT_OF_MEMORY, ""
    statistics = jax.devices()[0].memory_stats() or {}  # Processors keep none.
    return f"{seconds:.4g}", statistics.get("peak_bytes_in_use", "")


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device had too little memory for what was asked."""
    return "RESOURCE_EXHAUSTED" in str(error)


def forward_of(model, inputs):
    """The model's pass over the inputs, compiled."""
    weights = (
        [variable.value for variable in model.trainable_variables],
        [variable.value for variable in model.non_trainable_variables],
    )
    forward = jax.jit(lambda *arguments: model.stateless_call(*arguments)[0])
    compiled = forward.lower(*weights, inputs).compile()
    return lambda: compiled(*weights, inputs)


def mean_seconds(forward, runs: int) -> float:
    """Seconds of a run, which waits for its end; the first one does not count."""
    jax.block_until_ready(forward())
    seconds = np.empty(runs)
    for number in range(runs):
        start = time.perf_counter()
        jax.block_until_ready(forward())
        seconds[number] = time.perf_counter() - start
    return float(seconds.mean())


def report(path: str) -> None:
    """Writes the Markdown tables, one for each of the settings in the CSV file."""
    lines = [
        "# The time of inference in half precision on a GPU\n",
        "Seconds of a pass of the encoder, the mean of the runs; the paper's "
        "(BlockBERT, table 7, a V100 of 32 GB) in brackets.\n",
    ]
    write_tables(path, SETTINGS, lines, table)


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a Markdown table: a variant a row, a batch a column."""
    sizes = sorted({int(row["batch_size"]) for row in rows})
    length = rows[0]["length"]
    lines = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        seconds = {
            int(row["batch_size"]): row["seconds"]
            for row in rows
            if row["variant"] == variant
        }
        cells = [variant]
        for size in sizes:
            cell = seconds.get(size, "")
            if length == "1024" and size in PAPER.get(variant, {}):
                cell += f" ({PAPER[variant][size] or OUT_OF_MEMORY})"
            cells.append(cell.strip())
        lines.append(cells)
    return markdown(("model", *(f"{size} × {length}" for size in sizes)), lines)


if __name__ == "__main__":
    app.run(main)
