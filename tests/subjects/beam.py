"""Corpora and runners for pipelines of Apache Beam."""

import json
from pathlib import Path

import tfeff
from tfeff.data.text.corpus import Corpus, Part

# Each bundle runs twice, as where a worker is slow and another one does its work.
DIRECT = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=1"]
PROCESSES = [
    "--runner=DirectRunner",
    "--direct_num_workers=2",
    "--direct_running_mode=multi_processing",
]


def write_corpus(folder: Path, documents: list[str], files: int) -> Corpus:
    """Files by turns of text and of JSON Lines, in the order of their names."""
    parts: list[Part] = []
    size = -(-len(documents) // files)
    for number in range(files):
        own = documents[number * size : (number + 1) * size]
        if number % 2:
            path = folder / f"{number}.jsonl"
            path.write_text("".join(json.dumps({"text": d}) + "\n" for d in own))
            parts += tfeff.data.json_lines(path).parts
        else:
            path = folder / f"{number}.txt"
            path.write_text("\n\n".join(own))
            parts += tfeff.data.text_files(path).parts
    return Corpus(parts)
