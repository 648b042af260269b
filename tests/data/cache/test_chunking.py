"""Packing: no token is lost, no piece crosses a document."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfeff.data.cache.chunking import (
    frame_pieces,
    join_documents,
    piece_documents,
    piece_lengths,
)

DOCUMENTS = st.lists(st.lists(st.integers(5, 99), max_size=20), max_size=8)


def flatten(documents):
    lengths = np.array([len(d) for d in documents], np.int64)
    return np.array([t for d in documents for t in d], np.int32), lengths


@given(DOCUMENTS, st.integers(1, 9))
def test_pieces_are_those_of_a_loop(documents, capacity):
    expected = [
        (number, document[start : start + capacity])
        for number, document in enumerate(documents)
        for start in range(0, len(document), capacity)
    ]
    ids, lengths = flatten(documents)
    pieces = piece_lengths(lengths, capacity)
    assert pieces.tolist() == [len(piece) for _, piece in expected]
    numbers = piece_documents(lengths, capacity)
    assert numbers.tolist() == [number for number, _ in expected]
    if expected:
        width = max(pieces) + 3
        rows = [[n, 2, *p, 3] + [0] * (width - len(p) - 3) for n, p in expected]
        assert frame_pieces(ids, pieces, numbers, 2, 3).tolist() == rows


@given(DOCUMENTS)
def test_joining_puts_separators_between_documents_alone(documents):
    expected = []
    for document in filter(None, documents):
        expected += ([3] if expected else []) + document
    ids, lengths = join_documents(*flatten(documents), separator=3)
    assert ids.tolist() == expected
    assert lengths.tolist() == ([len(expected)] if expected else [])
