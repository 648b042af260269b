"""Steps of the Beam pipeline that writes the shards of a cache.

The parts of the corpus are read twice: first the documents and bytes of each are
counted, so that each worker knows where its part is in the corpus; then its documents
go to their shards, and whoever has all documents of a shard writes it.
"""

import json
import os
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from tfeff.data.cache.layout import ShardSizes, chunks, shard_file, text_hash
from tfeff.data.cache.shards import (
    ShardResult,
    ShardTask,
    WrittenShard,
    shard_settings,
    write_shard,
)
from tfeff.data.cache.tokenization import Tokenization
from tfeff.data.text.beam_parts import Place, check_unchanged, places, read_parts
from tfeff.data.text.corpus import Part
from tfeff.data.text.packed_tokenizer import PackedTokenizer
from tfeff.utils.files import atomic_file

LENGTHS = ".lengths.npy"  # Behind the name of a shard's file.


class WriteShard(beam.DoFn):
    """Tokenizes the documents of a shard and writes its file into a shared folder."""

    def __init__(self, packed: PackedTokenizer, wanted: dict, directory: str):
        self._packed, self._wanted, self._directory = packed, wanted, directory

    def setup(self):
        self._tokenization = Tokenization(self._packed.unpack())
        self._settings = shard_settings(self._wanted, self._tokenization)

    def process(self, item) -> Iterator[ShardResult]:
        shard, found = item
        first_document, documents = _joined(found)
        path = os.path.join(self._directory, shard_file(shard))
        # A step may run twice, and at once: each time it replaces the same bytes.
        with atomic_file(path) as unfinished:
            result = write_shard(
                ShardTask(
                    unfinished,
                    documents,
                    first_document,
                    self._settings,
                    self._tokenization.ids(documents),
                )
            )
        with atomic_file(path + LENGTHS) as unfinished, open(unfinished, "wb") as file:
            np.save(file, result.lengths)
        yield result


def write_shards(
    pipeline,
    parts: Iterable[Part],
    sizes: ShardSizes,
    packed: PackedTokenizer,
    wanted: dict,
    directory: str,
    report: str,
):
    """Writes the shards, their lengths, and `report`: a JSON file about them all."""
    results = _documents_of_shards(pipeline, parts, sizes) | "Write" >> beam.ParDo(
        WriteShard(packed, wanted, directory)
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
        _report, beam.pvalue.AsSingleton(counts), report
    )


def hash_shards(pipeline, parts: Iterable[Part], sizes: ShardSizes, report: str):
    """Writes `report`: a JSON file with the hashes of the shards' text, in order."""
    hashes = (
        _documents_of_shards(pipeline, parts, sizes)
        | "Hash" >> beam.Map(lambda item: (item[0], text_hash(_joined(item[1])[1])))
        | "All hashes" >> beam.combiners.ToList()
    )
    return hashes | "Report" >> beam.Map(_write_json, report)


def read_report(report: str) -> tuple[list[WrittenShard], np.ndarray]:
    """The shards that `write_shards` wrote, in order, and the counts of tokens."""
    with open(report, encoding="utf-8") as file:
        content = json.load(file)
    shards = [WrittenShard(**shard) for shard in content["shards"]]
    return shards, np.array(content["token_counts"])


def read_hashes(report: str) -> list[str]:
    """The hashes that `hash_shards` wrote."""
    with open(report, encoding="utf-8") as file:
        return [digest for _, digest in sorted(json.load(file))]


def _documents_of_shards(pipeline, parts, sizes):
    """Of each shard its number and pairs: number of the first document, documents."""
    numbered = read_parts(pipeline, parts)
    where = beam.pvalue.AsSingleton(places(numbered))
    return (
        numbered
        | "Read" >> beam.FlatMap(_read, where, sizes)
        | "By shard" >> beam.GroupByKey()
    )


def _read(
    item: tuple[int, Part], where: dict[int, Place], sizes: ShardSizes
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


def _report(shards: list[dict], counts: np.ndarray | int, report: str) -> None:
    shards = sorted(shards, key=lambda shard: shard["first_document"])
    content = {"shards": shards, "token_counts": np.asarray(counts).tolist()}
    _write_json(content, report)


def _write_json(content: object, path: str) -> None:
    with atomic_file(path) as unfinished, open(unfinished, "w") as file:
        json.dump(content, file)
