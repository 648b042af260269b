"""Time and memory of attentions over long documents, whole and in blocks of queries.

One layer at base width with 12 heads, one sequence, float32, no dropout, compiled by
XLA for this CPU through Keras' JAX backend. To train is to compute the output and the
gradients of input and weights; inference computes the output alone.

Memory is the temporary memory that XLA reports for the program; nothing is run. Time is
of the same programs, beside PyTorch's fused attention with the same projections: every
round runs all contenders of a comparison once, in an order drawn anew, and times are
compared within rounds. PyTorch is named as left out where it is missing.

Rows are added to `long.csv` and `long_times.csv` in `--results` as they come, and what
is already there from such a machine is not made again: delete what the code has
overtaken. Needs `pip install '.[tpu]'`; `torch` if it is to be compared.

    python benchmarks/long.py --costs=memory
    python benchmarks/long.py --costs=time --attentions=self,shatter --lengths=4096
    python benchmarks/long.py --quick
"""

import itertools
import os
import statistics
import tempfile
import time
from unittest import mock

import environment
import machine
import peers
from absl import app, flags
from attentions import attentions, step
from costs import left_out, seconds, time_rows, warm_up
from long_report import (
    MEMORY_FIELDS,
    PEER,
    REFERENCE,
    TASKS,
    TIME_FIELDS,
    WHOLE,
    report,
)
from rows import read, record

# For each name in the tables: the size of a block of queries, and whether near and far
# keys are parted, where an attention has a reach.
WAYS = {
    WHOLE: (None, False),
    "blocks of 128": (128, False),
    "blocks of 256": (256, False),
    "near and far": (256, True),
}
# Those that score all pairs. Method 3, slower by far, is measured if it is asked for.
DEFAULT = (
    *("self", "partitioned"),
    *("one_head_softmax", "one_head_sigmoid", "part_bias", "shatter"),
    *("shaw", "rpe", "bias", "huang1", "huang2", "huang4", "xlnet"),
    "sparse",
)
SCORED = (*DEFAULT, "huang3")

FLAGS = flags.FLAGS
flags.DEFINE_multi_enum("costs", ["memory", "time"], ["memory", "time"], "What of.")
flags.DEFINE_list("attentions", list(DEFAULT), "Names of `attentions.py`.")
flags.DEFINE_multi_enum("ways", list(WAYS), list(WAYS), "How the layer goes about it.")
flags.DEFINE_multi_enum("tasks", TASKS, TASKS, "What is computed.")
flags.DEFINE_list("lengths", "512,1024,2048,4096,8192,16384", "Tokens in a sequence.")
flags.DEFINE_integer("width", 768, "Hidden size; there are 12 heads.", lower_bound=12)
flags.DEFINE_integer("whole_limit", 4096, "The longest sequence that goes whole.")
flags.DEFINE_float("memory_limit", 8, "GB of temporary memory to be run.")
flags.DEFINE_integer("rounds", 5, "Times that all are timed.", lower_bound=2)
flags.DEFINE_string("note", "", "What readers of the times must know.")
flags.DEFINE_bool("quick", False, "A try: small sizes, results in a folder of its own.")
flags.DEFINE_string("results", None, "Where the results go: benchmarks/results.")


def main(_):
    """Makes the rows that are missing, and reports after each."""
    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    if FLAGS.quick:
        FLAGS.width, FLAGS.lengths, FLAGS.rounds = 24, ["256", "512"], 2
    lengths = check_lengths()
    results = FLAGS.results or (
        tempfile.mkdtemp() if FLAGS.quick else "benchmarks/results"
    )
    environment.ensure()
    os.makedirs(results, exist_ok=True)
    path = os.path.join(results, "long.csv")
    peers.import_first()
    settings = {"machine": machine.processor(), "width": str(FLAGS.width)}
    for cost, make in (("memory", add_memory), ("time", add_times)):
        if cost not in FLAGS.costs:
            continue
        cases = itertools.product(lengths, FLAGS.attentions, FLAGS.tasks)
        for length, attention, task in cases:
            case = dict(attention=attention, task=task, length=str(length))
            make(path, settings | case)
            report(path)
    print(f"{path.replace('.csv', '.md')} has the tables")


def check_lengths() -> list[int]:
    """The lengths in order, if the flags make sense.

    Raises:
        absl.app.UsageError: if a flag does not.
    """
    if not all(length.isdecimal() and int(length) for length in FLAGS.lengths):
        raise app.UsageError(
            f"--lengths must be integers above 0. Received: {FLAGS.lengths}"
        )
    if FLAGS.width % (2 * peers.HEADS):
        raise app.UsageError(
            f"--width must be a multiple of {2 * peers.HEADS}. Received: {FLAGS.width}"
        )
    unknown = sorted(set(FLAGS.attentions) - set(SCORED))
    if unknown:
        raise app.UsageError(
            f"--attentions must be among {', '.join(SCORED)}. Received: {unknown}"
        )
    return sorted(map(int, FLAGS.lengths))


def ways(length: int) -> list[str]:
    """The ways that are wanted for a length."""
    return [way for way in FLAGS.ways if way != WHOLE or length <= FLAGS.whole_limit]


def add_memory(path: str, case: dict[str, str]) -> None:
    """Adds the rows of memory that a case lacks, one a way."""
    for way in ways(int(case["length"])):
        row = case | {"way": way}
        if any(row.items() <= other.items() for other in read(path)):
            continue
        start = time.perf_counter()
        _, temporary = compiled(row)
        seconds = time.perf_counter() - start
        record(path, MEMORY_FIELDS, [row | {"temporary": temporary}])
        name = " ".join(list(row.values())[2:])
        print(f"{name}: {temporary / 1e6:.1f} MB, {seconds:.0f} s", flush=True)


def add_times(path: str, case: dict[str, str]) -> None:
    """Adds the rows of times of a case, all its contenders, if it has none."""
    path = path.replace(".csv", "_times.csv")
    if any(case.items() <= row.items() for row in read(path)):
        return
    wanted = [(case["attention"], way) for way in ways(int(case["length"]))]
    wanted = dict.fromkeys([*wanted, (REFERENCE, WHOLE), (PEER, "")])
    rows, programs = [], []
    case = case | {"seconds": "", "left_out": "", "note": FLAGS.note}
    for contender, way in wanted:
        row = case | {"contender": contender, "way": way}
        rows.append(row)
        try:
            run = runnable(row)
        except (ImportError, MemoryError) as error:
            row["left_out"] = left_out(error)
            continue
        programs.append((row, run, warm_up(run)[0]))
    time_rows(programs, FLAGS.rounds)
    for row, _, _ in programs:
        median = f"{1e3 * statistics.median(seconds(row)):.1f} ms"
        print(*(row[name] for name in TIME_FIELDS[2:7]), median, flush=True)
    record(path, TIME_FIELDS, rows)


def runnable(row: dict[str, str]):
    """A function that runs the program of a contender to its end.

    Raises:
        ImportError: if the contender's library is not installed.
        MemoryError: if the program wants more memory than the limit.
    """
    if row["contender"] == PEER:
        sizes = peers.Sizes(
            layers=1,
            width=int(row["width"]),
            vocabulary=2,
            length=int(row["length"]),
            batch_size=1,
            dropout=0.0,
        )
        contender = peers.make("pytorch:fused", sizes, row["task"], "float32")
        return contender.modes["eager"]
    import jax
    import numpy as np

    program, temporary = compiled(row | {"attention": row["contender"]})
    if temporary > FLAGS.memory_limit * 1e9:
        raise MemoryError(f"it wants {temporary / 1e9:.1f} GB")
    generator = np.random.default_rng(0)
    arguments = jax.tree.map(
        lambda x: jax.numpy.asarray(0.02 * generator.standard_normal(x.shape), x.dtype),
        program.args_info[0],
    )
    return lambda: jax.block_until_ready(program(*arguments))


def compiled(row: dict[str, str]):
    """The program of a layer, and the bytes of its temporary memory."""
    import jax
    import keras

    from tfeff.layers import scored_attention

    keras.backend.clear_session()
    shape = (1, int(row["length"]), int(row["width"]))
    maker = attentions(peers.HEADS, shape[1])[row["attention"]]
    size, near_and_far = WAYS[row["way"]]
    layer = maker(query_block_size=size)
    layer.build(shape)

    def infer(weights, state, hidden):
        return layer.stateless_call(weights, state, hidden, training=False)[0]

    def train(*arguments):
        return step(layer, *arguments)

    weights, state = (
        [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in variables]
        for variables in (layer.trainable_variables, layer.non_trainable_variables)
    )
    hidden = jax.ShapeDtypeStruct(shape, "float32")
    arguments = [weights, state, hidden]
    if row["task"] == "train":
        arguments.append(hidden)
    function = train if row["task"] == "train" else infer
    share = scored_attention.NEAR_SHARE * near_and_far
    with mock.patch.object(scored_attention, "NEAR_SHARE", share):
        program = jax.jit(function).lower(*arguments).compile()
    return program, program.memory_analysis().temp_size_in_bytes


if __name__ == "__main__":
    app.run(main)
