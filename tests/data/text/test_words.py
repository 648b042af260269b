"""Words of texts, in graphs and outside, against the reference."""

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import words as reference
from tests.subjects.characters import FRAGMENTS
from tfeff.data import split_words

PIECES = st.sampled_from([*FRAGMENTS, "@", "#", "U.S.", "J.", "_", "\u00ad", "。", "«"])
TEXTS = st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=4)
SPEC = [tf.TensorSpec([None], tf.string)]
in_graph = tf.function(split_words, input_signature=SPEC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\u2028\u200b", []),
        ("He said: “Don't!”", ["He", "said", ":", "“", "Don't", "!", "”"]),
        ("in the U.S., at 5 p.m.", ["in", "the", "U.S.", ",", "at", "5", "p.m."]),
        ("J. S. Bach's (born 1685).", None),
        ("Mr. Smith paid $2,000.50, or 10%.", None),
        ("@ada likes #maths, @@bob #.", None),
        ("state-of-the-art... 5.", ["state-of-the-art", ".", ".", ".", "5", "."]),
        ("漢字abc、かな。", ["漢", "字", "abc、かな", "。"]),
        ("\u200bAda\u00ad. so\u00adft", ["Ada", ".", "so\u00adft"]),
    ],
)
def test_words_of_texts(text, words):
    found, starts, ends = (rows.to_list()[0] for rows in in_graph([text]))
    found = [word.decode() for word in found]
    expected = reference.split_words(text)
    assert list(zip(found, starts, ends)) == expected
    if words is not None:
        assert found == words
    assert [text[a:b] for a, b in zip(starts, ends)] == found


@pytest.mark.slow
@settings(max_examples=100)
@given(TEXTS)
def test_words_are_those_of_the_reference(texts):
    given_texts = tf.constant(texts, tf.string)
    for split in (in_graph, split_words):
        words, starts, ends = split(given_texts)
        assert starts.dtype == ends.dtype == tf.int32
        rows = zip(words.to_list(), starts.to_list(), ends.to_list(), strict=True)
        found = [
            [(word.decode(), start, end) for word, start, end in zip(*row)]
            for row in rows
        ]
        assert found == [reference.split_words(text) for text in texts]
