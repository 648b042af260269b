r"""Pretraining of the papers' systems on a GPU, with Keras on JAX, from token files.

The tokens are made where TensorFlow is, of the texts of `campaign.py`:

    python benchmarks/gpu_campaign.py --make_tokens=runs/tokens.npz \
        --texts=runs/campaign/texts-full --length=128

The trainings need Keras, JAX and absl alone; the page, which `--report` makes of the
rows, needs matplotlib and tfeff. A row is written to `gpu_campaign.csv` in
`--results` when a training is done, its curve to `gpu_campaign_curves.csv`; one that
was stopped goes on from its newest weights, with the batches and masks that it would
have had.

    PYTHONPATH=. python benchmarks/gpu_campaign.py --tokens=runs/tokens.npz \
        --size=small --variants=bert,shatter,huang4 --runs=runs/gpu
"""

import hashlib
import json
import math
import os
import time
from pathlib import Path

import numpy as np
from absl import app, flags
from rows import append, read, record

SIZES = {
    "toy": dict(num_layers=1, num_heads=4, hidden_dim=16),
    "small": dict(num_layers=4, num_heads=8, hidden_dim=512),
    "base": dict(num_layers=12, num_heads=12, hidden_dim=768),
}
VARIANTS = (
    *("bert", "shatter", "no_position", "part_mask", "one_head_softmax"),
    *("one_head_sigmoid", "part_bias", "bert_rpe", "bert_rab"),
    *("shaw", "huang1", "huang2", "huang3", "huang4"),
)
# All that the numbers of a training depend on, the tokens by their file's digest.
KEY = ("device", "size", "variant", "seed", "million_tokens", "batch_size", "rate")
KEY += ("dtype", "points", "tokens_digest")
FIELDS = (*KEY, "length", "loss", "unigram_entropy", "tokens_a_second")
POINTS = (*KEY, "step", "loss", "val_loss")
# As tokenizers of tfeff have them: below are padding, unknown, [CLS] and [SEP].
MASK, FIRST_PIECE = 4, 5

FLAGS = flags.FLAGS
flags.DEFINE_string("make_tokens", None, "Make this file, and train nothing.")
flags.DEFINE_string("texts", "runs/campaign/texts-full", "Folder of the texts.")
flags.DEFINE_integer("length", 128, "Tokens in a sequence.", lower_bound=8)
flags.DEFINE_string("tokens", None, "File of tokens to train on.")
flags.DEFINE_enum("size", "small", list(SIZES), "The encoders' size.")
flags.DEFINE_list("variants", list(VARIANTS), "Which ones.")
flags.DEFINE_list("seeds", ["0", "1"], "A training for each.")
flags.DEFINE_float("million_tokens", 300, "To train on.", lower_bound=0)
flags.DEFINE_integer("batch_size", 256, "Sequences in a batch.", lower_bound=1)
flags.DEFINE_float("rate", 5e-4, "Peak rate.")
flags.DEFINE_integer("points", 40, "Validations.", lower_bound=1)
flags.DEFINE_float("save_minutes", 1, "At least, from one saving to the next.")
flags.DEFINE_string("dtype", "mixed_bfloat16", "Precision.")
flags.DEFINE_float("budget_minutes", None, "When to stop, to go on another time.")
flags.DEFINE_boolean("report", False, "Write the page of the rows; train nothing.")
flags.DEFINE_boolean("allow_cpu", False, "Run without a GPU too, as the tests do.")
flags.DEFINE_string("runs", "runs/gpu_campaign", "Folder of saved weights.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.register_validator(
    "variants",
    lambda names: set(names) <= set(VARIANTS),
    f"must be of {', '.join(VARIANTS)}",
)


def main(_):
    """Makes the tokens, the page, or the trainings that are missing."""
    path = os.path.join(FLAGS.results, "gpu_campaign.csv")
    if FLAGS.make_tokens:
        make_tokens(FLAGS.make_tokens)
        return
    if FLAGS.report:
        from gpu_campaign_report import report

        report(path, KEY)
        return
    if not FLAGS.tokens or not Path(FLAGS.tokens).exists():
        raise app.UsageError(
            "--tokens must be a file that --make_tokens has made. "
            f"Received: {FLAGS.tokens}"
        )
    os.environ["KERAS_BACKEND"] = "jax"
    from gpu_device import find_gpu

    device = find_gpu(FLAGS.allow_cpu)
    os.makedirs(FLAGS.runs, exist_ok=True)
    os.makedirs(FLAGS.results, exist_ok=True)
    digest = hashlib.sha256(Path(FLAGS.tokens).read_bytes()).hexdigest()[:12]
    end = math.inf
    if FLAGS.budget_minutes is not None:
        end = time.monotonic() + 60 * FLAGS.budget_minutes
    for seed in FLAGS.seeds:
        for variant in FLAGS.variants:
            values = (device, FLAGS.size, variant, seed, FLAGS.million_tokens)
            values += (FLAGS.batch_size, FLAGS.rate, FLAGS.dtype, FLAGS.points, digest)
            case = dict(zip(KEY, map(str, values)))
            if any(case.items() <= row.items() for row in read(path)):
                print(f"{variant}, seed {seed}: is recorded in {path}", flush=True)
                continue
            done = train(case, end)
            if done is None:
                print(f"{variant}, seed {seed}: stopped", flush=True)
                return
            row, curve = done
            append(path.replace(".csv", "_curves.csv"), POINTS, curve)
            record(path, FIELDS, [row])
            print(f"{variant}, seed {seed}: loss {row['loss']}", flush=True)


def make_tokens(path: str) -> None:
    """Writes the sequences of training and of final validation, with their entropy."""
    import tempfile

    import tfeff

    texts = FLAGS.texts
    tokenizer = tfeff.data.load_tokenizer(f"{texts}/tokenizer.spm")
    found = {"vocabulary_size": tokenizer.vocabulary_size()}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("train", "final"):
            cache = tfeff.data.build_cache(
                tfeff.data.json_lines([f"{texts}/{name}.jsonl"]),
                tokenizer,
                os.path.join(folder, name),
                FLAGS.length,
                cross_documents=True,
            )
            examples = tfeff.data.MaskedTokens(mask_share=0.0, random_share=0.0)
            batches = cache.batches(examples, 64, shuffle=False, repeat=False)
            rows = [np.asarray(inputs["token_ids"]) for inputs, _, _ in batches]
            rows = np.concatenate(rows).astype("uint16")
            found[name] = rows[(rows != 0).all(axis=1)]  # Full ones.
        found["unigram_entropy"] = cache.unigram_entropy()
    with open(f"{path}.new", "wb") as file:
        np.savez(file, **found)
    os.replace(f"{path}.new", path)
    shapes = ", ".join(f"{n} {found[n].shape}" for n in ("train", "final"))
    print(f"{path}: {shapes}")


def masked(rows: np.ndarray, vocabulary: int, draw: np.random.Generator) -> tuple:
    """Inputs and labels of masked language modelling: 15 %, of these 80, 10 and 10 %.

    The first and the last token of a sequence are `[CLS]` and `[SEP]`.
    """
    rows = rows.astype("int32")
    count, length = rows.shape
    targets = max(1, round(0.15 * (length - 2)))
    places = np.argsort(draw.random((count, length - 2)), axis=1)[:, :targets] + 1
    places = np.sort(places, axis=1).astype("int32")
    labels = np.take_along_axis(rows, places, axis=1)
    chance = draw.random(labels.shape)
    others = draw.integers(FIRST_PIECE, vocabulary, size=labels.shape, dtype="int32")
    new = np.where(chance < 0.8, MASK, np.where(chance < 0.9, others, labels))
    np.put_along_axis(rows, places, new.astype("int32"), axis=1)
    inputs = {
        "token_ids": rows,
        "segment_ids": np.zeros_like(rows),
        "padding_mask": np.ones_like(rows),
        "mask_positions": places,
    }
    return inputs, labels


def batch(rows: np.ndarray, vocabulary: int, size: int, seed: int, step: int) -> tuple:
    """The batch of a step, which depends on the seed and the step alone."""
    epoch, first = divmod(step * size, len(rows) // size * size)
    order = np.random.default_rng([seed, epoch]).permutation(len(rows))
    draw = np.random.default_rng([seed, step, 1])
    return masked(rows[order[first : first + size]], vocabulary, draw)


def rate_at(step, peak: float, warmup: int, total: int):
    """The rate after so many updates: up in a line, and down to 0 in another."""
    from keras import ops

    step = ops.cast(step, "float32")
    return peak * ops.minimum(
        (step + 1) / warmup, ops.maximum(0.0, (total - step) / (total - warmup))
    )


def train(case: dict[str, str], end: float) -> tuple[dict, list[dict]] | None:
    """Trains to the end; the row and the points, or `None` if the time is over."""
    import keras
    from gpu_models import make_model

    class Rate(keras.optimizers.schedules.LearningRateSchedule):
        """`rate_at` of this training."""

        def __call__(self, step):
            return rate_at(step, FLAGS.rate, max(1, total // 10), total)

        def get_config(self):
            return {}

    data = np.load(FLAGS.tokens)
    rows, final = data["train"], data["final"]
    vocabulary, seed = int(data["vocabulary_size"]), int(case["seed"])
    size, length = FLAGS.batch_size, rows.shape[1]
    if len(rows) < size or len(final) < size:
        raise app.UsageError(
            "--batch_size must be at most the sequences in --tokens. Received: "
            f"{size} of {len(rows)} to train on, {len(final)} to validate by"
        )
    every = max(1, round(FLAGS.million_tokens * 1e6 / (size * length * FLAGS.points)))
    total = every * FLAGS.points
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    keras.config.set_dtype_policy(FLAGS.dtype)
    inputs, _ = batch(rows, vocabulary, size, seed, 0)
    model = make_model(
        case["variant"], inputs, vocabulary_size=vocabulary, **SIZES[FLAGS.size]
    )
    model.compile(
        keras.optimizers.AdamW(
            Rate(), weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.optimizer.build(model.trainable_variables)
    path = Path(FLAGS.runs, "-".join(case.values()).replace(" ", "_") + ".npz")
    step, curve, seconds = load(model, path)
    validation = [
        masked(final[start : start + size], vocabulary, np.random.default_rng(start))
        for start in range(0, len(final) - size + 1, size)
    ]
    saved, saved_at = step, time.monotonic()
    while step < total:
        if time.monotonic() > end:
            if step > saved:
                save(model, path, step, curve, seconds)
            return None
        start = time.perf_counter()
        batches = (
            batch(rows, vocabulary, size, seed, number)
            for number in range(step, step + every)
        )
        fitted = model.fit(batches, steps_per_epoch=every, shuffle=False, verbose=0)
        seconds += [time.perf_counter() - start]
        step += every
        value = model.evaluate(
            (pair for pair in validation), steps=len(validation), verbose=0
        )
        if not math.isfinite(value):
            raise SystemExit(f"{case['variant']} has diverged: use a lower --rate")
        loss = float(fitted.history["loss"][0])
        curve.append({"step": step, "loss": loss, "val_loss": float(value)})
        print(f"{case['variant']}, seed {seed}: {curve[-1]}", flush=True)
        if time.monotonic() - saved_at >= 60 * FLAGS.save_minutes:
            save(model, path, step, curve, seconds)
            saved, saved_at = step, time.monotonic()
    row = {
        **case,
        "length": length,
        "loss": curve[-1]["val_loss"],
        "unigram_entropy": float(data["unigram_entropy"]),
        # The first compiles.
        "tokens_a_second": round(every * size * length / float(np.median(seconds))),
    }
    return row, [{**case, **point} for point in curve]


def state(model) -> list:
    """All variables of a training, in an order that its code determines."""
    return [*model.variables, *model.optimizer.variables]


def save(model, path: Path, step: int, curve: list, seconds: list) -> None:
    """Writes the state of a training, whole or not at all."""
    arrays = {str(i): np.asarray(v) for i, v in enumerate(state(model))}
    notes = json.dumps({"step": step, "curve": curve, "seconds": seconds})
    with open(f"{path}.new", "wb") as file:
        np.savez(file, notes=np.array(notes), **arrays)
    os.replace(f"{path}.new", path)


def load(model, path: Path) -> tuple[int, list, list]:
    """Step, curve and seconds of a training that was stopped, or of a new one."""
    if not path.exists():
        return 0, [], []
    with np.load(path) as saved:
        for index, variable in enumerate(state(model)):
            variable.assign(saved[str(index)])
        notes = json.loads(str(saved["notes"]))
    return notes["step"], notes["curve"], notes["seconds"]


if __name__ == "__main__":
    app.run(main)
