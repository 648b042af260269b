r"""Fine-tunes a pretrained encoder to classify or rate texts, or to choose options.

A task is any data set of `tfeff.datasets.names()` but those of spans: GLUE's nine,
BoolQ, MultiRC, RACE.

`--pretrained` is a preset, such as `examples/pretrain.py` leaves in its run directory
and `python -m tfeff.convert` writes; `--data` the folder of GLUE's or SuperGLUE's
tasks, or of RACE:

    python examples/finetune_classifier.py --task=SST-2 --data=glue \
        --pretrained=runs/first --run_dir=runs/sst2 --train_examples=2000 --epochs=2

A grid, with the best of it in the end:

    python examples/finetune_classifier.py --task=RTE --data=glue \
        --pretrained=runs/shatter --run_dir=runs/rte --pooling=layerwise \
        --batch_sizes=16,32 --learning_rates=1e-5,3e-5 --seeds=0,1,2

Every rate, batch size and seed has a folder of its own under `cells/`, with
`dev_metrics.csv` and the best model of its training. A run that was stopped goes on
when it is started again with the same flags: what is finished is not run again. In the
end the run directory holds `metrics.json` and `summary.md`, means and deviations over
the seeds and which setting is best on the development set; `model.keras`, that
setting's best model, and `preset/`, its encoder with the tokenizer; `export/`, which
takes text; and with `--predict_split` the predictions as the benchmark wants them.
"""

import json
import math
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import interruption  # noqa: F401  Before the others, which take long.

# isort: split
import command
import keras
import numpy as np
import pictures
import tensorflow as tf
from absl import flags, logging
from run_directory import copy, make_once, open_run

import tfeff
from tfeff.utils.files import atomic_file

FLAGS = flags.FLAGS
flags.DEFINE_string("run_dir", None, "Folder of the run.", required=True)
flags.DEFINE_string(
    "task", None, "A task of GLUE, BoolQ, MultiRC or RACE.", required=True
)
flags.DEFINE_string("pretrained", None, "A preset or a run's folder.", required=True)
flags.DEFINE_string("data", None, "Folder of the benchmark's files.", required=True)
flags.DEFINE_enum("pooling", "cls", ["cls", "layerwise"], "What the head reads.")
flags.DEFINE_integer(
    "sequence_length", None, "Tokens of an example; default: as pretrained."
)
flags.DEFINE_list("batch_sizes", ["16"], "Batch sizes to try.")
flags.DEFINE_list("learning_rates", ["3e-5"], "Peak learning rates to try.")
flags.DEFINE_list("seeds", ["0"], "Seeds of head, order and dropout.")
flags.DEFINE_float("epochs", 3.0, "Passes over the training part.", lower_bound=0.0)
flags.DEFINE_integer("steps", None, "Steps, instead of --epochs.", lower_bound=1)
flags.DEFINE_integer("eval_every", 1000, "Steps between evaluations.", lower_bound=1)
flags.DEFINE_float("warmup", 0.1, "Share of the steps up to the peak.", 0.0, 0.99)
flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and norms.")
flags.DEFINE_float("layer_decay", None, "Factor of the rate from layer to layer.")
flags.DEFINE_float("dropout", None, "The encoder's rate; default: as pretrained.")
flags.DEFINE_float("head_dropout", 0.1, "Rate before the last layer.", 0.0, 1.0)
flags.DEFINE_integer(
    "train_examples", None, "Train on a sample of so many.", lower_bound=1
)
flags.DEFINE_string("predict_split", None, "A part to predict, such as test.")
flags.DEFINE_boolean(
    "skip_malformed",
    False,
    "Leave out malformed lines of GLUE's train and dev files; QQP has some.",
)
flags.DEFINE_boolean(
    "pad_to_longest",
    None,
    "Pad to a batch's longest, not on a TPU; by default for all but BlockBERT, whose "
    "blocks follow the length.",
)
flags.DEFINE_enum(
    "dtype", "float32", ["float32", "mixed_bfloat16", "mixed_float16"], "Precision."
)
flags.DEFINE_enum(
    "strategy", "default", ["default", "mirrored", "tpu"], "Where to train."
)
flags.DEFINE_string("tpu", "", "Name or address of the TPU.")

# What the results depend on.
CONFIGURATION = (
    "task",
    "pretrained",
    "data",
    "pooling",
    "sequence_length",
    "batch_sizes",
    "learning_rates",
    "seeds",
    "epochs",
    "steps",
    "eval_every",
    "warmup",
    "weight_decay",
    "layer_decay",
    "dropout",
    "head_dropout",
    "train_examples",
    "skip_malformed",
    "pad_to_longest",
    "dtype",
)


def main(_):
    """Data, grid, summary, the best model, its predictions and its export."""
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells much when it exports.
    dataset = command.dataset(
        FLAGS.task, tfeff.data.TextExamples, tfeff.data.ChoiceExamples
    )
    axes = {
        "learning_rate": command.numbers("learning_rates", FLAGS.learning_rates),
        "batch_size": command.numbers("batch_sizes", FLAGS.batch_sizes, int),
    }
    seeds = command.numbers("seeds", FLAGS.seeds, int)
    run = open_run(FLAGS.run_dir, {name: FLAGS[name].value for name in CONFIGURATION})
    strategy = tfeff.training.make_strategy(FLAGS.strategy, FLAGS.tpu)
    encoder, tokenizer = load_pretrained()
    if FLAGS.pad_to_longest and encoder.length_dependent:
        raise ValueError(
            "--pad_to_longest must be left out: of this encoder more padding changes "
            "the outputs"
        )
    length = FLAGS.sequence_length or encoder.max_sequence_length
    pad_to_longest = FLAGS.pad_to_longest
    if pad_to_longest is None:
        pad_to_longest = not encoder.length_dependent
    train = read(dataset, "train", FLAGS.skip_malformed)
    if FLAGS.train_examples is not None:
        train = train.sample(FLAGS.train_examples)
    dev = {
        split: read(dataset, split, FLAGS.skip_malformed)
        for split in dataset.dev_splits
    }
    to_predict = read(dataset, FLAGS.predict_split) if FLAGS.predict_split else None
    train_rows = tfeff.data.text_features(train, tokenizer, length)
    dev_rows = {
        split: tfeff.data.text_features(examples, tokenizer, length)
        for split, examples in dev.items()
    }
    print(
        f"{dataset.name}: {len(train):,} examples to train on, "
        f"{', '.join(f'{len(e):,} of {s}' for s, e in dev.items())}"
    )
    metric = f"{dataset.dev_splits[0]}_{dataset.metric_names[0]}"

    def evaluate(model):
        values = {}
        for split, examples in dev.items():
            predictions = predict(model, dev_rows[split], pad_to_longest)
            scores = (
                dict.fromkeys(dataset.metric_names, math.nan)
                if predictions is None
                else dataset.metrics(examples, predictions)
            )
            values |= {f"{split}_{name}": value for name, value in scores.items()}
        return values

    def cell(folder, learning_rate, batch_size, seed):
        print(f"learning rate {learning_rate:g}, batch size {batch_size}, seed {seed}")
        steps = FLAGS.steps or max(1, round(FLAGS.epochs * len(train) / batch_size))
        keras.utils.set_random_seed(seed)
        with strategy.scope():
            model = make_model(train, load_pretrained()[0], learning_rate, steps)
            best = tfeff.training.KeepBest(evaluate, metric, FLAGS.eval_every, folder)
            model.fit(
                train_rows.dataset(batch_size, seed, pad_to_longest=pad_to_longest),
                steps_per_epoch=steps,
                shuffle=False,  # The data set does it.
                verbose=0,
                callbacks=[
                    best,
                    tfeff.training.TrainingProgress(steps, steps, batch_size * length),
                ],
            )
        tfeff.training.save_checkpoint(model, os.path.join(folder, "model.keras"))
        print(f"  best at step {best.best_step:,} of {steps:,}: {line(best.best)}")
        if best.diverged_step is not None:
            print(f"  the training had diverged at step {best.diverged_step:,}")
        return best.best

    grid = tfeff.training.Grid(run.path("cells"), axes, seeds, metric)
    best = grid.run(cell)["best"]
    with (
        atomic_file(run.path("summary.md")) as new,
        open(new, "w", encoding="utf-8") as file,
    ):
        file.write(f"{dataset.name}, mean ± deviation over seeds\n\n{grid.table()}")
    print(grid.table(), end="")

    best_model = os.path.join(best["folder"], "model.keras")
    model = tfeff.training.load_checkpoint(best_model)
    command.check_finite(model)
    copy(best_model, run.path("model.keras"))
    if to_predict is not None:
        rows = tfeff.data.text_features(to_predict, tokenizer, length)
        predictions = predict(model, rows, pad_to_longest)
        for path in write_predictions(dataset, to_predict, predictions, run):
            print(f"predictions: {path}")
    pictures.draw(model.encoder, encoder_batches(dev_rows[dataset.dev_splits[0]]), run)
    make_once(
        run.path("preset"),
        lambda path: tfeff.tasks.save_pretrained(model.encoder, tokenizer, path),
    )
    make_once(
        run.path("export"),
        lambda path: tfeff.export.save_for_serving(
            model, tokenizer, path, sequence_length=length, **export_options(train)
        ),
    )
    tfeff.training.write_metrics(grid.summary, run.path("metrics.json"))
    run.finish()
    print(
        f"best setting: {json.dumps(best['setting'])}, {line(best['mean'])}\n"
        f"the best model: {run.path('model.keras')}\n"
        f"text in, {', '.join(SERVED[type(model).__name__])} out: {run.path('export')}"
    )


SERVED = {
    "Classifier": ("label", "probabilities"),
    "Regressor": ("score",),
    "MultipleChoice": ("option", "probabilities"),
}


def load_pretrained():
    """The encoder, long enough, and its tokenizer."""
    return tfeff.tasks.load_pretrained(
        FLAGS.pretrained,
        sequence_length=FLAGS.sequence_length,
        dropout=FLAGS.dropout,
        dtype=FLAGS.dtype,
    )


def read(dataset, split, skip_malformed=False):
    """The examples of a part of the data set."""
    options = {"skip_malformed": True} if skip_malformed else {}
    examples = dataset.read(split, FLAGS.data, **options)
    if examples.skipped:
        print(f"{len(examples.skipped):,} lines left out, first {examples.skipped[0]}")
    return examples


def make_model(examples, encoder, learning_rate, steps):
    """The model for the kind of examples, compiled."""
    if isinstance(examples, tfeff.data.ChoiceExamples):
        model = tfeff.tasks.MultipleChoice(encoder, FLAGS.pooling, FLAGS.head_dropout)
    elif examples.label_names is None:
        model = tfeff.tasks.Regressor(encoder, FLAGS.pooling, FLAGS.head_dropout)
    else:
        model = tfeff.tasks.Classifier(
            encoder, len(examples.label_names), FLAGS.pooling, FLAGS.head_dropout
        )
    model.compile(
        optimizer=tfeff.training.adamw(
            learning_rate,
            math.floor(FLAGS.warmup * steps),
            steps,
            weight_decay=FLAGS.weight_decay,
            layer_decay=FLAGS.layer_decay,
        )
    )
    return model


def predict(model, rows, pad_to_longest):
    """The class, rating or option of each example; None where the model diverged."""
    dataset = rows.dataset(
        8 if rows.num_choices else 32,
        shuffle=False,
        repeat=False,
        pad_to_longest=pad_to_longest,
    )
    outputs = model.predict(dataset, verbose=0)[: len(rows)].astype("float32")
    if not np.isfinite(outputs).all():
        return None
    return outputs if outputs.ndim == 1 else outputs.argmax(-1)


def encoder_batches(rows):
    """Batches of rows as the encoder reads them, options one below the other."""
    batches = rows.dataset(8, shuffle=False, repeat=False)

    def flat(inputs, *_):
        length = rows.sequence_length
        return {name: tf.reshape(value, [-1, length]) for name, value in inputs.items()}

    return batches.map(flat)


def write_predictions(dataset, examples, predictions, run):
    """The files of predictions in the benchmark's layout."""
    folder, paths = run.path("predictions", FLAGS.predict_split), []
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as new:
        for path in dataset.write_predictions(
            FLAGS.predict_split, examples, predictions, new
        ):
            paths.append(os.path.join(folder, os.path.basename(path)))
            copy(path, paths[-1])  # In place of an earlier start's.
    return paths


def export_options(examples):
    """What `save_for_serving` has to know of the examples."""
    if isinstance(examples, tfeff.data.ChoiceExamples):
        return {}
    options = {"pairs": examples.second is not None}
    if examples.label_names is not None:
        options["label_names"] = examples.label_names
    return options


def line(metrics):
    """Metrics in a line."""
    return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())


if __name__ == "__main__":
    command.run(main)
