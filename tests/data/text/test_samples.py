"""Samples by hash: of a size, and of no order, reader or split."""

import hashlib
import random

import pytest

from tests.subjects.corpus import make_documents
from tfeff.data import sample, split

DOCUMENTS = make_documents(500, 30) + ["twice", "twice", "Ünïcode 漢字"]
TOTAL = sum(len(document.encode()) for document in DOCUMENTS)


def by_hash(documents):
    return sorted(documents, key=lambda d: hashlib.sha256(d.encode()).digest())


@pytest.mark.parametrize("num_bytes", [1, 500, TOTAL // 2, TOTAL - 1])
def test_the_first_documents_by_hash_that_have_the_size(num_bytes):
    found = sample(DOCUMENTS, num_bytes)
    assert found == by_hash(DOCUMENTS)[: len(found)]
    sizes = [len(document.encode()) for document in found]
    assert sum(sizes[:-1]) < num_bytes <= sum(sizes)


@pytest.mark.parametrize("num_bytes", [TOTAL, 10**12])
def test_fewer_documents_are_all_in_it(num_bytes):
    assert sample(DOCUMENTS, num_bytes) == by_hash(DOCUMENTS)


def test_the_order_of_reading_changes_nothing():
    shuffled = random.Random(1).sample(DOCUMENTS, len(DOCUMENTS))
    assert sample(shuffled, 2000) == sample(DOCUMENTS, 2000)


def test_a_sample_of_a_part_is_no_matter_of_the_split():
    training, validation = split(DOCUMENTS, 0.3)
    chosen = sample(DOCUMENTS, TOTAL // 4)
    share = len(set(chosen) & set(validation)) / len(chosen)
    assert 0.15 < share < 0.45
    assert (
        sample(training, 1000)
        == [d for d in by_hash(DOCUMENTS) if d in {*training}][
            : len(sample(training, 1000))
        ]
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"documents": "text"}, TypeError, "one string, documents"),
        ({"documents": iter(["text"])}, TypeError, "more than once"),
        ({"documents": ["\udfff"]}, ValueError, "document 0"),
        ({"num_bytes": 0}, ValueError, "`num_bytes`.*=0"),
        ({"num_bytes": 1.5}, TypeError, "`num_bytes`.*=1.5"),
        ({"beam_flags": []}, ValueError, "`shared_folder` must be given"),
        ({"shared_folder": "here"}, ValueError, "`shared_folder` must be given"),
    ],
)
def test_bad_arguments(change, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        sample(**{"documents": DOCUMENTS, "num_bytes": 100, **change})
    assert not list(tmp_path.iterdir())
