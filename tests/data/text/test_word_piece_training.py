"""WordPiece tokenizers: training, against the reference and the library, and files."""

import collections
import json
import random

import keras_hub
import numpy as np
import pytest
import tokenizers

from tests.reference import word_pieces as reference
from tests.subjects.characters import CORPUS, SPECIAL
from tests.subjects.corpus import token_lists
from tfeff.data import (
    BertTokenizer,
    load_tokenizer,
    save_tokenizer,
    tokenizer_fingerprint,
    train_tokenizer,
    word_starts,
)
from tfeff.data.text import word_piece_training


def train(documents, size, **kwargs):
    return train_tokenizer(documents, size, kind="wordpiece", **kwargs)


@pytest.fixture(scope="module")
def trained(documents):
    return train(documents, 160)


def test_the_pieces_are_those_of_the_reference(documents, trained):
    words = collections.Counter(" ".join(documents[:150]).split())
    expected = reference.train(words, 160, SPECIAL)
    assert train(documents[:150], 160).get_vocabulary() == expected
    # Of all words as often, ties decide which pieces there are.
    names = ["abcd", "bcde", "cdea", "deab", "eabc", "dcba"]
    for size in range(16, 28):
        expected = reference.train(dict.fromkeys(names, 3), size, SPECIAL)
        assert train([" ".join(names * 3)], size).get_vocabulary() == expected


def test_special_tokens(trained):
    assert isinstance(trained, BertTokenizer)
    assert trained.vocabulary_size() == 160
    assert trained.get_vocabulary()[:5] == SPECIAL
    ids = "pad_token_id", "cls_token_id", "sep_token_id", "mask_token_id"
    assert [getattr(trained, name) for name in ids] == [0, 2, 3, 4]
    for text in ("[MASK]", "a [MASK] b", "[PAD]", "[cls][UNK][SEP]"):
        assert not {0, 2, 3, 4} & set(np.asarray(trained(text)).tolist())
    inner = [piece.startswith("##") for piece in trained.get_vocabulary()]
    assert word_starts(trained).tolist() == [not mark for mark in inner]


@pytest.mark.parametrize("lowercase", [True, False])
def test_texts_are_cut_as_the_library_cuts_them(documents, lowercase):
    texts = [*documents, *CORPUS, "don't STOP-it, Ａ ｶﾞ 한 e\u0301 …½"]
    tokenizer = train(texts, 240, lowercase=lowercase)
    pieces = {piece: id for id, piece in enumerate(tokenizer.get_vocabulary())}
    peer = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    peer.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.NFC(),
            tokenizers.normalizers.BertNormalizer(
                lowercase=lowercase, strip_accents=lowercase
            ),
        ]
    )
    peer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    expected = [peer.encode(text, add_special_tokens=False).ids for text in texts]
    assert [list(row) for row in token_lists(tokenizer, texts)] == expected
    cased = [
        piece for piece in pieces if piece not in SPECIAL and piece != piece.lower()
    ]
    assert bool(cased) is not lowercase


def test_equal_documents_give_equal_tokenizers_in_any_order(documents, trained):
    for seed in range(3):
        shuffled = random.Random(seed).sample(documents, len(documents))
        again = train(shuffled, 160)
        assert again.get_vocabulary() == trained.get_vocabulary()
        assert tokenizer_fingerprint(again) == tokenizer_fingerprint(trained)


def test_rare_characters_and_long_words_are_left_out():
    documents = ["plain text " * 500, "plai☃n " + "x" * 101]
    pieces = "".join(train(documents, 24).get_vocabulary())
    assert "☃" not in pieces and "x" in pieces  # The one of "text".
    common = train(["plain text ☃ " * 500], 24).get_vocabulary()
    assert "☃" in common


def test_rare_words_are_dropped_where_there_are_too_many(monkeypatch):
    documents = [f"often more than once {i}" for i in range(50)]
    monkeypatch.setattr(word_piece_training, "_MAX_CHUNKS", 20)
    words = word_piece_training._count_words(documents, True)
    assert len(words) <= 20
    assert {words[word] for word in ("often", "more", "than", "once")} == {50}


def test_sizes_that_do_not_fit_the_documents_say_what_does():
    documents = ["some words here", "and some more words there"]
    with pytest.raises(ValueError, match="vocabulary_size=900.*at most") as caught:
        train(documents, 900)
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert train(documents, largest).vocabulary_size() == largest
    with pytest.raises(ValueError, match=f"at most {largest} "):
        train(documents, largest + 1)
    with pytest.raises(ValueError, match="vocabulary_size=9. .*at least") as caught:
        train(documents, 9)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert train(documents, least).vocabulary_size() == least
    with pytest.raises(ValueError, match=f"at least {least} is needed"):
        train(documents, least - 1)


@pytest.mark.parametrize("documents", [[], [" ", "\n\n"], ["\u200b"]])
def test_no_text(documents):
    with pytest.raises(ValueError, match="`documents` must hold text"):
        train(documents, 50)


def test_unknown_kinds():
    with pytest.raises(ValueError, match="`kind` must be one of.*'bpe'"):
        train_tokenizer(["text"], 50, kind="bpe")


def test_save_and_load(trained, documents, tmp_path):
    path = tmp_path / "a.json"
    kerashub = keras_hub.tokenizers.BertTokenizer([*SPECIAL, "the"], lowercase=True)
    for tokenizer in (trained, kerashub):
        save_tokenizer(tokenizer, path)
        loaded = load_tokenizer(path)
        assert type(loaded) is type(tokenizer)
        assert token_lists(loaded, documents) == token_lists(tokenizer, documents)
        assert tokenizer_fingerprint(loaded) == tokenizer_fingerprint(tokenizer)
        save_tokenizer(loaded, path)  # the same content is no conflict
        path.unlink()


def test_damaged_files(trained, tmp_path):
    path = tmp_path / "cut.json"
    save_tokenizer(trained, path)
    content = path.read_bytes()
    dense = keras_hub.layers.TokenAndPositionEmbedding(2, 2, 2)
    other = {"class_name": type(dense).__name__, "module": "keras_hub", "config": {}}
    lacking = json.loads(content)
    lacking["config"]["vocabulary"].remove("[MASK]")
    cuts = [content[:size] for size in range(1, len(content), 97)]
    for bad in (*cuts, json.dumps(other).encode(), json.dumps(lacking).encode()):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"`path`.*cut\.json"):
            load_tokenizer(path)
