"""Sentences of words as rows of tokens, and values of tokens back to words."""

import math

import keras_hub
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.subjects.byte_pairs import tokenizer as byte_pairs
from tfeff.data import RobertaTokenizer, TokenExamples, token_features, train_tokenizer

NAMES = ("O", "B-X", "I-X")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b"]
TOKENIZER = keras_hub.tokenizers.BertTokenizer(PIECES)


def make(words, labels="numbered", length=8):
    words = tuple(map(tuple, words))
    if labels == "numbered":
        labels = [[(i + j) % 3 for j in range(len(w))] for i, w in enumerate(words)]
    ids = tuple(map(str, range(len(words))))
    return token_features(TokenExamples(words, labels, NAMES, ids), TOKENIZER, length)


def literal_rows(tokens, firsts, room):
    """Parts of a sentence's tokens; of each word's first token, part and position."""
    rows, begin = [], 0
    while True:
        rows.append((begin, min(begin + room, len(tokens))))
        if rows[-1][1] == len(tokens):
            break
        begin += math.ceil(room / 2)
    homes = []
    for first in firsts:
        best = None
        for number, (begin, end) in enumerate(rows):
            context = min(first - begin, end - 1 - first)
            if begin <= first < end and (best is None or context > best[0]):
                best = context, number, 1 + first - begin
        homes.append(best[1:])
    return [tokens[begin:end] for begin, end in rows], homes


@pytest.mark.slow
def test_rows_of_short_sentences():
    features = make([["ab", "c"], ["b"]])
    assert features.inputs["token_ids"].tolist() == [
        [2, 5, 9, 7, 3, 0, 0, 0],
        [2, 6, 3, 0, 0, 0, 0, 0],
    ]
    assert features.inputs["padding_mask"].sum(axis=1).tolist() == [5, 3]
    assert not features.inputs["segment_ids"].any()
    inputs, labels, weights = next(iter(features.dataset(3, shuffle=False)))
    assert weights[:2].numpy().tolist() == [[0, 1, 0, 1, 0, 0, 0, 0], [0, 1] + [0] * 6]
    assert labels[:2].numpy().tolist() == [[0, 0, 0, 1, 0, 0, 0, 0], [0, 1] + [0] * 6]


words_of = st.lists(
    st.sampled_from(["a", "ab", "cab", "caabb", "baaaaaaa", "?", "zz"]), min_size=1
)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(words_of, min_size=1, max_size=3), st.integers(3, 9))
def test_long_sentences_overlap_and_words_count_once(words, length):
    features = make(words, length=length)
    pieces = {"a": [5], "ab": [5, 9], "cab": [7, 8, 9], "caabb": [7, 8, 8, 9, 9]}
    pieces |= {"baaaaaaa": [6] + [8] * 7, "?": [1], "zz": [1]}
    expected, rows_of_words, positions = [], [], []
    for sentence in words:
        tokens = [pieces[word] for word in sentence]
        firsts = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
        rows, homes = literal_rows(sum(tokens, []), firsts, length - 2)
        rows_of_words += [len(expected) + row for row, _ in homes]
        positions += [position for _, position in homes]
        for ids in rows:
            expected.append([2, *ids, 3] + [0] * (length - 2 - len(ids)))
    assert features.inputs["token_ids"].tolist() == expected
    assert features.rows_of_words.tolist() == rows_of_words
    assert features.positions_of_words.tolist() == positions
    targets, weights = [], []
    for _, labels, weight in features.dataset(2, shuffle=False, repeat=False):
        targets.append(labels.numpy())
        weights.append(weight.numpy())
    targets, weights = np.concatenate(targets), np.concatenate(weights)
    assert weights.sum() == sum(map(len, words))
    back = features.of_words(targets)
    for row, right in zip(back, features.examples.labels):
        assert row.tolist() == right.tolist()


def test_of_two_equal_contexts_the_earlier_counts():
    features = make([["a"] * 9], length=8)
    # Of tokens 0 to 5 and of 3 to 8: token 4 has one behind it in the first row, and
    # one before it in the second.
    assert features.rows_of_words.tolist() == [0] * 5 + [1] * 4
    assert features.positions_of_words.tolist() == [1, 2, 3, 4, 5, 3, 4, 5, 6]


@pytest.mark.slow
def test_long_sentences_are_counted():
    for length, count in ((5, 2), (7, 1), (12, 0)):
        features = make([["a"] * 9, ["caabb"[:4], "?"], ["b"]], length=length)
        assert features.num_divided == count, length
        assert count or len(features) == 3


@pytest.mark.slow
def test_values_of_several_axes_and_pad_to_longest():
    features = make([["a"] * 9, ["b"]])
    logits = np.random.default_rng(0).normal(size=(len(features) + 1, 8, 3))
    found = features.of_words(logits)
    assert [row.shape for row in found] == [(9, 3), (1, 3)]
    assert (found[1][0] == logits[len(features) - 1, 1]).all()
    with pytest.raises(ValueError, match=r"at least .* rows of .* tokens.*\(1, 8\)"):
        features.of_words(np.zeros((1, 8)))
    short = make([["a"], ["b", "c"]])
    (batch,) = short.dataset(2, shuffle=False, repeat=False, pad_to_longest=True)
    assert [x.shape[1] for x in (batch[0]["token_ids"], *batch[1:])] == [4, 4, 4]


def test_order_is_that_of_the_seed():
    features = make([["a"] * n for n in range(1, 6)], length=16)

    def lengths(seed):
        batches = features.dataset(5, seed, repeat=False)
        return [batch[0]["padding_mask"].numpy().sum(1).tolist() for batch in batches]

    assert lengths(1) == lengths(1) and sorted(lengths(1)[0]) == [3, 4, 5, 6, 7]
    assert len({str(lengths(seed)) for seed in range(6)}) > 1


def test_without_labels():
    features = make([["a", "b"]], labels=None)
    ((inputs,),) = features.dataset(1, repeat=False)
    assert set(inputs) == {"token_ids", "segment_ids", "padding_mask"}


def test_words_without_tokens_are_unknown():
    documents = ["a b ab ba"] * 9
    tokenizer = train_tokenizer(documents, vocabulary_size=10)
    examples = TokenExamples((("a", "\u200b", "b"),), ([0, 1, 2],), NAMES, ("0",))
    features = token_features(examples, tokenizer, 16)
    found = features.of_words(features.inputs["token_ids"])
    assert found[0][1] == tokenizer.token_to_id("[UNK]")


@pytest.mark.slow
def test_roberta_reads_a_space_before_each_word():
    words = (("Ada", "wrote"), ("it",))
    examples = TokenExamples(words, None, NAMES, ("0", "1"))
    tokenizer = byte_pairs(True)
    vocabulary = {piece: id for id, piece in enumerate(tokenizer.get_vocabulary())}
    plain = RobertaTokenizer(vocabulary, tokenizer.get_merges())
    assert tokenizer.add_prefix_space and not plain.add_prefix_space
    text = list(tokenizer(["Ada wrote"])[0])
    for each in (tokenizer, plain):
        row = token_features(examples, each, 16).inputs["token_ids"][0].tolist()
        assert row[1 : 1 + len(text)] == text
        assert row[1 + len(text)] == each.sep_token_id


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0.9, 1.7], TypeError, "`labels` must be integers.*float64"),
        (np.array([2**32, 1]), ValueError, "`labels` must fit into int32.*4294967296"),
        ([True, False], TypeError, "`labels` must be integers.*bool"),
        ([0, len(NAMES)], ValueError, "`labels` must be from 0"),
    ],
)
def test_labels_that_are_no_indices(labels, error, message):
    with pytest.raises(error, match=message):
        TokenExamples((("a", "b"),), (labels,), NAMES, ("0",))


def test_arguments():
    examples = TokenExamples((("a",),), ([0],), NAMES, ("0",))
    with pytest.raises(TypeError, match="`examples` must be `TokenExamples`"):
        token_features([("a",)], TOKENIZER, 8)
    with pytest.raises(ValueError, match="`sequence_length` must be .* at least 3"):
        token_features(examples, TOKENIZER, 2)
    with pytest.raises(TypeError, match="`tokenizer`"):
        token_features(examples, "bert", 8)
    with pytest.raises(ValueError, match="`examples` must hold sentences"):
        token_features(TokenExamples((), None, NAMES, ()), TOKENIZER, 8)
