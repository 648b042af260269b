"""Sentence embeddings on STS-B: `[CLS]`, mean, SimCSE and pairs, with two seeds.

All start from the encoder of one pretraining. SimCSE is trained on sentences alone, of
`text/brown.txt`; pairs are MRPC's paraphrases and RTE's entailments. Rates and steps
are chosen on pairs of STS-B's training part, and judged on its development part, which
nothing was chosen by.

    tfeff pretrain --run_dir=runs/pretrain --vocabulary_size=4000 --override=dropout=0
    python benchmarks/sentences.py --pretrained=runs/pretrain --runs=runs/sentences

prints the table in Markdown. What is finished is not trained again.
"""

import dataclasses
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

from absl import app, flags

import tfeff
from tfeff.recipes import EmbedSettings, embed

FLAGS = flags.FLAGS
flags.DEFINE_string("pretrained", None, "A run of pretraining.", required=True)
flags.DEFINE_string("runs", None, "Folder of the trainings.", required=True)
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/ and glue/.",
)
flags.DEFINE_integer("steps", 200, "Steps of a training.", lower_bound=1)
flags.DEFINE_integer("batch_size", 64, "Examples in a batch.", lower_bound=2)
flags.DEFINE_integer("choice", 1000, "Pairs to choose by.", lower_bound=2)
flags.DEFINE_list("learning_rates", ["3e-5", "1e-4", "3e-4"], "Rates to choose from.")
flags.DEFINE_list("seeds", ["0", "1"], "Seeds.")

PAIRS = {"MRPC": "1", "RTE": "entailment"}


def texts(data):
    """Sentences of the Brown corpus, each once."""
    lines = Path(data, "text", "brown.txt").read_text(encoding="utf-8").split("\n")
    found = dict.fromkeys(line.strip() for line in lines if len(line.split()) > 4)
    return tfeff.data.SentenceExamples(rows=[(text,) for text in found])


def pairs(data):
    """Pairs of other data sets that mean the same, or of which one follows."""
    rows = []
    for task, label in PAIRS.items():
        examples = tfeff.datasets.get(task).read("train", Path(data, "glue"))
        labels = [examples.label_names[index] for index in examples.labels]
        rows += [
            (first.strip(), second.strip())
            for first, second, own in zip(examples.first, examples.second, labels)
            if own == label and first.strip() != second.strip()
        ]
    return tfeff.data.SentenceExamples(rows=rows)


def trained(kind, examples, data, **others):
    """The models of all seeds at the rate that is best by the pairs to choose by."""
    sts = tfeff.datasets.get("STS-B")
    part = dataclasses.replace(
        sts,
        reader=lambda split, folder: sts.read("train", folder).sample(FLAGS.choice),
        options=(),
    )
    settings = EmbedSettings(
        run_dir=str(Path(FLAGS.runs, kind)),
        pretrained=FLAGS.pretrained,
        examples=None,
        data=str(Path(data, "glue")),
        split="train",
        sequence_length=64,
        batch_sizes=(FLAGS.batch_size,),
        learning_rates=tuple(map(float, FLAGS.learning_rates)),
        seeds=tuple(map(int, FLAGS.seeds)),
        steps=FLAGS.steps,
        eval_every=max(1, FLAGS.steps // 4),
        **others,
    )
    start = time.perf_counter()
    best = embed(settings, examples=examples, dataset=part)["best"]
    took = time.perf_counter() - start
    count = len(settings.learning_rates) * len(settings.seeds)
    folders = [
        best["folder"].rpartition("seed=")[0] + f"seed={seed}"
        for seed in settings.seeds
    ]
    models = [tfeff.training.load_checkpoint(f"{f}/model.keras") for f in folders]
    return models, best["setting"]["learning_rate"], took / count


def main(_):
    """Trains what is not trained, and prints the table."""
    encoder, tokenizer = tfeff.tasks.load_pretrained(FLAGS.pretrained)
    dev = tfeff.datasets.get("STS-B").read("dev", Path(FLAGS.data, "glue"))

    def spearman(model):
        first, second = (
            model.embed(side, tokenizer, 64, normalize=True)
            for side in (dev.first, dev.second)
        )
        cosines = (first * second).sum(axis=1)
        return tfeff.datasets.spearman(dev.labels, cosines)

    print("| embedding | trained on | rate | Spearman | seconds of training |")
    print("|---|---|---|---|---|")
    for pooling in ("cls", "mean"):
        model = tfeff.tasks.SentenceEmbedding(encoder, pooling)
        print(f"| {pooling} | – | – | {spearman(model):.3f} | – |", flush=True)
    for kind, examples, others in (
        ("simcse", texts(FLAGS.data), {"dropout": 0.1}),
        ("pairs", pairs(FLAGS.data), {"dropout": 0.1}),
    ):
        models, rate, seconds = trained(kind, examples, FLAGS.data, **others)
        scores = [spearman(model) for model in models]
        spread = f" ± {statistics.stdev(scores):.3f}" if len(scores) > 1 else ""
        mean = statistics.fmean(scores)
        print(
            f"| mean, {kind} | {FLAGS.steps * FLAGS.batch_size:,} of {len(examples):,} "
            f"| {rate:g} | {mean:.3f}{spread} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    app.run(main)
