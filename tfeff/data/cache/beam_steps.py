"""Steps of the Beam pipeline that writes the shards of a cache.

The parts of the corpus are read twice: first the documents and bytes of each are
counted, so that each worker knows where its part is in the corpus; then its documents
go to their shards, and whoever has all documents of a shard writes it.
"""

import json
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from tfeff.data.cache.layout import ShardSizes, chunks, shard_file, text_hash
from tfeff.data.cache.shards import (
    ShardResult,
    ShardTask,
    WrittenShard,
    write_shard,
)
from tfeff.data.cache.tokenization import Tokenization
from tfeff.data.text.beam_parts import PartPlace, check_unchanged, places, read_parts
from tfeff.data.text.corpus import Part
from tfeff.data.text.packed_tokenizer import PackedTokenizer
from tfeff.storage.shared_folder import SharedFolder

LENGTHS = ".lengths.npy"  # Behind the name of a shard's file.
REPORT = "report.json"


class WriteShard(beam.DoFn):
    """Tokenizes the documents of a shard and writes its file into a shared folder."""

    def __init__(self, packed: PackedTokenizer, wanted: dict, folder: SharedFolder):
        self._packed, self._wanted, self._folder = packed, wanted, folder

    def setup(self):
        self._tokenization = Tokenization(self._packed.unpack())

    def process(self, item) -> Iterator[ShardResult]:
        shard, found = item
        first_document, documents = _joined(found)
        name = shard_file(shard)
        # A step may run twice, and at once: each time it replaces the same bytes.
        with self._folder.written(name) as unfinished:
            result = write_shard(
                ShardTask(
                    unfinished,
                    documents,
                    first_document,
                    self._wanted,
                    self._tokenization.ids(documents),
                )
            )
        with (
            self._folder.written(name + LENGTHS) as unfinished,
            open(unfinished, "wb") as file,
        ):
            np.save(file, result.lengths)
        yield result


def write_shards(
    pipeline,
    parts: Iterable[Part],
    sizes: ShardSizes,
    packed: PackedTokenizer,
    wanted: dict,
    folder: SharedFolder,
):
    """Writes the shards, their lengths, and a JSON file about them all."""
    results = _documents_of_shards(pipeline, parts, sizes) | "Write" >> beam.ParDo(
        WriteShard(packed, wanted, folder)
    )
    counts = (
        results
        | "Counts" >> beam.Map(lambda result: result.token_counts)
        | "Sum" >> beam.CombineGlobally(sum)
    )
    shards = (
        results
        | "Shards" >> beam.Map(lambda result: vars(result.shard))
        | "All shards" >> beam.combiners.ToList()
    )
    return shards | "Report" >> beam.Map(
        _report, beam.pvalue.AsSingleton(counts), folder
    )


def hash_shards(
    pipeline, parts: Iterable[Part], sizes: ShardSizes, folder: SharedFolder
):
    """Writes a JSON file with the hashes of the shards' text, in order."""
    hashes = (
        _documents_of_shards(pipeline, parts, sizes)
        | "Hash" >> beam.Map(lambda item: (item[0], text_hash(_joined(item[1])[1])))
        | "All hashes" >> beam.combiners.ToList()
    )
    return hashes | "Report" >> beam.Map(_write_report, folder)


def read_report(folder: SharedFolder) -> tuple[list[WrittenShard], np.ndarray]:
    """The shards that `write_shards` wrote, in order, and the counts of tokens."""
    content = _read_report(folder)
    shards = [WrittenShard(**shard) for shard in content["shards"]]
    return shards, np.array(content["token_counts"])


def read_hashes(folder: SharedFolder) -> list[str]:
    """The hashes that `hash_shards` wrote."""
    return [digest for _, digest in sorted(_read_report(folder))]


def _documents_of_shards(pipeline, parts, sizes):
    """(shard, [(number of the first document, documents), …]) of each shard."""
    numbered = read_parts(pipeline, parts)
    where = beam.pvalue.AsSingleton(places(numbered))
    return (
        numbered
        | "Read" >> beam.FlatMap(_read, where, sizes)
        | "By shard" >> beam.GroupByKey()
    )


def _read(
    item: tuple[int, Part], where: dict[int, PartPlace], sizes: ShardSizes
) -> Iterator[tuple[int, tuple[int, list[str]]]]:
    number, part = item
    place = where[number]
    num_documents = num_bytes = 0
    for chunk in chunks(part.read(), sizes, place.first_document, place.offset):
        num_documents += len(chunk.documents)
        num_bytes += chunk.num_bytes
        yield chunk.shard, (chunk.first_document, chunk.documents)
    check_unchanged(part, place, num_documents, num_bytes)


def _joined(found: Iterable[tuple[int, list[str]]]) -> tuple[int, list[str]]:
    """The first document's number, and all documents of a shard in order."""
    pieces = sorted(found)
    return pieces[0][0], [document for _, piece in pieces for document in piece]


def _report(shards: list[dict], counts: np.ndarray | int, folder: SharedFolder) -> None:
    shards = sorted(shards, key=lambda shard: shard["first_document"])
    content = {"shards": shards, "token_counts": np.asarray(counts).tolist()}
    _write_report(content, folder)


def _write_report(content: object, folder: SharedFolder) -> None:
    with folder.written(REPORT) as unfinished, open(unfinished, "w") as file:
        json.dump(content, file)


def _read_report(folder: SharedFolder):
    with folder.read(REPORT) as path, open(path, encoding="utf-8") as file:
        return json.load(file)
