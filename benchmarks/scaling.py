"""Time and memory of every attention of `tfeff.layers` against the length.

One layer at base width, one sequence, float32, no dropout: the output and the gradients
of input and weights, compiled by XLA for this CPU through Keras' JAX backend. The
program that is timed is the one whose temporary memory is reported. The attentions of
one length take turns, in an order that every round draws anew, and the median counts;
where XLA wants more than `--memory_limit`, only its report is kept. The exponents are
those of the last two octaves: 1 is linear. Two-stream attention is left out: it runs a
whole encoder.

Rows are added to `scaling.csv` in `--results` after each length, and rows that are
already there are not made again. Needs `pip install '.[tpu,plots]'`.

    python benchmarks/scaling.py --attentions=self,blockwise,dynamic_conv
"""

import functools
import os
import statistics

from absl import app, flags
from attentions import BLOCK, RELATIVE, TITLES, attentions, step
from costs import exponent, interleave
from rows import markdown, origins, read, record

REFERENCE = "self"
LINEAR = ("blockwise", "lightweight_conv", "dynamic_conv", "span_dynamic_conv")
SETTINGS = ("hidden_dim", "num_heads")
# What is drawn together, beside the reference.
FAMILIES = {
    "Shatter and the steps to it": (
        "partitioned",
        "one_head_softmax",
        "one_head_sigmoid",
        "part_bias",
        "shatter",
    ),
    "Relative positions": RELATIVE,
    "Blocks and fixed patterns": (
        "blockwise_n2",
        "blockwise_n3",
        "blockwise",
        "sparse",
    ),
    "Convolutions": (
        "lightweight_conv",
        "dynamic_conv",
        "span_dynamic_conv",
        "mixed",
        "mixed_separable",
    ),
}
FIELDS = (*SETTINGS, "attention", "length", "seconds", "temporary", "flops")
COSTS = {"seconds": ("time", "ms", 1e3), "temporary": ("temporary memory", "MB", 1e-6)}

FLAGS = flags.FLAGS
flags.DEFINE_list("attentions", None, "Names of this file's table; all by default.")
flags.DEFINE_list("lengths", "128,256,512,1024,2048,4096", "Tokens in the sequence.")
flags.DEFINE_integer("hidden_dim", 768, "Width D.", lower_bound=1)
flags.DEFINE_integer("num_heads", 12, "Heads or parts.", lower_bound=4)
flags.DEFINE_integer("rounds", 3, "Runs of each program.", lower_bound=1)
flags.DEFINE_float("memory_limit", 8, "GB of temporary memory to be run.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the rows that are missing, and reports after each length."""
    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    if not all(length.isdecimal() and int(length) for length in FLAGS.lengths):
        raise app.UsageError(
            f"--lengths must be integers above 0. Received: {FLAGS.lengths}"
        )
    if FLAGS.hidden_dim % FLAGS.num_heads:
        raise app.UsageError(
            "--num_heads must divide --hidden_dim. "
            f"Received: {FLAGS.num_heads}, {FLAGS.hidden_dim}"
        )
    known = list(attentions(FLAGS.num_heads, BLOCK))
    names = FLAGS.attentions or known
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise app.UsageError(f"--attentions must be among {known}. Received: {unknown}")

    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "scaling.csv")
    settings = {name: str(getattr(FLAGS, name)) for name in SETTINGS}
    for length in sorted(map(int, FLAGS.lengths)):
        cases = [
            settings | {"attention": name, "length": str(length)} for name in names
        ]
        done = read(path)
        missing = [
            case
            for case in cases
            if not any(case.items() <= row.items() for row in done)
        ]
        if missing:
            record(path, FIELDS, measure(missing, length))
        report(path)


def measure(cases: list[dict[str, str]], length: int) -> list[dict]:
    """Compiles the programs of a length and times them in turns; returns their rows."""
    import jax
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    makers = attentions(FLAGS.num_heads, length)
    normal = np.random.default_rng(0).standard_normal
    hidden, cotangent = (
        jax.numpy.asarray(normal((1, length, FLAGS.hidden_dim)), "float32")
        for _ in range(2)
    )
    rows, programs = [], []
    for case in cases:
        layer = makers[case["attention"]]()
        layer.build(hidden.shape)
        arguments = (
            [weight.value for weight in layer.trainable_variables],
            [weight.value for weight in layer.non_trainable_variables],
            hidden,
            cotangent,
        )
        program = jax.jit(functools.partial(step, layer)).lower(*arguments).compile()
        temporary = program.memory_analysis().temp_size_in_bytes
        fits = temporary <= FLAGS.memory_limit * 1e9
        programs.append(
            functools.partial(_finish, program, *arguments) if fits else None
        )
        flops = int(program.cost_analysis()["flops"])
        rows.append({**case, "temporary": temporary, "flops": flops, "seconds": ""})
    timed = [(row, run) for row, run in zip(rows, programs) if run]
    for _, run in timed:
        run()  # It does not count.
    times = interleave([(run, 1) for _, run in timed], FLAGS.rounds)
    for (row, _), seconds in zip(timed, times):
        row["seconds"] = f"{statistics.median(seconds):.6f}"
    for row in rows:
        print(", ".join(f"{name} {row[name]}" for name in FIELDS), flush=True)
    return rows


def _finish(program, *arguments):
    """Runs a program of JAX to its end."""
    import jax

    jax.block_until_ready(program(*arguments))


def curves(rows, cost: str) -> dict[str, dict[int, float]]:
    """A cost by length for each attention, where it is known; lengths ascend."""
    table = {}
    for row in sorted(rows, key=lambda row: int(row["length"])):
        points = table.setdefault(row["attention"], {})
        if row[cost]:
            points[int(row["length"])] = float(row[cost])
    order = dict.fromkeys(row["attention"] for row in rows)
    return {name: table[name] for name in order}


def table(rows, cost: str) -> list[str]:
    """Lines of a Markdown table of a cost, in its unit of `COSTS`."""
    _, unit, scale = COSTS[cost]
    lengths = sorted({int(row["length"]) for row in rows})
    measured = curves(rows, cost)
    reference = measured.get(REFERENCE, {})
    head = (unit, *lengths, "exponent", "goal", f"/ {REFERENCE} at {lengths[-1]}")
    lines = []
    for name, points in measured.items():
        slope, last = exponent(points), points.get(lengths[-1])
        cells = [name]
        for length in lengths:
            cells.append(f"{points[length] * scale:.1f}" if length in points else "–")
        cells.append("–" if slope is None else f"{slope:.2f}")
        cells.append("1" if name in LINEAR else "")
        over = reference.get(lengths[-1])
        cells.append(f"{last / over:.3f}" if last and over else "–")
        lines.append(cells)
    return markdown(head, lines)


def report(path: str) -> None:
    """Writes the Markdown tables and the plot from the CSV file."""
    groups = {}
    for row in read(path):
        groups.setdefault(tuple(row[name] for name in SETTINGS), []).append(row)
    lines = [
        "# Every attention against the length\n",
        "One layer and one sequence, float32, without dropout: output and gradients, "
        "compiled by XLA for the CPU through Keras' JAX backend. Time is the median of "
        "the runs; temporary memory is XLA's own report; – is more memory than the "
        "machine was to give. The exponent is that of the last two octaves. "
        f"`blockwise` has blocks of {BLOCK}, as many as the length needs; "
        "`blockwise_n2` and `_n3` have 2 and 3 blocks.\n",
    ]
    for (hidden_dim, num_heads), rows in groups.items():
        lines.append(f"## Width {hidden_dim}, {num_heads} heads\n")
        for cost, title in (("seconds", "Time"), ("temporary", "Temporary memory")):
            lines += [f"### {title}\n", *table(rows, cost), ""]
        name = f"scaling_{hidden_dim}_{num_heads}.png"
        plot(rows, os.path.join(os.path.dirname(path), name))
        lines += [f"![cost against length]({name})\n", origins(rows), ""]
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def plot(rows, path: str) -> None:
    """Draws time and memory over length, both axes logarithmic, a row a family."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from tfeff.plots.figure import legend_beside

    costs = {cost: curves(rows, cost) for cost in COSTS}
    measured = set().union(*costs.values())
    families = {
        family: names
        for family, names in FAMILIES.items()
        if measured.intersection(names)
    }
    figure, panels = plt.subplots(
        len(families),
        len(COSTS),
        figsize=(12, 1 + 3 * len(families)),
        layout="constrained",
        squeeze=False,
    )
    lengths = sorted({int(row["length"]) for row in rows})
    for row, (family, names) in zip(panels, families.items()):
        for axes, (cost, (what, unit, scale)) in zip(row, COSTS.items()):
            for name in (REFERENCE, *names):
                points = costs[cost].get(name, {})
                values = [value * scale for value in points.values()]
                look = {"color": "black"} if name == REFERENCE else {}
                axes.loglog(
                    list(points), values, marker=".", label=TITLES[name], **look
                )
            axes.set(title=family, xlabel="length (tokens)", ylabel=f"{what} ({unit})")
            axes.set_xticks(lengths, lengths)
            axes.minorticks_off()
        legend_beside(row[-1])
    one = rows[0]
    figure.suptitle(
        "Training step of one attention, one sequence, "
        f"width {one['hidden_dim']}, {one['num_heads']} heads or parts"
    )
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)
