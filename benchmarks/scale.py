"""The tables of docs/SCALE.md: how far it goes, by a model of cost and by measuring.

Takes the compiler's estimates from `pods.csv` and rates of input from `data.csv`, and
prints what `scale_model.py` makes of them. With `--measure` it first measures, in
seconds of the processor, what `scale.csv` in `--results` lacks: saving and loading a
checkpoint of BERT-base with AdamW, hashing, what a cache of 1 TB has beside its
shards, and the input of each of several workers.

    python benchmarks/scale.py
"""

import concurrent.futures
import hashlib
import multiprocessing
import os
import statistics
import tempfile
import time

import numpy as np
import scale_model as model
from absl import app, flags
from rows import markdown, read, record
from steps import in_own_process

FLAGS = flags.FLAGS
flags.DEFINE_string("results", "benchmarks/results", "Where the results are.")
flags.DEFINE_bool("measure", False, "Whether to measure what is missing.")

FIELDS = ("what", "value")
LENGTH = 512
WORKERS, ROUNDS, BATCHES, BATCH_SIZE = (1, 2, 4), 7, 100, 256
TERABYTE = 1e12


def main(_):
    """Measures what is missing, if that is wanted; prints the tables."""
    path = os.path.join(FLAGS.results, "scale.csv")
    if FLAGS.measure:
        for measure in (checkpoint, beside_the_shards, hashing, input_in_parts):
            if not any(row["what"].startswith(measure.__name__) for row in read(path)):
                found = in_own_process(measure)
                record(
                    path,
                    FIELDS,
                    [
                        {
                            "what": f"{measure.__name__}: {what}",
                            "value": f"{value:.4g}",
                        }
                        for what, value in found.items()
                    ],
                )
    for title, lines in tables(FLAGS.results).items():
        print(f"\n{title}\n")
        print("\n".join(lines))


def checkpoint() -> dict[str, float]:
    """Saving and loading BERT-base with AdamW."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    from steps import make_model

    import tfeff

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        trained = make_model("bert_base", dropout=0.0)
        start = time.process_time()
        tfeff.training.save_checkpoint(trained, path)
        saved = time.process_time() - start
        del trained
        start = time.process_time()
        tfeff.training.load_checkpoint(path)
        loaded = time.process_time() - start
        return {
            "bytes": os.path.getsize(path),
            "saving, processor s": saved,
            "loading, processor s": loaded,
        }


def beside_the_shards() -> dict[str, float]:
    """The manifest of 1 TB, and the way to the middle of an epoch."""
    from tfeff.data.cache.manifest import FILE_NAME, Manifest, Shard
    from tfeff.data.cache.record_order import record_numbers

    cache = model.corpus(TERABYTE, LENGTH)
    sizes = [round(cache.sequences / cache.shards)] * cache.shards
    names = "pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id"
    digests = [
        hashlib.sha256(b"%d" % number).hexdigest() for number in range(len(sizes))
    ]
    manifest = Manifest(
        sequence_length=LENGTH,
        cross_documents=False,
        vocabulary_size=32_000,
        **dict.fromkeys(names, 0),
        tokenizer_hash=digests[0],
        corpus_hash=digests[0],
        num_documents=round(cache.documents),
        num_sequences=sum(sizes),
        num_tokens=round(cache.tokens),
        unigram_entropy=7.0,
        shards=[
            Shard(f"shard-{i:05d}.tfrecord", 17_000_000, sizes[i], digests[i])
            for i in range(len(sizes))
        ],
        lengths_sha256=digests[0],
    )
    with tempfile.TemporaryDirectory() as folder:
        manifest.write(folder)
        num_bytes = os.path.getsize(os.path.join(folder, FILE_NAME))
        start = time.process_time()
        Manifest.read(folder)
        opened = time.process_time() - start
    start = time.process_time()
    next(record_numbers(sizes, seed=0, first=sum(sizes) // 2, repeat=True))
    return {
        "bytes of the manifest": num_bytes,
        "reading the manifest, processor s": opened,
        "going to the middle of an epoch, processor s": time.process_time() - start,
    }


def hashing() -> dict[str, float]:
    """SHA-256."""
    data = os.urandom(1 << 26)
    start = time.process_time()
    hashlib.sha256(data).digest()
    return {"bytes a processor s": len(data) / (time.process_time() - start)}


def input_in_parts() -> dict[str, float]:
    """The cost of a worker's part of a global batch, of 1, 2 and 4 workers.

    Workers are processes. One after the other is at work, as each has a machine of its
    own elsewhere.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tfeff

    documents = list(tfeff.data.docstrings(max_characters=12_000_000))
    tokenizer = tfeff.data.train_tokenizer(documents[::10], 4000)
    documents *= 8  # As the corpus of a pretraining, no epoch is short.
    rounds = []
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn")
        ) as pool,
    ):
        path = os.path.join(folder, "cache")
        tfeff.data.build_cache(
            documents, tokenizer, path, LENGTH, cross_documents=True, progress=False
        )
        for _ in range(ROUNDS + 1):
            rounds.append(
                {
                    count: statistics.mean(
                        pool.submit(read_part, path, worker, count).result()
                        for worker in range(count)
                    )
                    for count in WORKERS
                }
            )
    rounds = rounds[1:]  # The first one warms up.
    found = {}
    for count in WORKERS:
        cost = statistics.median(costs[count] for costs in rounds)
        ideal = statistics.median(costs[1] / (count * costs[count]) for costs in rounds)
        found[f"{count} workers, processor us a batch"] = 1e6 * cost
        found[f"{count} workers, a part of one's over its cost"] = ideal
    return found


def read_part(path: str, worker: int, count: int) -> float:
    """Processor seconds of a worker's part of a global batch, once it has begun."""
    import tensorflow as tf

    import tfeff

    cache = tfeff.data.open_cache(path, verify=False)
    batches = cache.batches(
        tfeff.data.MaskedTokens(),
        BATCH_SIZE,
        input_context=tf.distribute.InputContext(count, worker, count),
    )
    # Inside of TensorFlow, as where several steps are one call.
    costs = []
    for number in (BATCHES // 10, BATCHES):
        start = time.process_time()
        batches.take(number).reduce(np.int64(0), lambda count, *_: count + 1)
        costs.append(time.process_time() - start)
    return (costs[1] - costs[0]) / (number - BATCHES // 10)


def tables(results: str) -> dict[str, list[str]]:
    """The lines of the page's tables, by their titles."""
    measured = {
        row["what"]: float(row["value"])
        for row in read(os.path.join(results, "scale.csv"))
    }
    steps = {
        (row["preset"], row["topology"].partition(":")[0]): model.Step(
            float(row["seconds"]),
            int(row["batch_size"]),
            int(row["length"]),
            int(row["weights"]),
        )
        for row in read(os.path.join(results, "pods.csv"))
        if row["chips"] == "4"
    }
    memory = {
        (row["preset"], row["topology"].partition(":")[0]): int(row["temporary"])
        + int(row["arguments"])
        for row in read(os.path.join(results, "pods.csv"))
        if row["chips"] == "4"
    }
    rates = {
        row["what"]: float(row["tokens_a_second"]) / int(row["processes"])
        for row in read(os.path.join(results, "data.csv"))
        if row["contender"] in ("tfeff.data.build_cache", "Cache.batches")
    }
    return {
        "Chips": _chips(steps, memory),
        "Sequences a replica": _sequences(steps),
        "Input": _input(steps, rates["reading"]),
        "Checkpoints": _checkpoints(steps, measured),
        "Corpora": _corpora(rates["caching"], measured),
    }


def _chips(steps, memory):
    head = ("preset", "TPU", "chips", "tokens/s", "in collectives", "GB a core")
    lines = []
    for (preset, tpu), step in steps.items():
        for chips in (4, 16, 64, 256):
            share = model.share_of_collectives(step, tpu, chips)
            lines.append(
                (
                    *(preset, tpu, chips),
                    f"{model.tokens_a_second(step, tpu, chips):,.0f}",
                    f"{share:.1%}",
                    f"{memory[preset, tpu] / 1e9:.1f}",
                )
            )
    return markdown(head, lines)


def _sequences(steps):
    head = ("preset", "TPU", "sequences", "tokens/s, 64 chips", "in collectives")
    lines = []
    for (preset, tpu), step in steps.items():
        for sequences in (16, 8, 4, 2, 1):
            part = model.smaller(step, sequences)
            lines.append(
                (
                    *(preset, tpu, sequences),
                    f"{model.tokens_a_second(part, tpu, 64):,.0f}",
                    f"{model.share_of_collectives(part, tpu, 64):.1%}",
                )
            )
    return markdown(head, lines)


def _input(steps, rate):
    head = ("chips", "workers", "MB/s a worker", "MB/s together", "cores a worker")
    lines = []
    step = steps["bert_base", "v3"]
    for chips in (4, 16, 64, 256):
        tokens = model.tokens_a_second(step, "v3", chips)
        workers = chips * model.CORES["v3"] // model.CORES_A_HOST
        together = model.input_bytes_a_second(tokens, step.length)
        lines.append(
            (
                *(chips, workers),
                f"{together / workers / 1e6:.1f}",
                f"{together / 1e6:.1f}",
                f"{tokens / workers / rate:.2f}",
            )
        )
    return markdown(head, lines)


def _checkpoints(steps, measured):
    step = steps["bert_base", "v3"]
    saving = measured["checkpoint: saving, processor s"]
    head = ("every … steps", "GB", "saving, s", "training waits")
    lines = []
    for every in (100, 1_000, 10_000):
        share = model.share_of_checkpoints(saving, every, step.seconds)
        size = measured["checkpoint: bytes"] / 1e9
        lines.append((f"{every:,}", f"{size:.2f}", f"{saving:.1f}", f"{share:.2%}"))
    return markdown(head, lines)


def _corpora(rate, measured):
    head = (
        *("text", "documents", "tokens", "sequences", "shards", "shards, GB"),
        *("lengths.npy, MB", "manifest, MB", "100 workers, h", "hashing, core h"),
    )
    lines = []
    whole = model.corpus(TERABYTE, LENGTH)
    entry = measured["beside_the_shards: bytes of the manifest"] / whole.shards
    for text in (1e9, 1e10, 1e11, TERABYTE, 1e13):
        cache = model.corpus(text, LENGTH)
        hashed = (text + cache.records) / measured["hashing: bytes a processor s"]
        lines.append(
            (
                f"{text / 1e9:,.0f} GB",
                *(f"{n:.3g}" for n in (cache.documents, cache.tokens, cache.sequences)),
                f"{cache.shards:,}",
                f"{cache.records / 1e9:,.1f}",
                f"{cache.lengths / 1e6:,.0f}",
                f"{cache.shards * entry / 1e6:.2f}",
                f"{model.caching_hours(cache.tokens, rate, 100):.2f}",
                f"{hashed / 3600:.2f}",
            )
        )
    return markdown(head, lines)


if __name__ == "__main__":
    app.run(main)
