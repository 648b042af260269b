"""A training step and inference on this machine's processor, ours and the peers'.

All contenders of a case do the same work (see `peers`) on the same sizes, in one
process: each is warmed up, then every round runs all of them once, in an order drawn
anew, and times are compared within rounds. What Keras compiles runs as by default and
with XLA, what PyTorch has runs eagerly; the better counts, on every side. A peer that
cannot run here is named as left out, with the reason.

`--environment=tuned`, the default, starts the program anew with the variables of
`environment.py`, which make TensorFlow and PyTorch faster.

Rows are added to `cpu.csv` in `--results` as they come, and comparisons that are
already there from such a machine are not made again: delete those that the code has
overtaken.

    python benchmarks/cpu.py --cases=bert --lengths=128 --dtypes=float32
"""

import gc
import itertools
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import environment
import machine
import peers
from absl import app, flags
from costs import left_out, ratios, seconds, spread, time_rows, warm_up
from cpu_cases import CASES, COMPARISON, DTYPES, SETTINGS, SIZES, TASKS
from rows import markdown, origins, read, record

COMPARED = ("ours", "fastest peer", "ratio", "goal", "paper")
FIELDS = (*SETTINGS, "contender", "mode", "parameters", "seconds", "left_out")

FLAGS = flags.FLAGS
flags.DEFINE_multi_enum("tasks", TASKS, TASKS, "What is timed.")
flags.DEFINE_list("cases", list(CASES), "What is compared.")
flags.DEFINE_list("dtypes", list(DTYPES), "Keras' dtype policies.")
flags.DEFINE_list("lengths", None, "Tokens in a sequence; default: the case's own.")
flags.DEFINE_integer("tokens", 2048, "Tokens in a batch, at any length.")
flags.DEFINE_integer("layers", 2, "Blocks of each encoder.", lower_bound=1)
flags.DEFINE_integer("width", 768, "Hidden size; there are 12 heads.", lower_bound=12)
flags.DEFINE_integer("vocabulary", 8000, "Tokens in the vocabulary.", lower_bound=2)
flags.DEFINE_float("dropout", 0.0, "Dropout rate.", lower_bound=0, upper_bound=0.9)
flags.DEFINE_integer("rounds", 9, "Times that all are timed.", lower_bound=2)
flags.DEFINE_enum(
    "environment",
    "tuned",
    ["tuned", "default"],
    "Of all contenders: as the README advises, or as it comes.",
)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the comparisons that are missing, and reports after each."""
    comparisons = plan()
    shared = {name: str(getattr(FLAGS, name)) for name in SIZES}
    shared["machine"] = machine.processor()
    if FLAGS.environment == "tuned":
        environment.ensure()
    peers.import_first()
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "cpu.csv")
    failures = []
    for comparison in comparisons:
        settings = shared | comparison
        if any(settings.items() <= row.items() for row in read(path)):
            continue
        name = " ".join(comparison.values())
        try:
            rows = compare(settings)
        except Exception as error:  # The others may well run.
            failures.append(name)
            print(f"{name} failed: {error}", flush=True)
            continue
        record(path, FIELDS, [settings | row for row in rows])
        report(path)
        for _, cells in summary(rows, settings):
            print(name, *cells, sep=" | ", flush=True)
    if failures:
        raise SystemExit(f"failed: {', '.join(failures)}")


def plan() -> list[dict[str, str]]:
    """The comparisons that the flags ask for.

    Raises:
        absl.app.UsageError: if a flag makes no sense.
    """
    for flag, choices in (("cases", CASES), ("dtypes", DTYPES)):
        for value in getattr(FLAGS, flag):
            if value not in choices:
                raise app.UsageError(
                    f"--{flag} must be among {', '.join(choices)}. Received: {value}"
                )
    if FLAGS.width % peers.HEADS:
        raise app.UsageError(
            f"--width must be a multiple of {peers.HEADS}. Received: {FLAGS.width}"
        )
    comparisons = []
    for name in FLAGS.cases:
        case = CASES[name]
        for length in FLAGS.lengths or map(str, case.lengths):
            if not length.isdecimal() or not int(length) or FLAGS.tokens % int(length):
                raise app.UsageError(
                    f"--lengths must divide --tokens={FLAGS.tokens}. Received: {length}"
                )
            tasks = [task for task in case.tasks if task in FLAGS.tasks]
            for task, dtype in itertools.product(tasks, FLAGS.dtypes):
                values = (name, task, dtype, length)
                comparisons.append(dict(zip(COMPARISON, values)))
    return comparisons


def compare(settings: dict[str, str]) -> list[dict[str, str]]:
    """Times all contenders of a case; returns a row for each and its modes."""
    import keras

    keras.backend.clear_session()
    gc.collect()
    keras.utils.set_random_seed(0)
    case = CASES[settings["case"]]
    length = int(settings["length"])
    sizes = peers.Sizes(
        layers=int(settings["layers"]),
        width=int(settings["width"]),
        vocabulary=int(settings["vocabulary"]),
        length=length,
        batch_size=int(settings["tokens"]) // length,
        dropout=float(settings["dropout"]),
    )
    rows, steps = [], []
    for name in (*case.ours, *case.others):
        row = dict.fromkeys(("mode", "parameters", "seconds", "left_out"), "")
        row["contender"] = name
        try:
            contender = peers.make(name, sizes, settings["task"], settings["dtype"])
            for mode, step in contender.modes.items():
                row |= dict(mode=mode, parameters=str(contender.parameters))
                calls, value = warm_up(step)
                if value != value:
                    raise ArithmeticError("the step gives NaN")
                rows.append(dict(row))
                steps.append((rows[-1], step, calls))
        except Exception as error:
            if name.startswith("tfeff:"):
                raise
            rows.append(row | dict(left_out=left_out(error)))
    time_rows(steps, int(settings["rounds"]))
    return rows


def best(rows: list[dict[str, str]], contenders) -> dict[str, str] | None:
    """The row with the lowest median among those contenders that ran."""
    ran = [row for row in rows if row["contender"] in contenders and row["seconds"]]
    return min(ran, key=lambda row: statistics.median(seconds(row)), default=None)


def summary(rows: list[dict[str, str]], settings: dict[str, str]):
    """For each contender of ours its name and its cells in the table of ratios."""
    case = CASES[settings["case"]]
    reference = best(rows, case.others)
    for name in case.ours:
        ours = best(rows, (name,))
        if not ours or not reference:
            continue
        goal, paper = case.goals.get((settings["task"], name), (None, None))
        cells = (
            *(settings[key] for key in COMPARISON),
            f"{name}, {ours['mode']}",
            f"{reference['contender']}, {reference['mode']}",
            spread(ratios(ours, reference), 3),
            f"≤ {goal}" if goal else "",
            paper or "",
        )
        yield name, cells


def details(rows: list[dict[str, str]]) -> list[str]:
    """The lines of the table of times."""
    lines = []
    for row in rows:
        times = [1e3 * value for value in seconds(row)]
        cells = (
            row["contender"],
            row["mode"],
            row["parameters"],
            spread(times, 1) if times else "",
            row["left_out"],
        )
        lines.append(cells)
    return markdown(("contender", "run", "parameters", "ms", "left out"), lines)


def report(path: str) -> None:
    """Writes the Markdown tables of the comparisons in the CSV file."""
    groups = {}
    for row in read(path):
        groups.setdefault(tuple(row[name] for name in SETTINGS), []).append(row)
    sizes = {}
    for values, rows in groups.items():
        settings = dict(zip(SETTINGS, values))
        title = ", ".join(f"{name} {settings[name]}" for name in ("machine", *SIZES))
        sizes.setdefault(title, []).append((settings, rows))
    lines = [
        "# A training step and inference on a CPU\n",
        "Masked language model with 15 % masked, AdamW; inference is of the encoder. "
        "Ratios are of times in the same round: median (quartiles). A core is the "
        "attention without output projection, an attention has it, a block has norms "
        "and feed-forward too.\n",
        f"The tuned environment: `{environment.description()}`\n",
    ]
    for title, comparisons in sizes.items():
        table = []
        for settings, rows in comparisons:
            table += [cells for _, cells in summary(rows, settings)]
        lines += [f"## {title}\n", *markdown((*COMPARISON, *COMPARED), table)]
        for settings, rows in comparisons:
            lines.append(f"\n### {', '.join(settings[key] for key in COMPARISON)}\n")
            lines += [*details(rows), "", origins(rows)]
        lines.append("")
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    app.run(main)
