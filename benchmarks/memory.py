"""The memory of a pretraining step, by batch and length, as XLA reports it.

For each preset, the whole step (embeddings, blocks, masked LM head, gradients, AdamW,
no dropout) of Keras' JAX backend is compiled for the CPU in float32 or, without a TPU,
for a core of one in mixed bfloat16 (`--target=v3:2x2`). Two numbers come out:

- `temporary`, XLA's own report: what its program needs beside weights and data.
- `held`, counted: the bytes of what the forward pass keeps for the gradients, before
  XLA fuses or recomputes anything.

Each is taken with `--layers` blocks and with twice as many; the difference is what a
block costs, and 12 layers follow from it. BERT's and BlockBERT's bytes at 4096 tokens
are split into parts that grow with N and with N² as in the BlockBERT paper, section
2.2, and the memory of a whole step into model, optimizer and activations as in section
2.1 and equation 4: what the first two take is counted. Their attentions form the scores
of all pairs at once, whatever the length, as the paper's did. On the CPU, fresh
processes run one step of each preset to check the report.

Rows are added to `memory.csv`, `memory_parts.csv` and `memory_process.csv` in
`--results` as they come, and rows that are already there are not made again. Needs
`pip install '.[tpu,plots]'`.

    python benchmarks/memory.py
    python benchmarks/memory.py --target=v3:2x2 --sizes=16x512 --regression= \\
        --presets=bert_base,shatter_base,bert_rpe_base,huang3_base,huang4_base
"""

import functools
import math
import os

from absl import app, flags
from memory_report import (
    FIELDS,
    PARTS_FIELDS,
    PROCESS_FIELDS,
    SPLIT,
    TOKENS,
    WHOLE_BLOCKS,
    positions_of,
    report,
)
from rows import read, record
from steps import compile_jax, in_own_process, make_batch, make_model
from tpu_costs import without_tpu

FLAGS = flags.FLAGS
flags.DEFINE_string("target", "cpu", "cpu, or a TPU such as v3:2x2, v5e:2x2, v6e:2x2.")
flags.DEFINE_list("presets", None, "Presets of `tfeff.encoders`; all of base size.")
flags.DEFINE_list(
    "sizes", "4x512,16x128,16x256,16x512", "Batches, as sequences x tokens."
)
flags.DEFINE_list("regression", "128,256,512,1024,2048", "Lengths N; empty for none.")
flags.DEFINE_integer("layers", 2, "Blocks of the smaller encoder.", lower_bound=1)
flags.DEFINE_string("process", "4x512", "Batch of the processes' step; empty for none.")
flags.DEFINE_float("memory_limit", 8, "GB that a process may need to be run.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the rows that are missing, and reports after each preset."""
    os.environ["KERAS_BACKEND"] = "jax"
    without_tpu()
    sizes = [parse_size(size) for size in FLAGS.sizes if size]
    process = None
    if FLAGS.process and FLAGS.target == "cpu":
        process = parse_size(FLAGS.process)
    lengths = parse_lengths(FLAGS.regression)
    presets = check_presets(FLAGS.presets)
    device = find_device(FLAGS.target)

    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "memory.csv")
    failures = []
    for preset in presets:
        for case, compiled in cases(preset, sizes, lengths, process):
            if any(case.items() <= row.items() for row in read(path)):
                continue
            try:
                row = case | measure(case, device, compiled)
            except Exception as error:  # The others may well compile.
                failures.append(" ".join(case.values()))
                print(f"{failures[-1]} failed: {error}", flush=True)
                continue
            record(path, FIELDS, [row])
            print(", ".join(f"{name} {row[name]}" for name in row), flush=True)
        if preset in SPLIT:
            count_parts(path, preset, lengths + [length for _, length in sizes])
        if process:
            failures += run_processes(path, preset, process)
        if os.path.exists(path):
            report(path)
    if failures:
        raise SystemExit(f"not measured: {', '.join(failures)}")


def cases(preset: str, sizes, lengths, process) -> list[tuple[dict[str, str], bool]]:
    """The cases of a preset, and whether each is compiled or only counted."""
    wanted = dict.fromkeys([*sizes, *([process] if process else [])], True)
    if preset in SPLIT and lengths:
        wanted |= {(TOKENS // length, length): True for length in lengths}
        for length in WHOLE_BLOCKS:
            wanted.setdefault((max(WHOLE_BLOCKS) // length, length), False)
    return [
        (
            {
                "target": FLAGS.target,
                "preset": preset,
                "layers": str(layers),
                "batch_size": str(batch_size),
                "length": str(length),
            },
            compiled,
        )
        for layers in (FLAGS.layers, 2 * FLAGS.layers)
        for (batch_size, length), compiled in wanted.items()
    ]


def parse_size(size: str) -> tuple[int, int]:
    """`"16x512"` as batch size and length."""
    parts = size.split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) for part in parts):
        raise app.UsageError(
            f"A batch must be sequences x tokens, such as 16x512. Received: {size!r}"
        )
    return int(parts[0]), int(parts[1])


def parse_lengths(lengths: list[str]) -> list[int]:
    """Lengths that divide the tokens of the regression."""
    divisors = [str(length) for length in range(1, TOKENS + 1) if not TOKENS % length]
    if not set(lengths) <= {*divisors, ""}:
        raise app.UsageError(
            f"--regression must be divisors of {TOKENS}. Received: {lengths}"
        )
    return [int(length) for length in lengths if length]


def check_presets(names: list[str] | None) -> list[str]:
    """The presets asked for, by default those of base size, BERT first."""
    import tfeff

    known = list(tfeff.encoders.presets())
    if names is None:
        return [name for name in known if name.endswith("_base")]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise app.UsageError(f"--presets must be among {known}. Received: {unknown}")
    return names


def find_device(target: str):
    """The device to compile for: this CPU, or a core of a TPU that is not there."""
    import jax

    if target == "cpu":
        return jax.devices()[0]
    from jax.experimental import topologies

    return topologies.get_topology_desc(target, "tpu").devices[0]


def measure(case: dict[str, str], device, compiled: bool) -> dict[str, int | str]:
    """The `held` bytes of a case, and if it is `compiled` the `temporary` ones."""
    length = int(case["length"])
    policy = "float32" if case["target"] == "cpu" else "mixed_bfloat16"
    positions = positions_of(length)
    model = cached_model(case["preset"], int(case["layers"]), positions, policy)
    batch = make_batch(int(case["batch_size"]), length)
    row = {"temporary": "", "held": held_bytes(model, batch)}
    if compiled:
        stats = compile_jax(model, batch, device).get_compiled_memory_stats()
        row["temporary"] = stats.temp_size_in_bytes
    return row


@functools.lru_cache(maxsize=1)
def cached_model(preset: str, layers: int, max_sequence_length: int, policy: str):
    """A compiled masked language model; the last one is kept."""
    import keras

    import tfeff

    keras.backend.clear_session()
    keras.config.set_dtype_policy(policy)
    sizes = dict(num_layers=layers, max_sequence_length=max_sequence_length)
    if preset in SPLIT:
        small = tfeff.encoders.build(preset, vocabulary_size=8, num_layers=1)
        attention = small.get_config()["attention"]
        attention = {"name": attention} if isinstance(attention, str) else attention
        sizes["attention"] = {**attention, "query_block_size": None}
    return make_model(preset, dropout=0.0, **sizes)


def held_bytes(model, batch) -> int:
    """Bytes that JAX saves for the backward pass, without the weights."""
    import jax

    def residuals(weights, state):
        def forward(weights):
            return model.stateless_call(weights, state, batch[0], training=True)[0]

        _, backward = jax.vjp(forward, weights)
        weights = {id(weight) for weight in jax.tree.leaves((weights, state))}
        kept = {id(x): x for x in jax.tree.leaves(backward)}
        return [x for key, x in kept.items() if key not in weights]

    state = (model.trainable_variables, model.non_trainable_variables)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
    kept = jax.eval_shape(residuals, *shapes)
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in kept)


def count_parts(path: str, preset: str, lengths: list[int]) -> None:
    """Adds the bytes of weights, gradients and the optimizer's own variables."""
    path = path.replace(".csv", "_parts.csv")
    for positions in sorted({positions_of(length) for length in lengths}):
        for layers in (FLAGS.layers, 2 * FLAGS.layers):
            case = {"preset": preset, "layers": layers, "positions": positions}
            case = {name: str(value) for name, value in case.items()}
            if any(case.items() <= row.items() for row in read(path)):
                continue
            model = cached_model(preset, layers, positions, "float32")
            sizes = {
                "model": size_of(model.weights),
                "gradients": size_of(model.trainable_weights),
                "optimizer": size_of(model.optimizer.variables),
            }
            record(path, PARTS_FIELDS, [{**case, **sizes}])


def size_of(variables) -> int:
    """The bytes of variables."""
    return sum(v.value.nbytes for v in variables)


def run_processes(path: str, preset: str, size: tuple[int, int]) -> list[str]:
    """Runs a step of each backend in its own process; returns what could not be run."""
    case = {"preset": preset, "layers": str(FLAGS.layers)}
    case |= {"batch_size": str(size[0]), "length": str(size[1])}
    of_xla = case.items() | {("target", "cpu")}
    reported = [row["temporary"] for row in read(path) if of_xla <= row.items()]
    if not reported:
        return []
    if int(reported[0]) > FLAGS.memory_limit * 1e9:
        print(f"{preset} is not run: XLA reports {reported[0]} bytes", flush=True)
        return []
    failures = []
    path = path.replace(".csv", "_process.csv")
    for backend in ("jax", "tensorflow"):
        case["backend"] = backend
        if any(case.items() <= row.items() for row in read(path)):
            continue
        try:
            peak = in_own_process(process_peak, case)
        except Exception as error:  # Killed for its memory, for one.
            failures.append(f"{preset} on {backend}")
            print(f"{failures[-1]} failed: {error}", flush=True)
            continue
        record(path, PROCESS_FIELDS, [{**case, "peak": peak}])
        print(f"{preset}: peak {peak} on {backend}", flush=True)
    return failures


def process_peak(case: dict[str, str]) -> int:
    """Bytes by which a step raises this process above its model and its program.

    A step of one short sequence goes before, so that the libraries are loaded and the
    optimizer's variables are made.
    """
    os.environ["KERAS_BACKEND"] = case["backend"]
    batch_size, length = int(case["batch_size"]), int(case["length"])
    model = cached_model(
        case["preset"], int(case["layers"]), positions_of(length), "float32"
    )
    first, batch = make_batch(1, 8), make_batch(batch_size, length)
    if case["backend"] == "jax":
        import jax

        variables = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        step = jax.jit(model.train_step, donate_argnums=0)
        _, state = step(jax.tree.map(lambda x: x.value, variables), first)
        program = step.lower(state, batch).compile()
        before = resident()
        jax.block_until_ready(program(state, batch))
    else:
        model.train_on_batch(*first)
        before = resident()
        model.train_on_batch(*batch)
    return resident("VmHWM") - before


def resident(field: str = "VmRSS") -> int:
    """Bytes of memory that this process has now, or had at its peak: `VmHWM`.

    Not the peak of `getrusage`, which counts what the starting process has, too.
    """
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields[field].split()[0]) * 1024


if __name__ == "__main__":
    app.run(main)
