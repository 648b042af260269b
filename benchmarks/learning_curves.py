"""Figure 1 of the Shatter paper in miniature: seven variants at equal steps.

Every variant is pretrained by masked language modelling on the same text, from
the same seeds, for the same number of steps, and validated on the Penn Treebank
sample. Prints the validation loss (nats a masked token) and writes the table, the
curves and the command to `--results`. Runs that are already in the CSV file there
are not run again, so an interrupted benchmark goes on where it was.

    python benchmarks/learning_curves.py --steps=400 --seeds=0,1
"""

import glob
import os
import statistics
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import machine
from absl import app, flags
from rows import append, read

import tfeff

VARIANTS = {
    "No_Position": "no_position_base",
    "Part_Mask": "part_mask_base",
    "1H_Softmax": "one_head_softmax_base",
    "1H_Sigmoid": "one_head_sigmoid_base",
    "Part_Bias": "part_bias_base",
    "Shatter": "shatter_base",
    "BERT": "bert_base",
}
PAPER_ORDER = (
    "No_Position, 1H_Softmax, Part_Mask, 1H_Sigmoid, Part_Bias, Shatter ≈ BERT "
    "(from worst to best at the end of pretraining; 1H_Softmax slightly worse than "
    "Part_Mask)"
)

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/*.txt, one of them ptb_sample.txt.",
)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.DEFINE_string("cache", None, "Where the token caches go; default temporary.")
flags.DEFINE_integer("steps", 400, "Training steps of each run.")
flags.DEFINE_integer("eval_every", 100, "Steps between validations.")
flags.DEFINE_integer("batch_size", 4, "Sequences in a batch.")
flags.DEFINE_integer("sequence_length", 128, "Tokens in a sequence.")
flags.DEFINE_integer("validation_sequences", 192, "Sequences to validate on.")
flags.DEFINE_integer("vocabulary_size", 2000, "Pieces of the tokenizer.")
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate.")
flags.DEFINE_list("seeds", ["0", "1"], "One run of each variant a seed.")
FIELDS = ("variant", "seed", "step", "loss", "val_loss", "val_accuracy")


def main(_):
    """Runs what is missing, and reports after every run."""
    files = sorted(glob.glob(os.path.join(FLAGS.data, "text", "*.txt")))
    held_out = [path for path in files if path.endswith("ptb_sample.txt")]
    if not held_out:
        raise app.UsageError(f"--data={FLAGS.data} holds no text/ptb_sample.txt")
    train_text = tfeff.data.text_files([p for p in files if p not in held_out])
    valid_text = tfeff.data.text_files(held_out)
    tokenizer = tfeff.data.train_tokenizer(
        train_text, vocabulary_size=FLAGS.vocabulary_size
    )
    folder = FLAGS.cache or tempfile.mkdtemp()
    caches = [
        tfeff.data.build_cache(
            text, tokenizer, os.path.join(folder, name), FLAGS.sequence_length
        )
        for name, text in (("train", train_text), ("valid", valid_text))
    ]

    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "learning_curves.csv")
    for seed in FLAGS.seeds:
        for variant in VARIANTS:
            done = [(row["variant"], row["seed"]) for row in read(path)]
            if (variant, seed) not in done:
                append(path, FIELDS, run(variant, int(seed), *caches))
                report(path, caches[1].unigram_entropy())


def run(variant, seed, train, valid):
    """Pretrains one variant; returns a row for every validation."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    encoder = tfeff.encoders.build(
        VARIANTS[variant],
        vocabulary_size=FLAGS.vocabulary_size,
        num_layers=4,
        num_heads=8,
        hidden_dim=256,
        intermediate_dim=1024,
        max_sequence_length=FLAGS.sequence_length,
        dropout=0.0,  # Less than one pass over the text: nothing to overfit.
    )
    model = tfeff.objectives.MaskedLM(encoder)
    model.compile(
        optimizer=tfeff.training.adamw(
            FLAGS.learning_rate,
            warmup_steps=FLAGS.steps // 10,
            total_steps=FLAGS.steps,
        )
    )
    examples = tfeff.data.MaskedTokens()
    validation = valid.batches(examples, 16, shuffle=False, repeat=False)
    history = model.fit(
        train.batches(examples, FLAGS.batch_size, seed),
        epochs=FLAGS.steps // FLAGS.eval_every,
        steps_per_epoch=FLAGS.eval_every,
        validation_data=validation.take(FLAGS.validation_sequences // 16),
        verbose=0,
    ).history
    rows = [
        dict(
            variant=variant,
            seed=seed,
            step=(index + 1) * FLAGS.eval_every,
            loss=history["loss"][index],
            val_loss=history["val_loss"][index],
            val_accuracy=history["val_accuracy"][index],
        )
        for index in range(len(history["loss"]))
    ]
    print(f"{variant} seed {seed}: {rows[-1]}", flush=True)
    return rows


def report(path, unigram_entropy):
    """Writes the Markdown table and the curves from the CSV file."""
    rows = read(path)
    last = max(int(row["step"]) for row in rows)
    final = {
        variant: [
            float(row["val_loss"])
            for row in rows
            if row["variant"] == variant and int(row["step"]) == last
        ]
        for variant in VARIANTS
    }
    final = {variant: losses for variant, losses in final.items() if losses}
    order = sorted(final, key=lambda variant: -statistics.mean(final[variant]))
    lines = [
        "# Learning curves of the Shatter variants\n",
        "4 layers, width 256, 8 heads or parts, feed-forward 1024, length "
        f"{FLAGS.sequence_length}, batch {FLAGS.batch_size}, {last} steps, peak rate "
        f"{FLAGS.learning_rate}, no dropout. Validation loss in nats a masked token "
        f"on {FLAGS.validation_sequences} sequences of ptb_sample, whose unigram "
        f"entropy is {unigram_entropy:.3f}.\n",
        machine.description(),
        "| variant | validation loss | by seed |\n|---|---|---|",
        *(
            f"| {variant} | {statistics.mean(losses):.3f} | "
            f"{', '.join(f'{loss:.3f}' for loss in losses)} |"
            for variant, losses in final.items()
        ),
        f"\nFrom worst to best here: {', '.join(order)}.\n",
        f"In the paper (Figure 1): {PAPER_ORDER}.\n",
        "![learning curves](learning_curves.png)",
    ]
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    plot(rows, path.replace(".csv", ".png"))


def plot(rows, path):
    """Draws validation loss over steps, one line a variant, a dot a seed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for variant in VARIANTS:
        points = {}
        for row in rows:
            if row["variant"] == variant:
                points.setdefault(int(row["step"]), []).append(float(row["val_loss"]))
        if not points:
            continue
        steps = sorted(points)
        means = [statistics.mean(points[step]) for step in steps]
        (line,) = axes.plot(steps, means, label=variant)
        for step in steps:
            axes.plot([step] * len(points[step]), points[step], ".", c=line.get_color())
    axes.set(xlabel="step", ylabel="validation loss (nats a masked token)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)
