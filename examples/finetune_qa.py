r"""Fine-tunes a pretrained encoder to answer questions from passages.

SQuAD in its published files, as BERT was fine-tuned:

    python examples/finetune_qa.py --task=squad1 --run_dir=runs/squad \
        --pretrained=runs/first --train=train-v1.1.json --dev=dev-v1.1.json

BlockBERT's grid, with three seeds each:

    python examples/finetune_qa.py --task=squad2 --run_dir=runs/squad2 \
        --pretrained=preset --train=train-v2.0.json --dev=dev-v2.0.json --epochs=4 \
        --learning_rates=5e-6,1e-5,2e-5,3e-5,5e-5 --batch_sizes=16,32 --seeds=0,1,2

Every few steps the model is scored on the development set by the official script, and
the weights with the best F1 are kept. Long passages are read in windows; a
`--sequence_length` beyond the pretrained one extends the encoder. A run that was
stopped goes on with its first unfinished cell of the grid when it is started again.

The run directory holds a folder for each cell, and of the best one `metrics.json`,
`predictions.json` (of SQuAD 2.0 also `null_odds.json`), both in the layouts of
submissions, `model.keras`, and `export/`: a SavedModel that takes questions and
passages.
"""

import json
import math
import os
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import interruption  # noqa: F401  Before the others, which take long.

# isort: split
import command
import keras
import numpy as np
import pictures
from absl import flags, logging
from run_directory import copy, open_run

import tfeff
from tfeff.datasets.squad import withhold

FLAGS = flags.FLAGS
flags.DEFINE_string("run_dir", None, "Folder of the run.", required=True)
flags.DEFINE_string(
    "task", "squad1", "SQuAD1.1 or squad1, SQuAD2.0 or squad2, or a data set of MRQA."
)
flags.DEFINE_string(
    "train",
    None,
    "File to train on, or the folder of the published ones.",
    required=True,
)
flags.DEFINE_string(
    "dev", None, "File, or folder, to choose the best by.", required=True
)
flags.DEFINE_string(
    "pretrained",
    None,
    "Folder of an encoder and its tokenizer, or a run directory of pretraining.",
    required=True,
)
flags.DEFINE_boolean(
    "skip_mismatched", False, "Leave out questions whose answer is not in its place."
)
flags.DEFINE_integer("train_questions", None, "Use the first ones alone.", 1)
flags.DEFINE_integer("dev_questions", None, "Use the first ones alone.", 1)
flags.DEFINE_integer("sequence_length", 384, "Tokens in a window.", lower_bound=4)
flags.DEFINE_integer("stride", 128, "Tokens from window to window.", lower_bound=1)
flags.DEFINE_integer("max_answer_tokens", 30, "Most of an answer.", lower_bound=1)
flags.DEFINE_list("batch_sizes", ["16"], "Windows in a batch, over all replicas.")
flags.DEFINE_list("learning_rates", ["3e-5"], "Peak learning rates.")
flags.DEFINE_list("seeds", ["0"], "Seeds of the head, order and dropout.")
flags.DEFINE_integer("epochs", 2, "Passes over the windows.", lower_bound=1)
flags.DEFINE_integer("steps", None, "Training steps, in place of --epochs.", 1)
flags.DEFINE_integer("eval_every", 1000, "Steps between evaluations.", lower_bound=1)
flags.DEFINE_float("warmup", 0.1, "Share of the steps up to the peak.", 0.0, 0.99)
flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and norms.")
flags.DEFINE_float("layer_decay", None, "Factor of the rate from layer to layer.")
flags.DEFINE_float("dropout", None, "Default: the encoder's.", 0.0, 0.99)
flags.DEFINE_enum(
    "dtype", "float32", ["float32", "mixed_bfloat16", "mixed_float16"], "Precision."
)
flags.DEFINE_enum("strategy", "default", ["default", "mirrored"], "Where to train.")

CONFIGURATION = (
    "task",
    "train",
    "dev",
    "pretrained",
    "skip_mismatched",
    "train_questions",
    "dev_questions",
    "sequence_length",
    "stride",
    "max_answer_tokens",
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
    "dtype",
)


def main(_):
    """Windows, a training for each cell of the grid, and what the best one gives."""
    dataset = command.dataset(FLAGS.task, tfeff.data.SpanExamples)
    axes = {
        "batch_size": command.numbers("batch_sizes", FLAGS.batch_sizes, int),
        "learning_rate": command.numbers("learning_rates", FLAGS.learning_rates),
    }
    seeds = command.numbers("seeds", FLAGS.seeds, int)
    dataset.check_installed()
    logging.set_verbosity(logging.WARNING)  # TensorFlow tells much when it exports.
    run = open_run(FLAGS.run_dir, {name: FLAGS[name].value for name in CONFIGURATION})
    encoder, tokenizer = tfeff.tasks.load_pretrained(FLAGS.pretrained)
    train, dev = (
        tfeff.data.make_span_features(
            read(dataset, split, path, count),
            tokenizer,
            FLAGS.sequence_length,
            FLAGS.stride,
        )
        for split, path, count in (
            ("train", FLAGS.train, FLAGS.train_questions),
            (dataset.dev_splits[0], FLAGS.dev, FLAGS.dev_questions),
        )
    )
    print(
        f"{len(train.questions):,} questions in {len(train):,} windows to train on; "
        f"{len(dev.questions):,} in {len(dev):,} to choose the best by"
    )
    if FLAGS.sequence_length > encoder.max_sequence_length:
        print(
            f"length extension: pretrained on {encoder.max_sequence_length} tokens, "
            f"fine-tuned on {FLAGS.sequence_length}"
        )
    grid = tfeff.training.Grid(
        run.path("cells"), axes, seeds, metric=dataset.metric_names[0]
    )
    summary = grid.run(
        lambda folder, **setting: train_cell(dataset, folder, train, dev, **setting)
    )
    print(grid.table())
    best = os.path.join(summary["best"]["folder"], "model.keras")
    finish(run, best, tokenizer, dataset, dev, summary)


def read(dataset, split, path, count):
    """The first `count` questions of a part, all by default."""
    options = {"skip_mismatched": True} if FLAGS.skip_mismatched else {}
    found = dataset.read(split, path, **options)
    if found.skipped:
        print(f"{path}: {len(found.skipped)} questions left out. {found.skipped[0]}")
    return found.questions[:count]


def train_cell(dataset, folder, train, dev, batch_size, learning_rate, seed):
    """Trains one model, saves it at its best, returns its metrics."""
    keras.utils.set_random_seed(seed)
    steps = FLAGS.steps or FLAGS.epochs * -(-len(train) // batch_size)
    with tfeff.training.make_strategy(FLAGS.strategy).scope():
        encoder, _ = tfeff.tasks.load_pretrained(
            FLAGS.pretrained,
            sequence_length=FLAGS.sequence_length,
            dropout=FLAGS.dropout,
            dtype=FLAGS.dtype,
            seed=seed,
        )
        model = tfeff.tasks.SpanQA(encoder)
        model.compile(
            tfeff.training.adamw(
                learning_rate,
                warmup_steps=int(FLAGS.warmup * steps),
                total_steps=steps,
                weight_decay=FLAGS.weight_decay,
                layer_decay=FLAGS.layer_decay,
            )
        )
        best = tfeff.training.KeepBest(
            lambda model: evaluate(model, dataset, dev)[0],
            dataset.metric_names[0],
            FLAGS.eval_every,
            folder,
        )
        model.fit(
            train.dataset(batch_size, seed),
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
            callbacks=[
                tfeff.training.TrainingProgress(
                    steps, steps, batch_size * FLAGS.sequence_length
                ),
                best,
            ],
        )
    tfeff.training.save_checkpoint(model, os.path.join(folder, "model.keras"))
    if best.diverged_step is not None:
        print(f"the training had diverged at step {best.diverged_step:,}")
    return best.best


def evaluate(model, dataset, dev):
    """The official metrics, and the answers that they are of."""
    if not tfeff.training.is_finite(model):  # The training has diverged.
        return dict.fromkeys(dataset.metric_names, math.nan), ()
    answers = model.answers(dev, max_answer_tokens=FLAGS.max_answer_tokens)
    return dataset.metrics(tfeff.data.SpanExamples(dev.questions), answers), answers


def finish(run, path, tokenizer, dataset, dev, summary):
    """Predictions, model and export of the best cell; the metrics last."""
    if not os.path.exists(run.path("metrics.json")):
        for name in ("predictions.json", "null_odds.json", "model.keras"):
            if os.path.exists(run.path(name)):
                os.remove(run.path(name))  # Of a start that was stopped here.
        shutil.rmtree(run.path("export"), ignore_errors=True)
        model = tfeff.training.load_checkpoint(path)
        command.check_finite(model)
        metrics, answers = evaluate(model, dataset, dev)
        examples = tfeff.data.SpanExamples(dev.questions)
        threshold = metrics.get("no_answer_threshold")
        if threshold is not None:
            # The official script has thresholds of their own for F1 and for exact
            # matches; the answers are given by one.
            answers = withhold(answers, threshold)
            texts = {answer.id: answer.text for answer in answers}
            metrics |= dataset.metrics(examples, texts)
        dataset.write_predictions(
            dataset.dev_splits[0], examples, answers, run.directory
        )
        copy(path, run.path("model.keras"))
        batches = dev.dataset(8, shuffle=False, repeat=False)
        pictures.draw(model.encoder, batches, run)
        tfeff.export.save_for_serving(
            model,
            tokenizer,
            run.path("export"),
            sequence_length=FLAGS.sequence_length,
            stride=FLAGS.stride,
            max_answer_tokens=FLAGS.max_answer_tokens,
            no_answer_threshold=None
            if threshold is None
            else served_threshold(threshold, answers),
        )
        tfeff.training.write_metrics(
            {"task": FLAGS.task, **metrics, "grid": summary}, run.path("metrics.json")
        )
    run.finish()
    with open(run.path("metrics.json"), encoding="utf-8") as file:
        metrics = json.load(file)
    for name in dataset.metric_names:
        print(f"{name}: {metrics[name]:.4f}")
    print(f"predictions: {run.path('predictions.json')}")
    print(f"question and passage in, answer out: {run.path('export')}")


def served_threshold(threshold, answers):
    """By how much no answer must score higher to be the answer.

    The best threshold is the probability of some question, which rounding would put on
    either side of it: half-way to the next one there is no question.
    """
    probabilities = (answer.no_answer_probability for answer in answers)
    above = min((p for p in probabilities if p > threshold), default=1.0)
    probability = (threshold + above) / 2
    with np.errstate(divide="ignore"):
        return float(np.log(probability) - np.log1p(-probability))


if __name__ == "__main__":
    command.run(main)
