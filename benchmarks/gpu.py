r"""The cost of a pretraining step and of inference on a GPU, with Keras on JAX.

Needs Keras, JAX and absl alone. Encoders of `tfeff.layers` at base width, under a
masked LM head on the masked positions, take AdamW steps in mixed bfloat16 without
dropout; inference is the same model's logits. Each is timed in turns with BERT and
with a large matrix product, in a process of its own: the ratios are medians over
the rounds, and so is the share of the card's own matrix rate that the products of
the step reach. BERT's own row is BERT against BERT: the error of the measurement.

BERT's attention is fused on a GPU that has it (`tfeff.ops.kernels.fused`). Peers do
its work by other hands: `unfused_attention` is tfeff's own kernel, `keras_attention`
Keras' MultiHeadAttention, `jax_attention` that of `jax.nn`, `cudnn_attention` cuDNN's.
`shatter_half` is Shatter with as many sequences of half the length, as its authors
pretrain it to save half the memory.

Rows are added to `gpu.csv` in `--results` as they come, and rows that are already
there are not made again.

    PYTHONPATH=. python benchmarks/gpu.py --variants=bert,shatter,cudnn_attention

What fusion gives, by length:

    for length in 512 2048 8192; do
      PYTHONPATH=. python benchmarks/gpu.py --length=$length \
        --batch_size=$((8192 / length)) \
        --variants=bert,unfused_attention,cudnn_attention
    done
"""

import math
import os
import tempfile
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from absl import app, flags
from gpu_device import find_gpu
from gpu_models import VARIANTS, make_batch, make_model
from gpu_peers import PEERS
from rows import markdown, read, record, write_tables
from steps import VOCABULARY, in_own_process

REFERENCE = "bert"
HALF = "shatter_half"
CHOICES = (*VARIANTS, HALF)
HEAD_DIM = 64
SETTINGS = ("device", "layers", "hidden_dim", "batch_size", "length")
TIMES = ("ms", "ratio", "low", "high")
COSTS = tuple(f"{what}_{name}" for what in ("train", "infer") for name in TIMES)
COSTS += ("tflop", "tflop_a_second", "share", "temporary", "peak")
FIELDS = (*SETTINGS, "variant", *COSTS)

FLAGS = flags.FLAGS
flags.DEFINE_list("variants", list(CHOICES), "What to measure.")
flags.DEFINE_integer("layers", 12, "Blocks of each encoder.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 768, "Width, 64 for each head.", lower_bound=256)
flags.DEFINE_integer("batch_size", 16, "Sequences in a batch.", lower_bound=1)
flags.DEFINE_integer("length", 512, "Tokens in a sequence.", lower_bound=2)
flags.DEFINE_integer("rounds", 15, "Times that each is timed.", lower_bound=1)
flags.DEFINE_integer("steps", 5, "Steps in a round.", lower_bound=1)
flags.DEFINE_integer("matrix_size", 8192, "Rows of the large matrices.", lower_bound=1)
flags.DEFINE_boolean("allow_cpu", False, "Run without a GPU too, as the tests do.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.register_validator(
    "variants",
    lambda names: set(names) <= set(CHOICES),
    f"must be of {', '.join(CHOICES)}",
)
flags.register_validator(
    "hidden_dim",
    lambda dim: dim % (2 * HEAD_DIM) == 0,
    f"must be a multiple of {2 * HEAD_DIM}: Shatter's number of parts is even",
)


def main(_):
    """Makes the rows that are missing, and reports after each."""
    # BERT is compiled beside each of the others, but only once.
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)
        run()


def run():
    """`main`, where JAX keeps what it compiles."""
    device = find_gpu(FLAGS.allow_cpu)
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "gpu.csv")
    sizes = {name: getattr(FLAGS, name) for name in SETTINGS if name != "device"}
    failures = []
    for variant in FLAGS.variants:
        case = {"device": device, **sizes, "variant": variant}
        case = {name: str(value) for name, value in case.items()}
        if any(case.items() <= row.items() for row in read(path)):
            continue
        try:
            costs = in_own_process(
                measure, variant, sizes, FLAGS.rounds, FLAGS.steps, FLAGS.matrix_size
            )
        except Exception as error:  # The others may well run.
            failures.append(variant)
            print(f"{variant} failed: {error}", flush=True)
            continue
        record(path, FIELDS, [{**case, **costs}])
        print(variant, costs, flush=True)
        report(path)
    if failures:
        raise SystemExit(f"not measured: {', '.join(failures)}")


def measure(variant, sizes, rounds: int, steps: int, matrix_size: int) -> dict:
    """Times a variant in turns with BERT and a matrix product; returns `COSTS`.

    Milliseconds and, over BERT's, the median and quartiles; 10¹² floating-point
    operations in the matrix products of a train step, their rate, and its share of
    the large product's; temporary memory as XLA plans it and the device's peak, in
    bytes.
    """
    keras.config.set_dtype_policy("mixed_bfloat16")
    if variant == HALF:
        this = Program("shatter", **sizes | {"length": sizes["length"] // 2})
    else:
        this = Program(variant, **sizes)
    jax.block_until_ready(this.train())
    statistics = jax.devices()[0].memory_stats() or {}  # Processors keep none.
    bert = Program(REFERENCE, **sizes)
    product = MatrixProduct(matrix_size)
    # The peers do BERT's work, some of it in kernels whose products cannot be seen.
    flops = (bert if variant in PEERS else this).flops
    runs = {
        "train": this.train,
        "bert train": bert.train,
        "infer": this.infer,
        "bert infer": bert.infer,
        "product": product.run,
    }
    seconds = interleaved(runs, rounds, steps)
    costs = {}
    for what in ("train", "infer"):
        ratios = seconds[what] / seconds[f"bert {what}"]
        low, ratio, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        costs[f"{what}_ms"] = 1e3 * np.median(seconds[what])
        costs |= {f"{what}_ratio": ratio, f"{what}_low": low, f"{what}_high": high}
    rates = flops / seconds["train"]
    costs["tflop"] = flops / 1e12
    costs["tflop_a_second"] = np.median(rates) / 1e12
    costs["share"] = np.median(rates * seconds["product"] / product.flops)
    costs = {name: float(f"{cost:.4g}") for name, cost in costs.items()}
    peak = statistics.get("peak_bytes_in_use", "")
    return {**costs, "temporary": this.temporary, "peak": peak}


def interleaved(runs: dict, rounds: int, steps: int) -> dict[str, np.ndarray]:
    """Seconds a call of each of `runs`, one after another in every round."""
    for run_once in runs.values():
        jax.block_until_ready(run_once())
    seconds = {name: np.empty(rounds) for name in runs}
    for number in range(rounds):
        # The order is reversed every other round, so that a drift favours none.
        for name in list(runs)[:: (-1) ** number]:
            start = time.perf_counter()
            for _ in range(steps):
                result = runs[name]()
            jax.block_until_ready(result)
            seconds[name][number] = (time.perf_counter() - start) / steps
    return seconds


class MatrixProduct:
    """The product of two large square matrices in bfloat16."""

    def __init__(self, size: int):
        keys = jax.random.split(jax.random.key(0))
        self._factors = [jax.random.normal(k, (size, size), "bfloat16") for k in keys]
        self._product = jax.jit(lambda x, y: x @ y)
        self.flops = 2 * size**3

    def run(self):
        """The product."""
        return self._product(*self._factors)


class Program:
    """A variant's train step and inference, compiled, and the state they run on."""

    def __init__(self, variant, layers, hidden_dim, batch_size, length):
        heads = hidden_dim // HEAD_DIM
        batch = jax.device_put(make_batch(batch_size, length, VOCABULARY))
        model = make_model(variant, batch[0], layers, heads, hidden_dim, VOCABULARY)
        self._state = tuple(
            [variable.value for variable in variables]
            for variables in (
                model.trainable_variables,
                model.non_trainable_variables,
                model.optimizer.variables,
                model.metrics_variables,
            )
        )
        self._batch = batch
        self.flops = unfused_flops(model, self._state, batch)
        step = jax.jit(model.train_step, donate_argnums=0)
        self._train = step.lower(self._state, batch).compile()
        self.temporary = self._train.memory_analysis().temp_size_in_bytes

        def logits(trainable, non_trainable, inputs):
            return model.stateless_call(trainable, non_trainable, inputs)[0]

        self._infer = jax.jit(logits).lower(*self._state[:2], batch[0]).compile()

    def train(self):
        """One step."""
        logs, self._state = self._train(self._state, self._batch)
        return logs

    def infer(self):
        """The logits."""
        return self._infer(*self._state[:2], self._batch[0])


def unfused_flops(model, state, batch) -> int:
    """`matrix_flops` of a train step without fused kernels, which show no products."""
    keras.config.disable_flash_attention()
    try:
        return matrix_flops(jax.make_jaxpr(model.train_step)(state, batch).jaxpr)
    finally:
        keras.config.enable_flash_attention()


def matrix_flops(jaxpr) -> int:
    """Floating-point operations in the matrix products of a JAX program."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            result = equation.outvars[0].aval.shape
            total += (
                2 * math.prod(result) * math.prod(left[axis] for axis in contracted)
            )
        repeated = equation.params.get("length", 1)  # of a scan
        for value in equation.params.values():
            for part in value if isinstance(value, (list, tuple)) else (value,):
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    total += repeated * matrix_flops(part)
    return total


def report(path: str) -> None:
    """Writes the Markdown tables, one for each of the settings in the CSV file."""
    lines = [
        "# A pretraining step and inference on a GPU\n",
        f"Masked language model with {VOCABULARY} tokens, 15 % masked, AdamW, mixed "
        "bfloat16, no dropout; Keras on JAX. Ratios are to BERT in the same process, "
        "medians of the rounds (quartiles); BERT's own row shows their error. The "
        "share is that of the rate of one large bfloat16 matrix product, measured in "
        "the same rounds; peers are credited with BERT's operations.\n",
    ]
    write_tables(path, SETTINGS, lines, table)


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a Markdown table of rows with the same settings."""
    bert = next((row for row in rows if row["variant"] == REFERENCE), None)
    head = (
        *("model", "train ms", "/ BERT", "inference ms", "/ BERT", "TFLOP a step"),
        *("TFLOP/s", "share", "temporary MB", "/ BERT", "peak MB"),
    )
    lines = []
    for row in rows:
        cells = [row["variant"]]
        for what in ("train", "infer"):
            ms, ratio, low, high = (float(row[f"{what}_{name}"]) for name in TIMES)
            cells += [f"{ms:.2f}", f"{ratio:.3f} ({low:.3f}–{high:.3f})"]
        cells += [f"{float(row['tflop']):.3f}", f"{float(row['tflop_a_second']):.0f}"]
        temporary = int(row["temporary"])
        cells += [
            f"{float(row['share']):.1%}",
            f"{temporary / 1e6:.0f}",
            f"{temporary / int(bert['temporary']):.3f}" if bert else "",
            f"{int(row['peak']) / 1e6:.0f}" if row["peak"] else "",
        ]
        lines.append(cells)
    return markdown(head, lines)


if __name__ == "__main__":
    app.run(main)
