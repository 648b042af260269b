"""Steps of Beam pipelines that read the parts of a corpus."""

from collections.abc import Iterable
from typing import NamedTuple

import apache_beam as beam

from tfeff.data.text.corpus import Part
from tfeff.data.text.documents import encoded


class PartPlace(NamedTuple):
    """Where a part is in the corpus."""

    first_document: int  # number of documents before it
    offset: int  # bytes of text before it
    num_documents: int
    num_bytes: int


def read_parts(pipeline, parts: Iterable[Part]):
    """The parts with their numbers, for any worker to read."""
    return (
        pipeline
        | "Parts" >> beam.Create(list(enumerate(parts)), reshuffle=False)
        | "Spread" >> beam.Reshuffle()
    )


def places(parts):
    """One dictionary: the place of each part by its number."""
    return (
        parts
        | "Measure" >> beam.Map(_measured)
        | "All sizes" >> beam.combiners.ToList()
        | "Add up" >> beam.Map(_added_up)
    )


def check_unchanged(part: Part, place: PartPlace, num_documents: int, num_bytes: int):
    """Raises unless a second reading of a part gave as much as the first."""
    if (num_documents, num_bytes) != (place.num_documents, place.num_bytes):
        raise ValueError(
            f"`documents` must be the same in each reading. {part.name} had "
            f"{place.num_documents} documents of {place.num_bytes} bytes, then "
            f"{num_documents} of {num_bytes}"
        )


def _measured(item: tuple[int, Part]) -> tuple[int, int, int]:
    number, part = item
    num_documents = num_bytes = 0
    try:
        for _, text in encoded(part.read()):
            num_documents += 1
            num_bytes += len(text)
    except TypeError as error:
        raise TypeError(f"{error}, of {part.name}") from error
    return number, num_documents, num_bytes


def _added_up(sizes: list[tuple[int, int, int]]) -> dict[int, PartPlace]:
    found, first_document, offset = {}, 0, 0
    for number, num_documents, num_bytes in sorted(sizes):
        found[number] = PartPlace(first_document, offset, num_documents, num_bytes)
        first_document += num_documents
        offset += num_bytes
    return found
