"""Fine-tuned models in eight bits: accuracy on SST-2, size and latency.

For each preset, made small by `SIZES`: it is pretrained a little and fine-tuned on
SST-2 by `tfeff`, exported from ids to logits to ONNX and LiteRT, and quantized by these
formats' own tools: ONNX Runtime's `quantize_dynamic`, LiteRT's dynamic range, and
LiteRT's full integers, whose ranges are of sentences to train on. All variants answer
the same development set, and one sentence in interleaved rounds.

Runs and files are in `--runs`; what is there is not made again, so that the benchmark
can be interrupted. Rows that are in `int8.csv` in `--results` from such a machine are
not measured again: delete those that the code has overtaken.

    pip install onnx onnxruntime tf2onnx
    python benchmarks/int8.py --runs=runs/int8
"""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import environment
import machine
import numpy as np
import runs
import runtimes
from absl import app, flags
from costs import left_out, ratios, seconds, spread, time_rows, warm_up
from rows import markdown, read, record, write_tables

SIZES = {
    "num_layers": 4,
    "hidden_dim": 256,
    "num_heads": 8,
    "intermediate_dim": 1024,
    "dropout": 0.0,
}
SETTINGS = (
    *("preset", "steps", "task_steps", "length", "vocabulary_size", "rounds"),
    "machine",
)
FIELDS = (*SETTINGS, "variant", "bytes", "accuracy", "same", "seconds", "left_out")

FLAGS = flags.FLAGS
flags.DEFINE_list("presets", ["bert_base", "shatter_base"], "What is quantized.")
flags.DEFINE_list("override", [], "NAME=VALUE of the encoder, over SIZES.")
flags.DEFINE_integer("vocabulary_size", 8000, "Pieces.", lower_bound=6)
flags.DEFINE_integer("steps", 300, "Steps of pretraining.", lower_bound=10)
flags.DEFINE_integer("task_steps", 1000, "Steps on SST-2.", lower_bound=2)
flags.DEFINE_integer("length", 64, "Tokens of a sentence.", lower_bound=3)
flags.DEFINE_integer("dev_examples", None, "Of the development set; default: all.")
flags.DEFINE_integer("ranges", 100, "Sentences for the ranges.", lower_bound=1)
flags.DEFINE_integer("rounds", 15, "Times that all are timed.", lower_bound=2)
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/ and glue/SST-2.",
)
flags.DEFINE_string("runs", None, "Folder of the runs.", required=True)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Trains, exports and measures what is missing, and reports after each preset."""
    if not Path(FLAGS.data, "glue", "SST-2", "dev.tsv").exists():
        raise app.UsageError(f"--data={FLAGS.data} holds no glue/SST-2/dev.tsv")
    environment.ensure()
    os.makedirs(FLAGS.runs, exist_ok=True)
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "int8.csv")
    for preset in FLAGS.presets:
        settings = {name: str(getattr(FLAGS, name)) for name in SETTINGS[1:-1]}
        settings |= {"preset": preset, "machine": machine.processor()}
        if any(settings.items() <= row.items() for row in read(path)):
            continue
        rows = measure(preset, train(preset))
        record(path, FIELDS, [settings | row for row in rows])
        report(path)
        print("\n".join(table(rows)), flush=True)


def train(preset: str) -> str:
    """The run directory of the preset, fine-tuned on SST-2."""
    folder = os.path.join(FLAGS.runs, f"{preset}-{FLAGS.steps}-{FLAGS.task_steps}")
    texts, _ = runs.texts(FLAGS.data)
    sizes = SIZES | dict(override.split("=", 1) for override in FLAGS.override)
    every = FLAGS.steps // 2
    pretrained = f"{folder}-pretrained"
    runs.run(
        pretrained,
        [
            *("-m", "tfeff", "pretrain", f"--run_dir={pretrained}"),
            *(f"--preset={preset}", "--batch_size=16"),
            f"--vocabulary_size={FLAGS.vocabulary_size}",
            *(f"--corpus={text}" for text in texts),
            *("--sequence_length=128", "--learning_rate=5e-4"),
            *(f"--steps={2 * every}", f"--eval_every={every}"),
            *(f"--override={name}={value}" for name, value in sizes.items()),
        ],
    )
    runs.run(
        folder,
        [
            *("-m", "tfeff", "finetune", f"--run_dir={folder}", "--task=SST-2"),
            *(f"--data={FLAGS.data}/glue", f"--pretrained={pretrained}"),
            *("--batch_sizes=16", "--learning_rates=2e-4"),
            *(f"--sequence_length={FLAGS.length}", f"--steps={FLAGS.task_steps}"),
        ],
    )
    return folder


@dataclasses.dataclass(frozen=True)
class Variant:
    """A file of a model, and how it is run.

    Attributes:
        name: in the tables.
        before: the name of the variant that was quantized; its own, if it is not.
        file: its name.
        write: writes the file to a path.
        load: from a path to a `runtimes.Runner`.
        batch_size: of the inputs that it takes, `None` if any.
    """

    name: str
    before: str
    file: str
    write: Callable[[str], None]
    load: Callable[[str], runtimes.Runner]
    batch_size: int | None


ONNX, LITERT = "ONNX, float32", "LiteRT, float32"


def variants(model, inputs: dict[str, np.ndarray], folder: str) -> list[Variant]:
    """The variants of a classifier.

    Args:
        model: from ids to logits.
        inputs: of sentences to train on, for the ranges of activations.
        folder: where the files are.
    """

    def to_litert(**options):
        def write(path):
            import keras

            shape = keras.InputSpec("int32", (1, FLAGS.length))
            model.export(
                path,
                format="litert",
                input_signature=dict.fromkeys(model.input, shape),
                verbose=False,
                **options,
            )

        return write

    def quantize_dynamic(path):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        exported = os.path.join(folder, "float.onnx")
        quantize_dynamic(exported, path, weight_type=QuantType.QInt8)

    def ranges():
        for row in range(len(next(iter(inputs.values())))):
            yield {name: x[row : row + 1].astype("int32") for name, x in inputs.items()}

    def to_onnx(path):
        model.export(path, format="onnx", verbose=False)

    def integers(path):
        import tensorflow as tf

        to_litert(
            optimizations=[tf.lite.Optimize.DEFAULT],
            representative_dataset=ranges,
            target_spec={"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]},
        )(path)

    def dynamic_range(path):
        import tensorflow as tf

        to_litert(optimizations=[tf.lite.Optimize.DEFAULT])(path)

    onnx, litert = runtimes.onnx_runtime, runtimes.litert
    return [
        Variant(ONNX, ONNX, "float.onnx", to_onnx, onnx, None),
        Variant(
            "ONNX, int8 by `quantize_dynamic`",
            ONNX,
            "dynamic.onnx",
            quantize_dynamic,
            onnx,
            None,
        ),
        Variant(LITERT, LITERT, "float.tflite", to_litert(), litert, 1),
        Variant(
            "LiteRT, int8 of dynamic range",
            LITERT,
            "dynamic.tflite",
            dynamic_range,
            litert,
            1,
        ),
        Variant(
            "LiteRT, int8 throughout", LITERT, "integers.tflite", integers, litert, 1
        ),
    ]


def measure(preset: str, folder: str) -> list[dict[str, str]]:
    """A row for each variant of the model that was fine-tuned in a folder."""
    import tfeff

    model = tfeff.training.load_checkpoint(os.path.join(folder, "model.keras"))
    _, tokenizer = tfeff.tasks.load_pretrained(folder)
    dataset = tfeff.datasets.get("SST-2")
    data = os.path.join(FLAGS.data, "glue")
    dev = dataset.read("dev", data)
    if FLAGS.dev_examples is not None:
        dev = dev.sample(FLAGS.dev_examples)
    seen = dataset.read("train", data).sample(FLAGS.ranges)
    inputs, for_ranges = (
        tfeff.data.text_features(examples, tokenizer, FLAGS.length).inputs
        for examples in (dev, seen)
    )
    files = os.path.join(FLAGS.runs, "files", os.path.basename(folder))
    os.makedirs(files, exist_ok=True)
    rows, steps, labels = [], [], {}
    for variant in variants(model, for_ranges, files):
        row = dict.fromkeys(FIELDS[len(SETTINGS) :], "") | {"variant": variant.name}
        rows.append(row)
        try:
            path = os.path.join(files, variant.file)
            if not os.path.exists(path):
                variant.write(path)
            runner = variant.load(path)
            found = predict(runner, inputs, variant.batch_size)
            calls, _ = warm_up(step := runner(batch_of(inputs, 0, 1)))
        except Exception as error:
            row["left_out"] = left_out(error)
            continue
        labels[variant.name] = found
        before = labels.get(variant.before)
        row |= {
            "bytes": str(os.path.getsize(path)),
            "accuracy": f"{dataset.metrics(dev, found)['accuracy']:.4f}",
            "same": "" if before is None else f"{np.mean(found == before):.4f}",
        }
        steps.append((row, step, calls))
    time_rows(steps, FLAGS.rounds)
    return rows


def batch_of(inputs, start, size):
    """So many rows of the inputs, as `runtimes` take them."""
    return {name: x[start : start + size] for name, x in inputs.items()}


def predict(runner, inputs, batch_size) -> np.ndarray:
    """The class of each row."""
    size = batch_size or 32
    logits = [
        np.array(runner(batch_of(inputs, start, size))())
        for start in range(0, len(inputs["token_ids"]), size)
    ]
    logits = np.concatenate(logits)
    if not np.isfinite(logits).all():
        raise ArithmeticError("logits that are not finite")
    return logits.argmax(-1)


def table(rows: list[dict[str, str]]) -> list[str]:
    """A line for each variant; ratios are to the one that was quantized."""
    head = (
        *("variant", "MB", "accuracy", "same answers", "ms a sentence"),
        *("time, before = 1", "left out"),
    )
    lines, before = [], None
    for row in rows:
        if "float32" in row["variant"]:
            before = row
        times = [1e3 * value for value in seconds(row)]
        has_ratio = times and before is not row and before["seconds"]
        cells = (
            row["variant"],
            f"{int(row['bytes']) / 1e6:.1f}" if row["bytes"] else "",
            row["accuracy"],
            row["same"],
            spread(times, 2) if times else "",
            spread(ratios(row, before), 3) if has_ratio else "",
            row["left_out"],
        )
        lines.append(cells)
    return markdown(head, lines)


def report(path: str) -> None:
    """Writes the Markdown tables of the CSV file."""
    sizes = ", ".join(f"{name} {value}" for name, value in SIZES.items())
    head = [
        "# Fine-tuned models in eight bits\n",
        f"Small models ({sizes}), pretrained a little and fine-tuned on SST-2. "
        "Accuracy is that of the development set; same answers are those of the file "
        "that was quantized. Times are of one sentence, padded to the length; ratios "
        "of times in the same round: median (quartiles).\n",
        f"The environment: `{environment.description()}`\n",
    ]
    write_tables(path, SETTINGS, head, table)


if __name__ == "__main__":
    app.run(main)
