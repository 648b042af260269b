"""Byte-level BPE in graphs: ids of the `tokenizers` library, offsets, and its uses."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf
import tokenizers
from tokenizers import models, pre_tokenizers

import tfeff
from tests.subjects.byte_pairs import SPECIAL, library, tokenizer
from tests.subjects.characters import CORPUS, FRAGMENTS
from tfeff.data import RobertaTokenizer
from tfeff.data.finetuning.packing import pack, separated
from tfeff.data.pretraining import word_masking
from tfeff.data.text import roberta_tokenizer
from tfeff.data.text.byte_pairs import byte_symbols, merge
from tfeff.data.text.offset_tokenizer import encode_with_offsets
from tfeff.data.text.pieces import spelled_pieces

HOSTILE = ["'s", "'ll", "'re", "' ", "''", "\r\n", "   ", "aaaa", "\u3000", "\x85"]
HOSTILE += ["👩‍👩‍👧", "\ufeff", "𝔘", "\U000323af", "日本", "１", "²", "ǅ", "zzzz"]


def texts(count=1000):
    generator = random.Random(0)
    parts = FRAGMENTS + HOSTILE
    return ["", " ", "a", *CORPUS] + [
        "".join(generator.choices(parts, k=generator.randrange(1, 30)))
        for _ in range(count)
    ]


@pytest.mark.quick("True")
@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_the_ids_are_those_of_the_library(add_prefix_space):
    rows = texts()
    expected = [e.ids for e in library(add_prefix_space).encode_batch(rows)]
    found = tokenizer(add_prefix_space).tokenize(rows).to_list()
    for text, row, other in zip(rows, found, expected, strict=True):
        assert row == other, text


@pytest.mark.slow
def test_every_character():
    rows = [
        "".join(f"a{chr(code)} '{chr(code)}" for code in range(start, start + 512))
        for start in [*range(0, 0xD800, 512), *range(0xE000, 0x20000, 512)]
    ]
    expected = [e.ids for e in library().encode_batch(rows)]
    assert tokenizer().tokenize(rows).to_list() == expected


def merges_of(vocabulary, merges):
    pieces = [*SPECIAL[:3], SPECIAL[4], *byte_symbols(), *vocabulary]
    ids = {piece: id for id, piece in enumerate(pieces)}
    reference = tokenizers.Tokenizer(
        models.BPE(ids, [tuple(rule.split(" ")) for rule in merges])
    )
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return RobertaTokenizer(ids, merges), reference


def test_merges_of_one_piece_by_several_rules():
    # A product whose own rule comes before the one that makes it.
    vocabulary = ["ab", "bc", "abc", "abcab", "aa", "aaa"]
    merges = ["a b", "abc ab", "b c", "ab c", "a bc", "a a", "aa a"]
    found, reference = merges_of(vocabulary, merges)
    generator = random.Random(0)
    rows = ["".join(generator.choices("abc", k=k % 40)) for k in range(300)]
    expected = [e.ids for e in reference.encode_batch(rows)]
    assert found.tokenize(rows).to_list() == expected


def test_long_words_and_bytes_that_are_not_utf_8():
    row = "".join(random.Random(0).choices("abcdefgh", k=3000))
    assert tokenizer().tokenize(row).numpy().tolist() == library().encode(row).ids
    # Such a long word is cut, as its merges would take minutes.
    for sizes in ([4000], [4000, 1], [4000, 4000, 3]):
        rows = ["".join(random.Random(1).choices("abcdefgh", k=k)) for k in sizes]
        expected = [id for row in rows for id in library().encode(row).ids]
        assert tokenizer().tokenize("".join(rows)).numpy().tolist() == expected
    invalid = tokenizer().tokenize(tf.constant([b"a\xffb", b"\xe3\x81"]))
    expected = [library().encode(text).ids for text in ("a\ufffdb", "\ufffd")]
    assert invalid.to_list() == expected


@pytest.mark.slow
def test_long_words_are_merged_apart(monkeypatch):
    """Each round is over all words, and a long one has thousands of rounds."""
    generator = random.Random(2)
    sizes = [1, 64, 65, 5, 900, 3, 63]
    words = ["".join(generator.choices("abcdefgh", k=k)) for k in sizes]
    rounds = []

    def counted(symbols, word, rules):
        rounds.append(np.bincount(word).tolist())
        return merge(symbols, word, rules)

    with monkeypatch.context() as patch:
        patch.setattr(roberta_tokenizer, "merge", counted)
        tokenizer()._encode(tf.constant(["\n".join(words)]))
    assert [[size > 64 for size in sizes] for sizes in rounds] == [
        [False] * len(rounds[0]),
        [True, True],
    ]
    encode = tf.function(tokenizer().tokenize)
    for row in (words, words[:2], words[2:3], ["a"], []):
        text = "\n".join(row)  # A line feed is a word, and no part of the next.
        ids = encode(tf.constant([text, "", text]))
        expected = library().encode(text).ids
        assert ids.to_list() == [expected, [], expected]


def test_offsets_are_those_of_the_library():
    for prefix in (False, True):
        rows = [text for text in texts(200) if "\x00" not in text]
        encoded = encode_with_offsets(tokenizer(prefix), rows)
        reference = library(prefix)
        for text, (ids, offsets) in zip(rows, encoded, strict=True):
            expected = reference.encode(text)
            assert ids.tolist() == expected.ids
            assert len(offsets) == len(ids)
            for (start, end), (first, last), piece in zip(
                offsets, expected.offsets, expected.tokens
            ):
                if piece == "Ġ":  # White space alone is empty.
                    continue
                # The library's cover the space before a word; ours do not.
                part = text[first:last]
                if part.isascii() and part.isprintable() and part.strip():
                    assert text[start:end] == part.strip(), (text, part)
                assert 0 <= start <= end <= len(text)
    ((ids, offsets),) = encode_with_offsets(tokenizer(), ["x 🙂 y"])
    covered = {(int(start), int(end)) for start, end in offsets if start < end}
    assert covered == {(0, 1), (2, 3), (4, 5)}  # All bytes of 🙂 cover it.


@pytest.mark.slow
def test_settings_and_detokenization():
    config = tokenizer(True).get_config()
    assert config["add_prefix_space"] is True
    again = RobertaTokenizer.from_config(
        config
        | dict(
            vocabulary={p: i for i, p in enumerate(tokenizer(True).get_vocabulary())},
            merges=tokenizer(True).get_merges(),
        )
    )
    assert again("a b").numpy().tolist() == tokenizer(True)("a b").numpy().tolist()
    plain = tokenizer()
    assert plain.detokenize(plain.tokenize("It's 日本 🙂")) == "It's 日本 🙂"
    assert plain.detokenize([plain.tokenize("a").numpy().tolist(), []]) == ["a", ""]
    for wrong in ([-1], [[0], [1, 9999]], np.array([[0, 9999]]), tf.constant([-1])):
        with pytest.raises(ValueError, match="`inputs` must be ids from 0 to"):
            plain.detokenize(wrong)
    model = json.loads(library().to_str())["model"]
    padded = RobertaTokenizer(model["vocab"], model["merges"], sequence_length=4)
    assert padded.tokenize(["a"]).numpy().tolist() == [[model["vocab"]["a"], 1, 1, 1]]


def test_words_begin_with_white_space():
    starts = tfeff.data.word_starts(tokenizer())
    spelled = spelled_pieces(tokenizer())
    assert [text for text, is_start in zip(spelled, starts) if is_start] == [
        text for text in spelled if text.startswith(tuple(" \t\n\v\f\r"))
    ]
    assert 0 < starts.sum() < len(starts)
    ids = tokenizer().tokenize(["alpha beta\ngamma\tdelta"]).numpy()
    units = word_masking.words(ids, np.zeros(ids.shape, bool), starts).numpy()
    words = [ids[units == unit].tolist() for unit in range(units.max() + 1)]
    assert tokenizer().detokenize(words) == ["alpha", " beta", "\ngamma", "\tdelta"]


def test_rows_have_two_separators_and_one_segment():
    cls, pad, sep = 0, 1, 2
    first, second = tf.ragged.constant([[9], [8] * 9]), tf.ragged.constant([[7], [6]])
    rows, starts = pack(first, second, tokenizer(), 8)
    assert rows.to_list() == [
        [cls, 9, sep, sep, 7, sep],
        [cls, 8, 8, 8, sep, sep, 6, sep],
    ]
    assert starts.numpy().tolist() == [6, 8]
    rows, starts = pack(first, second, tokenizer(), 8, keep="second")
    assert rows.to_list()[1] == [cls, 8, 8, 8, sep, sep, 6, sep]
    assert separated(first, tokenizer()).to_list()[0] == [9, sep]
    questions = [
        tfeff.data.Question("q", "Who is it?", "A fox, the fox.", spans=((2, 5),))
    ]
    features = tfeff.data.make_span_features(questions, tokenizer(), 40)
    (row,), (count,) = features.token_ids, features.padding_mask.sum(axis=1)
    ids = [tokenizer().tokenize(t).numpy().tolist() for t in ("Who is it?",)]
    begin = features.passage_positions[0]
    assert row[:begin].tolist() == [cls, *ids[0], sep, sep]
    assert row[count - 1] == sep and (row[count:] == pad).all()
    assert not features.segment_ids.any()
    offsets = features.window_offsets(0)
    start, end = features.start_positions[0], features.end_positions[0]
    assert (offsets[start - begin][0], offsets[end - begin][1]) == (2, 5)


def test_a_cache(tmp_path):
    cache = tfeff.data.build_cache(CORPUS, tokenizer(), tmp_path / "cache", 32)
    batches = cache.batches(tfeff.data.MaskedTokens(), batch_size=2)
    inputs, _, _ = next(iter(batches))
    assert (np.array(inputs["token_ids"])[:, 0] == 0).all()


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(vocabulary={"a": 0, "b": 2}), "must have the ids 0 to V - 1"),
        (dict(vocabulary={"a": 0}), "a piece for each of the 256 bytes"),
        (dict(vocabulary="x"), "`vocabulary` must be a mapping of pieces to ids"),
        (dict(vocabulary=["a"]), "`vocabulary` must be a mapping of pieces to ids"),
        (dict(vocabulary={"a": None}), "integers as ids. Received: None for 'a'"),
        (dict(vocabulary={"a": 1.5}), "integers as ids. Received: 1.5 for 'a'"),
        (dict(vocabulary={1: 0}), "`vocabulary` must have strings as pieces"),
        (dict(sequence_length=-1), "`sequence_length` must be an integer"),
        (dict(sequence_length="x"), "`sequence_length` must be an integer"),
        (dict(merges=5), "`merges` must be rules of two pieces each"),
        (dict(merges="a b"), "`merges` must be rules of two pieces each"),
        (dict(merges=[5]), "`merges` must be rules of two pieces each"),
        (dict(merges=["a b c"]), "of two pieces each"),
        (dict(merges=["q q"]), "of pieces in `vocabulary`.*'q' 'q'"),
        (dict(merges=["a b", ("a", "b")]), "each rule once"),
        (dict(mask_token="[MASK]"), r"Cannot find special token"),
    ],
)
def test_bad_arguments(change, message):
    pieces = [*SPECIAL, *byte_symbols(), "ab"]
    arguments = dict(vocabulary={p: i for i, p in enumerate(pieces)}, merges=["a b"])
    RobertaTokenizer(**arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        RobertaTokenizer(**(arguments | change))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[5.7]], "integers. .*float64"),
        (np.array([np.nan]), "integers. .*float64"),
        (np.array([300]), "ids from 0 to .* Received: 300"),
        (np.array([-1]), "ids from 0 to .* Received: -1"),
        (np.array([2**40]), "fit into int32"),
        ("a", "integers"),
        (np.array([None]), "integers"),
    ],
)
def test_only_ids_become_texts(ids, message):
    pieces = {p: i for i, p in enumerate([*SPECIAL, *byte_symbols(), "ab"])}
    tokenizer = RobertaTokenizer(pieces, ["a b"])
    with pytest.raises((TypeError, ValueError), match=f"`inputs` must .*{message}"):
        tokenizer.detokenize(np.asarray(ids) if isinstance(ids, list) else ids)
