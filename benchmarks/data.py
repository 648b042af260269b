"""Tokens a second of tokenizing into a cache, and of the training input from it.

Caching: `tfeff.data.build_cache` in turns with SentencePiece called directly on
the same documents and cores, in its own threads and in as many processes. These
only make the ids; the cache is also hashed, cut, framed, checked and written.

Reading: an epoch of `Cache.batches`, shuffled, decoded and masked, in turns with
TensorFlow reading the bare records of the same files.

Rates are medians over the rounds, ratios medians of the rounds' own ratios. Rows
are added to `data.csv` in `--results`; those already there are not made again.

    python benchmarks/data.py --repeat=4
"""

import concurrent.futures
import glob
import multiprocessing
import os
import resource
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import sentencepiece
from absl import app, flags
from rows import markdown, read, record, write_tables

import tfeff
from tfeff.utils.parallel import end_with_parent

GOAL = 0.8  # of SentencePiece's rate
SETTINGS = (
    *("text", "megabytes", "vocabulary_size", "processes", "length", "batch_size"),
    "what",
)
COSTS = ("tokens_a_second", "cpu_us_a_token", "ratio", "low", "high", "cpu_ratio")
FIELDS = (*SETTINGS, "contender", *COSTS)
CHUNKS_A_PROCESS = 16

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/*.txt; without one, the documentation of Python's packages.",
)
flags.DEFINE_integer("repeat", 1, "Times that the text is taken.", lower_bound=1)
flags.DEFINE_integer("vocabulary_size", 32_000, "Pieces.", lower_bound=6)
flags.DEFINE_integer("processes", None, "Default: one a core.", lower_bound=1)
flags.DEFINE_integer("length", 512, "Tokens in a sequence.", lower_bound=3)
flags.DEFINE_integer("batch_size", 16, "Sequences in a batch.", lower_bound=1)
flags.DEFINE_integer("rounds", 7, "Times that each is timed.", lower_bound=1)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Makes the rows that are missing, and reports."""
    source, text = find_text(FLAGS.data, required=FLAGS["data"].present)
    once = list(text)
    documents = once * FLAGS.repeat
    processes = FLAGS.processes or len(os.sched_getaffinity(0))
    settings = {
        "text": source,
        "megabytes": f"{sum(len(d.encode()) for d in documents) / 1e6:.1f}",
        "vocabulary_size": str(FLAGS.vocabulary_size),
        "processes": str(processes),
        "length": str(FLAGS.length),
        "batch_size": str(FLAGS.batch_size),
    }
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "data.csv")
    missing = [
        what
        for what in ("caching", "reading")
        if not any((settings | {"what": what}).items() <= r.items() for r in read(path))
    ]
    if not missing:
        return
    tokenizer = tfeff.data.train_tokenizer(once, FLAGS.vocabulary_size)
    with tempfile.TemporaryDirectory() as folder:
        if "caching" in missing:
            runs = {
                "tfeff.data.build_cache": Caching(
                    documents, tokenizer, folder, processes, FLAGS.length
                ),
                "SentencePiece, threads": lambda: in_threads(
                    tokenizer.proto, documents, processes
                ),
                "SentencePiece, processes": lambda: in_processes(
                    tokenizer.proto, documents, processes
                ),
            }
            record(path, FIELDS, compare(runs, settings | {"what": "caching"}))
            report(path)
        if "reading" in missing:
            cache = tfeff.data.build_cache(
                documents,
                tokenizer,
                os.path.join(folder, "cache"),
                FLAGS.length,
                num_threads=processes,
            )
            runs = {
                "Cache.batches": lambda: read_batches(cache, FLAGS.batch_size),
                "records alone": lambda: read_records(cache, FLAGS.batch_size),
            }
            record(path, FIELDS, compare(runs, settings | {"what": "reading"}))
            report(path)


def find_text(folder: str, required: bool):
    """Where the text comes from, in words, and its documents."""
    pattern = os.path.join(folder, "text", "*.txt")
    if glob.glob(pattern):
        return "text files", tfeff.data.text_files(pattern)
    if required:
        raise app.UsageError(f"--data={folder} holds no text/*.txt")
    return "docstrings", tfeff.data.docstrings()


class Caching:
    """Makes a cache, each time a new one."""

    def __init__(self, documents, tokenizer, folder, processes, length):
        self._documents, self._tokenizer = documents, tokenizer
        self._folder, self._processes, self._length = folder, processes, length

    def __call__(self) -> int:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            return tfeff.data.build_cache(
                self._documents,
                self._tokenizer,
                os.path.join(folder, "cache"),
                self._length,
                num_threads=self._processes,
                progress=False,
            ).num_tokens


def in_threads(proto: bytes, documents: list[str], threads: int) -> int:
    """Tokens, counted by SentencePiece in threads of its own."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = processor.encode(documents, return_type="numpy", num_threads=threads)
    return sum(map(len, ids))


def in_processes(proto: bytes, documents: list[str], processes: int) -> int:
    """Tokens, counted by SentencePiece in processes, which keep the ids."""
    size = -(-len(documents) // (CHUNKS_A_PROCESS * processes))
    chunks = [documents[i : i + size] for i in range(0, len(documents), size)]
    with concurrent.futures.ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_process,
        initargs=(proto,),
    ) as pool:
        return sum(pool.map(count_tokens, chunks))


def start_process(proto: bytes) -> None:
    """Loads the model in a process of `in_processes`."""
    global _processor
    end_with_parent()
    _processor = sentencepiece.SentencePieceProcessor(model_proto=proto)


def count_tokens(documents: list[str]) -> int:
    """Tokens of a chunk, in a process of `in_processes`."""
    ids = _processor.encode(documents, return_type="numpy", num_threads=1)
    return sum(map(len, ids))


def read_batches(cache, batch_size: int) -> int:
    """Tokens of the text in an epoch of training batches."""
    for _ in cache.batches(tfeff.data.MaskedTokens(), batch_size, repeat=False):
        pass
    return cache.num_tokens


def read_records(cache, batch_size: int) -> int:
    """Tokens of the text in an epoch of records as they lie in the files."""
    import tensorflow as tf

    paths = sorted(glob.glob(os.path.join(cache.directory, "*.tfrecord")))
    for _ in tf.data.TFRecordDataset(paths).batch(batch_size):
        pass
    return cache.num_tokens


def compare(runs: dict, settings: dict[str, str]) -> list[dict[str, str]]:
    """Rows of `runs`, the first of which is ours; each returns its tokens."""
    wall, cpu, tokens = in_turns(runs, FLAGS.rounds)
    (ours, count), *others = tokens.items()
    for name, other in others:
        if other != count:
            raise RuntimeError(f"{ours} made {count} tokens, but {name} {other}")
    rows = []
    for name in runs:
        low, ratio, high = np.quantile(wall[name] / wall[ours], (0.25, 0.5, 0.75))
        costs = (
            count / np.median(wall[name]),
            1e6 * np.median(cpu[name]) / count,
            *(ratio, low, high),
            np.median(cpu[ours] / cpu[name]),
        )
        costs = {key: f"{value:.4g}" for key, value in zip(COSTS, costs)}
        rows.append({**settings, "contender": name, **costs})
        print(name, costs, flush=True)
    return rows


def in_turns(runs: dict, rounds: int) -> tuple[dict, dict, dict]:
    """Seconds and processor seconds of each run in every round, and its tokens."""
    tokens = {name: run() for name, run in runs.items()}  # warms up
    wall = {name: np.empty(rounds) for name in runs}
    cpu = {name: np.empty(rounds) for name in runs}
    for number in range(rounds):
        # The order is reversed every other round, so that a drift favours none.
        for name in list(runs)[:: (-1) ** number]:
            start, start_cpu = time.perf_counter(), processor_seconds()
            runs[name]()
            wall[name][number] = time.perf_counter() - start
            cpu[name][number] = processor_seconds() - start_cpu
    return wall, cpu, tokens


def processor_seconds() -> float:
    """Processor time of this process and of those that it has ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def report(path: str) -> None:
    """Writes the Markdown tables, one for each of the settings in the CSV file."""
    lines = [
        "# Tokenizing into a cache, and reading it for training\n",
        "Ours over the other: rates, median of the rounds (quartiles), and processor "
        f"time per token. Goal for caching: {GOAL} of SentencePiece's rate or more, "
        "whichever way SentencePiece is faster.\n",
    ]
    write_tables(path, SETTINGS[::-1], lines, table)


def table(rows: list[dict[str, str]]) -> list[str]:
    """The lines of a Markdown table of rows with the same settings."""
    lines = []
    for row in rows:
        rate, cpu, ratio, low, high, cpu_ratio = (float(row[name]) for name in COSTS)
        cells = (
            row["contender"],
            f"{rate / 1e6:.3f}",
            f"{ratio:.3f} ({low:.3f}–{high:.3f})",
            f"{cpu:.3f}",
            f"{cpu_ratio:.3f}",
        )
        lines.append(cells)
    costs = ("million tokens/s", "ours / this", "processor µs a token", "ours / this")
    return markdown(("", *costs), lines)


if __name__ == "__main__":
    app.run(main)
