"""The shards of documents, and that parts of a corpus know theirs alone."""

import itertools

import pytest

from tests.subjects.corpus import make_documents
from tfeff.data.cache.layout import ShardSizes, chunks

SMALL = ShardSizes(first=100, largest=500, shards_of_a_size=3)


def test_shards_begin_where_those_before_them_end():
    sizes = [100] * 3 + [200] * 3 + [400] * 3 + [500] * 20
    starts = [0, *itertools.accumulate(sizes)]
    for offset in range(starts[-1]):
        shard = SMALL.shard_of(offset)
        assert starts[shard] <= offset < starts[shard + 1]


def test_a_terabyte_has_tens_of_thousands_of_shards():
    assert 50_000 < ShardSizes().shard_of(10**12) < 70_000


@pytest.mark.parametrize("cuts", [[], [40], [1, 2, 3, 80, 149]])
def test_parts_have_the_shards_of_the_whole(cuts):
    documents = ["", *make_documents(147, 60), "x" * 5000, "after"]
    whole: dict[int, list[str]] = {}
    for chunk in chunks(documents, SMALL):
        assert (
            chunk.documents == documents[chunk.first_document :][: len(chunk.documents)]
        )
        assert chunk.num_bytes == sum(len(d.encode()) for d in chunk.documents)
        assert chunk.shard not in whole
        whole[chunk.shard] = chunk.documents
    found: dict[int, list[str]] = {}
    for start, end in itertools.pairwise([0, *cuts, len(documents)]):
        offset = sum(len(document.encode()) for document in documents[:start])
        for chunk in chunks(documents[start:end], SMALL, start, offset):
            assert documents[chunk.first_document] == chunk.documents[0]
            found.setdefault(chunk.shard, []).extend(chunk.documents)
    assert found == whole and list(whole) == sorted(whole)
