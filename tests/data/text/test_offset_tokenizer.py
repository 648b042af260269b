"""Tokens with their characters, in graphs and outside, against the reference."""

import os
import random
import subprocess
import sys
import unicodedata

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import offsets as reference
from tests.subjects.characters import (
    CORPUS,
    FRAGMENTS,
    word_piece_vocabulary,
    word_pieces,
)
from tfeff.data import BertTokenizer, RobertaTokenizer, train_tokenizer
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.data.text.offset_tokenizer import encode_with_offsets, offset_tokenizer

KINDS = ["unigram", "cased", "bert", "kerashub", "trained"]


def make_tokenizer(kind):
    if kind in ("unigram", "cased"):
        lowercase = kind == "unigram"
        return train_tokenizer(CORPUS, vocabulary_size=64, lowercase=lowercase)
    if kind == "trained":
        return train_tokenizer(CORPUS, 150, kind="wordpiece")
    if kind == "bert":
        return word_pieces()
    return keras_hub.tokenizers.BertTokenizer(word_piece_vocabulary(), lowercase=True)


def check(tokenizer, encode, batch):
    """`encode` gives the ids and places of the reference."""
    found = encode(tf.constant(batch, tf.string))
    ids, starts, ends = (rows.to_list() for rows in found)
    assert len(ids) == len(starts) == len(ends) == len(batch)
    for row, expected in enumerate(reference.encode_with_offsets(tokenizer, batch)):
        places = list(zip(starts[row], ends[row]))
        assert (ids[row], places) == expected, batch[row]


@pytest.mark.quick("unigram", "bert")
@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_places_are_those_of_the_reference(kind):
    tokenizer = make_tokenizer(kind)
    tokens = offset_tokenizer(tokenizer)
    spec = [tf.TensorSpec([None], tf.string)]
    in_graph = tf.function(tokens.__call__, input_signature=spec)
    source = random.Random(0)
    batches = [["", "  ", "fox", ""], ["\u200b"], []]
    for _ in range(3):
        batches.append(
            [
                "".join(source.choices(FRAGMENTS, k=source.randrange(40)))
                for _ in range(25)
            ]
        )
    for batch in batches:
        check(tokenizer, tokens, batch)
        check(tokenizer, in_graph, batch)


@pytest.fixture(scope="module", params=KINDS)
def tokens(request):
    return offset_tokenizer(make_tokenizer(request.param))


CHARACTERS = st.characters(exclude_categories=["Cs", "Cn"]) | st.sampled_from(FRAGMENTS)


# SentencePiece's releases differ in which of two equally likely cuts they take.
@pytest.mark.slow
@settings(max_examples=60, derandomize=True)
@given(st.lists(st.lists(CHARACTERS, max_size=30).map("".join), max_size=4))
def test_any_characters(tokens, batch):
    check(tokens.tokenizer, tokens, batch)


@pytest.mark.parametrize("strip_accents", [True, False])
def test_characters_that_become_none_or_several(strip_accents):
    """Vowel signs of two parts, Hangul, and accents that are gone, in one word."""
    letters = "கொள்মোর্കൊള്국각e\u0301İß"
    parts = unicodedata.normalize("NFD", letters.lower())
    pieces = sorted({*letters.lower(), *parts, "மொ", "ள்", "\u1100\u116e"})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = BertTokenizer(
        [*special, *pieces, *(f"##{piece}" for piece in pieces)],
        lowercase=True,
        strip_accents=strip_accents,
    )
    source = random.Random(0)
    words = ["கொள்", "국\u0300\u0300", "মোর্", "കൊള്"]
    words += [
        "".join(source.choices(letters, k=source.randrange(9))) for _ in range(400)
    ]
    check(tokenizer, offset_tokenizer(tokenizer), words)
    decomposed = [unicodedata.normalize("NFD", word) for word in words]
    check(tokenizer, offset_tokenizer(tokenizer), decomposed)
    word = "கொள்" if strip_accents else decomposed[2]
    ((_, places),) = encode_with_offsets(tokenizer, [word])
    parts = [[0, 1], [1, 2], [1, 2], [2, 4]]
    assert places.tolist() == (parts if strip_accents else [[0, 5]] * 4)


@pytest.mark.parametrize("kind", ["bert", "bytes"])
def test_a_block_is_no_space_but_to_sentence_piece(kind):
    """U+2581, the first of the blocks "▁▂▃", by which SentencePiece writes spaces."""
    symbols = [*("<s>", "<pad>", "</s>", "<unk>", "<mask>"), *byte_symbols()]
    ids = {symbol: index for index, symbol in enumerate(symbols)}
    tokenizer = word_pieces() if kind == "bert" else RobertaTokenizer(ids, [])
    ((_, places),) = encode_with_offsets(tokenizer, ["▁▂ ▁"])
    places = places.tolist()
    assert (min(places), max(places)) == ([0, 2 if kind == "bert" else 1], [3, 4])


def test_texts_go_in_batches(monkeypatch):
    tokenizer = make_tokenizer("unigram")
    texts = ["fox", "", "the quick ½", "fox " * 9, "漢"] * 3
    once = list(encode_with_offsets(tokenizer, texts))
    module = "tfeff.data.text.offset_tokenizer"
    monkeypatch.setattr(f"{module}._CHARACTERS_AT_ONCE", 20)
    for rows in (once, list(encode_with_offsets(tokenizer, iter(texts)))):
        expected = reference.encode_with_offsets(tokenizer, texts)
        for (ids, places), (other, pairs) in zip(rows, expected, strict=True):
            assert (ids.tolist(), list(map(tuple, places))) == (other, pairs)
            assert (ids.dtype, places.dtype, places.shape[1]) == (np.int32, np.int32, 2)
    assert list(encode_with_offsets(tokenizer, [])) == []


def test_marks_and_lost_kernels_change_nothing():
    proto = make_tokenizer("unigram").proto
    marked = keras_hub.tokenizers.AlbertTokenizer(
        proto=proto, add_bos=True, add_eos=True
    )
    ((plain, _),) = encode_with_offsets(marked, ["fox"])
    tf.random.set_seed(1)
    ((after, _),) = encode_with_offsets(marked, ["fox"])
    ((ids, _),) = reference.encode_with_offsets(marked, ["fox"])
    assert plain.tolist() == after.tolist() == ids


def test_other_tokenizers_are_refused():
    bytes_alone = keras_hub.tokenizers.ByteTokenizer()
    with pytest.raises(TypeError, match="must be a SentencePiece or WordPiece"):
        offset_tokenizer(bytes_alone)


LOCALE = """
import tensorflow as tf
from tfeff.data.text.bert_tokenizer import BertTokenizer
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "title", "i", "j", "į"]
tokenizer = BertTokenizer(pieces, lowercase=True, strip_accents=False)
for text in ("TITLE", "I J Į Ì", "İ"):
    print([int(id) for id in tokenizer(text)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["tr_TR.UTF-8", "lt_LT.UTF-8"])
def test_the_locale_of_the_process_changes_no_ids(locale):
    """TensorFlow's `lower` makes "tıtle" of TITLE in Turkey."""
    found = [
        subprocess.run(
            [sys.executable, "-c", LOCALE],
            env={**os.environ, "LC_ALL": name},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in ("C", locale)
    ]
    assert found[0] == found[1]
    assert found[0].splitlines()[:2] == ["[5]", "[6, 7, 8, 1]"]
