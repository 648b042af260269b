"""Steps of the Beam pipeline that draws documents for a sample."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from tfeff.data.text.beam_parts import PartPlace, places, read_parts
from tfeff.data.text.corpus import Part
from tfeff.data.text.documents import HASHES, encoded, hash_of
from tfeff.storage.shared_folder import SharedFolder


class Drawn(NamedTuple):
    """The documents drawn from a part of the corpus, and whether these are all."""

    whole: bool
    documents: list[str]


def draw(pipeline, parts: Iterable[Part], num_bytes: int, folder: SharedFolder):
    """Writes the documents whose hashes are the lowest, with about so many bytes."""
    numbered = read_parts(pipeline, parts)
    where = beam.pvalue.AsSingleton(places(numbered))
    return numbered | "Draw" >> beam.Map(_draw, where, num_bytes, folder)


def file_of(number: int) -> str:
    """The name of the file that `draw` writes of a part."""
    return f"{number:06d}.json"


def read_drawn(folder: SharedFolder, files: Iterable[str]) -> Iterator[Drawn]:
    """The documents that `draw` wrote to the files."""
    for name in files:
        with folder.read(name) as path, open(path, encoding="utf-8") as file:
            yield Drawn(*json.load(file))


def _draw(
    item: tuple[int, Part],
    where: dict[int, PartPlace],
    num_bytes: int,
    folder: SharedFolder,
) -> None:
    number, part = item
    total = sum(place.num_bytes for place in where.values())
    limit = HASHES * num_bytes // max(total, 1)
    found = [d for d, text in encoded(part.read()) if hash_of(text) < limit]
    with folder.written(file_of(number)) as unfinished, open(unfinished, "w") as file:
        json.dump(Drawn(limit >= HASHES, found), file)
