"""Inference of exported encoders on this machine's processor, ours and the peers'.

What ONNX Runtime, TensorFlow (of a SavedModel) and LiteRT make of an encoder of ours,
beside Hugging Face's, exported to ONNX in the usual way or run by PyTorch, and
KerasHub's, exported as ours is. All have the same sizes and random weights, get the
same batch, and end at the last hidden state. Of one case, number of layers, length and
batch size all run in one process: each is warmed up, then every round runs all of them
once, in an order drawn anew, and times are compared within rounds. What cannot run here
is named as left out, with the reason.

`--environment=tuned`, the default, starts the program anew with the variables of
`environment.py`. Rows are added to `exported.csv` in `--results` as they come, and
comparisons that are already there from such a machine are not made again: delete those
that the code has overtaken.

    pip install onnx onnxruntime tf2onnx torch transformers
    python benchmarks/exported.py --cases=bert --layers=2,12 --lengths=32,128,512
"""

import gc
import itertools
import os
import statistics
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import environment
import machine
import numpy as np
import peers
from absl import app, flags
from costs import left_out, ratios, seconds, spread, time_rows, warm_up
from rows import markdown, read, record, write_tables

# Our encoders, and those that they are compared with.
CASES = {
    "bert": (
        ("tfeff:bert_base", "tfeff:shatter_base"),
        ("hugging_face:bert", "keras_hub:bert"),
    ),
    "albert": (("tfeff:albert_base",), ("hugging_face:albert",)),
    "convbert": (("tfeff:convbert_base",), ("hugging_face:convbert",)),
}
# The goal: not slower than Hugging Face's encoder, exported in the usual way.
USUAL = "ONNX Runtime"
GOAL = 1.0
COMPARISON = ("case", "layers", "length", "batch_size")
SIZES = ("width", "vocabulary", "rounds", "environment")
SETTINGS = (*COMPARISON, *SIZES, "machine")
FIELDS = (*SETTINGS, "contender", "mode", "seconds", "left_out")

FLAGS = flags.FLAGS
flags.DEFINE_list("cases", list(CASES), "What is compared.")
flags.DEFINE_list("layers", ["2", "12"], "Blocks of each encoder.")
flags.DEFINE_list("lengths", ["32", "128", "512"], "Tokens in a sequence.")
flags.DEFINE_list("batch_sizes", ["1", "8"], "Sequences in a batch.")
flags.DEFINE_integer("width", 768, "Hidden size; there are 12 heads.", lower_bound=12)
flags.DEFINE_integer("vocabulary", 8000, "Tokens in the vocabulary.", lower_bound=2)
flags.DEFINE_integer("rounds", 15, "Times that all are timed.", lower_bound=2)
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
    path = os.path.join(FLAGS.results, "exported.csv")
    with tempfile.TemporaryDirectory() as folder:
        for comparison in comparisons:
            settings = shared | comparison
            if any(settings.items() <= row.items() for row in read(path)):
                continue
            rows = compare(settings, folder)
            record(path, FIELDS, [settings | row for row in rows])
            report(path)
            print(*comparison.values(), *summary(rows), sep="\n", flush=True)


def plan() -> list[dict[str, str]]:
    """The comparisons that the flags ask for; those of the same files in a row.

    Raises:
        absl.app.UsageError: if a flag makes no sense.
    """
    for case in FLAGS.cases:
        if case not in CASES:
            raise app.UsageError(
                f"--cases must be among {', '.join(CASES)}. Received: {case}"
            )
    for flag in ("layers", "lengths", "batch_sizes"):
        for value in getattr(FLAGS, flag):
            if not value.isdecimal() or not int(value):
                raise app.UsageError(f"--{flag} must be integers. Received: {value}")
    if FLAGS.width % peers.HEADS:
        raise app.UsageError(
            f"--width must be a multiple of {peers.HEADS}. Received: {FLAGS.width}"
        )
    values = (FLAGS.cases, FLAGS.layers, FLAGS.lengths, FLAGS.batch_sizes)
    return [dict(zip(COMPARISON, each)) for each in itertools.product(*values)]


def compare(settings: dict[str, str], folder: str) -> list[dict[str, str]]:
    """Times all contenders of a case; returns a row for each and its modes."""
    import keras

    sizes = peers.Sizes(
        layers=int(settings["layers"]),
        width=int(settings["width"]),
        vocabulary=int(settings["vocabulary"]),
        length=int(settings["length"]),
        batch_size=int(settings["batch_size"]),
        dropout=0.0,
    )
    batch = peers.make_batch(sizes)
    shape = (sizes.batch_size, sizes.length, sizes.width)
    rows, steps = [], []
    ours, others = CASES[settings["case"]]
    for name in (*ours, *others):
        files = os.path.join(folder, f"{name}-{sizes.layers}".replace(":", "-"))
        os.makedirs(files, exist_ok=True)
        try:
            modes = peers.exported(name, sizes, files)
        except Exception as error:
            rows.append(_row(name, "", error))
            continue
        for mode, load in modes.items():
            try:
                step = load()(batch)
                calls, states = warm_up(step)
                if states.shape != shape or not np.isfinite(states).all():
                    raise ArithmeticError(f"no hidden states: {states.shape}")
            except Exception as error:
                rows.append(_row(name, mode, error))
                continue
            rows.append(_row(name, mode))
            steps.append((rows[-1], step, calls))
            keras.backend.clear_session()
            gc.collect()
    time_rows(steps, int(settings["rounds"]))
    return rows


def _row(contender, mode, error=None):
    reason = "" if error is None else left_out(error)
    return dict(contender=contender, mode=mode, seconds="", left_out=reason)


def summary(rows: list[dict[str, str]]) -> list[str]:
    """For each encoder of ours a sentence on ratios to the peers'."""
    ran = [row for row in rows if row["seconds"]]
    ours = [row for row in ran if row["contender"].startswith("tfeff:")]
    others = [row for row in ran if row not in ours]
    usual = [
        row
        for row in others
        if row["contender"].startswith("hugging_face:") and row["mode"] == USUAL
    ]
    lines = []
    for name in dict.fromkeys(row["contender"] for row in ours):
        own = [row for row in ours if row["contender"] == name]
        for row in own:
            if row["mode"] == USUAL and usual:
                lines.append(
                    f"- {name} by {USUAL} / {usual[0]['contender']} by {USUAL}: "
                    f"**{spread(ratios(row, usual[0]), 3)}**, goal ≤ {GOAL}"
                )
        if others:
            best, reference = fastest(own), fastest(others)
            lines.append(
                f"- {name} at its best ({best['mode']}) / the fastest peer "
                f"({reference['contender']}, {reference['mode']}): "
                f"{spread(ratios(best, reference), 3)}"
            )
    return lines


def fastest(rows: list[dict[str, str]]) -> dict[str, str]:
    """The row with the lowest median."""
    return min(rows, key=lambda row: statistics.median(seconds(row)))


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a comparison: ratios, then the times of all."""
    lines = []
    for row in rows:
        times = [1e3 * value for value in seconds(row)]
        cells = (
            row["contender"],
            row["mode"],
            spread(times, 2) if times else "",
            row["left_out"],
        )
        lines.append(cells)
    head = ("contender", "run by", "ms", "left out")
    return [*summary(rows), "", *markdown(head, lines)]


def report(path: str) -> None:
    """Writes the Markdown tables of the comparisons in the CSV file."""
    head = [
        "# Inference of exported encoders on a CPU\n",
        "Float32; from ids to the last hidden state. Files for ONNX Runtime and "
        "TensorFlow take any length and batch size, those for LiteRT the ones of the "
        "table. Hugging Face's are exported by `torch.onnx.export`, by tracing (the "
        f"usual way, “{USUAL}”) and by `dynamo`. Ratios are of times in the same "
        "round: median (quartiles).\n",
        f"The tuned environment: `{environment.description()}`\n",
    ]
    write_tables(path, SETTINGS, head, table)


if __name__ == "__main__":
    app.run(main)
