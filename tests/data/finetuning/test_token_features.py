"""Sentences of words as rows of tokens, and values of tokens back to words."""

import keras_hub
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfeff.data import TokenExamples, token_features, train_tokenizer

NAMES = ("O", "B-X", "I-X")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b"]
TOKENIZER = keras_hub.tokenizers.BertTokenizer(PIECES)


def make(words, labels="numbered", length=8):
    words = tuple(map(tuple, words))
    if labels == "numbered":
        labels = [[(i + j) % 3 for j in range(len(w))] for i, w in enumerate(words)]
    ids = tuple(map(str, range(len(words))))
    return token_features(TokenExamples(words, labels, NAMES, ids), TOKENIZER, length)


def literal_rows(sizes, room):
    """Rows of words, and the row of each word, one after another."""
    rows, first = [], 0
    while True:
        last, used = first, 0
        while last < len(sizes) and used + sizes[last] <= room:
            used += sizes[last]
            last += 1
        rows.append(list(range(first, last)))
        if last == len(sizes):
            break
        begin, passed = first, 0
        while begin < last and (passed < room / 2 or begin == first):
            passed += sizes[begin]
            begin += 1
        first = begin
    home = {}
    for number, row in enumerate(rows):
        for place, word in enumerate(row):
            left = sum(sizes[w] for w in row[:place])
            right = sum(sizes[w] for w in row[place + 1 :])
            if word not in home or min(left, right) > home[word][0]:
                home[word] = min(left, right), number, 1 + left
    return rows, home


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


@settings(max_examples=25)
@given(st.lists(words_of, min_size=1, max_size=3), st.integers(3, 9))
def test_long_sentences_overlap_and_words_count_once(words, length):
    features = make(words, length=length)
    pieces = {"a": [5], "ab": [5, 9], "cab": [7, 8, 9], "caabb": [7, 8, 8, 9, 9]}
    pieces |= {"baaaaaaa": [6] + [8] * 7, "?": [1], "zz": [1]}
    expected, rows_of_words, positions = [], [], []
    for sentence in words:
        tokens = [pieces[word][: length - 2] for word in sentence]
        rows, home = literal_rows([len(t) for t in tokens], length - 2)
        for word in range(len(sentence)):
            _, row, position = home[word]
            rows_of_words.append(len(expected) + row)
            positions.append(position)
        for row in rows:
            ids = [2, *(i for word in row for i in tokens[word]), 3]
            expected.append(ids + [0] * (length - len(ids)))
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
    tokenizer = train_tokenizer(documents, vocabulary_size=11)
    examples = TokenExamples((("a", "\u200b", "b"),), ([0, 1, 2],), NAMES, ("0",))
    features = token_features(examples, tokenizer, 16)
    found = features.of_words(features.inputs["token_ids"])
    assert found[0][1] == tokenizer.token_to_id("[UNK]")


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
