"""Rows of texts, pairs and options, and the batches that are made of them."""

import random

import numpy as np
import pytest

from tests.reference.text_rows import padded, row
from tests.subjects.corpus import token_lists
from tfeff.data import (
    ChoiceExamples,
    Question,
    TextExamples,
    make_span_features,
    text_features,
)

CLS, SEP, PAD = 2, 3, 0


def texts(documents, pairs=True, labels=None, count=40):
    source = random.Random(1)
    first = tuple(" ".join(d.split()[: source.randrange(12)]) for d in documents)
    second = tuple(source.sample(documents, len(documents))) if pairs else None
    return TextExamples(
        first[:count],
        second and second[:count],
        labels,
        tuple(map(str, range(count + 1))),
        tuple(range(count)),
    )


@pytest.mark.parametrize("length", [5, 6, 17, 400])
@pytest.mark.parametrize("pairs", [False, True])
def test_rows_are_cut_from_the_longer_text(documents, tokenizer, length, pairs):
    examples = texts(documents, pairs)
    first = token_lists(tokenizer, list(examples.first))
    second = token_lists(tokenizer, list(examples.second)) if pairs else [None] * 40
    rows = [row(CLS, SEP, a, b, length) for a, b in zip(first, second)]
    features = text_features(examples, tokenizer, length)
    whole = [row(CLS, SEP, a, b, 1000) for a, b in zip(first, second)]
    assert features.num_cut == sum(a != b for a, b in zip(rows, whole))
    inputs = features.inputs
    for name, expected in padded(rows, length, PAD).items():
        assert inputs[name].dtype == np.int32
        np.testing.assert_array_equal(inputs[name], expected)


@pytest.mark.slow
def test_options_fill_gaps_and_only_passages_are_cut(documents, tokenizer):
    questions = ("who is _ there", "what was it", "__ of _")
    options = (("he", "she", ""), ("its up", "my two", "a \\1"), ("all", "her", "in"))
    examples = ChoiceExamples(
        tuple(documents[:3]), questions, options, None, ("A", "B", "C"), tuple("xyz")
    )
    asked = [
        *("who is he there", "who is she there", "who is  there"),
        *("what was it its up", "what was it my two", "what was it a \\1"),
        *("all of all", "her of her", "in of in"),
    ]
    second = token_lists(tokenizer, asked)
    longest = max(map(len, second))
    for length in (longest + 4, 60):
        features = text_features(examples, tokenizer, length)
        passages = token_lists(tokenizer, documents[:3])
        rows = [
            row(CLS, SEP, passages[i // 3], second[i], length, cut="first")
            for i in range(9)
        ]
        whole = [len(passages[i // 3]) + len(second[i]) + 3 for i in range(9)]
        is_cut = np.reshape(whole, (3, 3)) > length
        assert features.num_cut == is_cut.any(axis=1).sum()
        for name, expected in padded(rows, length, PAD).items():
            expected = np.reshape(expected, (3, 3, length))
            np.testing.assert_array_equal(features.inputs[name], expected)
    (batch,) = features.dataset(2, shuffle=False).take(1)
    np.testing.assert_array_equal(
        batch[0]["token_ids"], features.inputs["token_ids"][:2]
    )
    with pytest.raises(
        ValueError, match=f"at least {longest + 4} for question '[xyz]'"
    ):
        text_features(examples, tokenizer, longest + 3)


def unpadded(dataset):
    """(ids, label) of each row that has weight, and the number of those without."""
    found, empty = [], 0
    for inputs, labels, weights in dataset.as_numpy_iterator():
        for r, weight in enumerate(weights):
            visible = inputs["padding_mask"][r] == 1
            if weight == 0:
                assert not visible.any() and labels[r] == 0
                empty += 1
            else:
                assert weight == 1
                found.append((tuple(inputs["token_ids"][r][visible]), int(labels[r])))
    return found, empty


def test_each_epoch_has_each_example_once_in_an_order_of_its_own(documents, tokenizer):
    examples = texts(documents, labels=np.arange(1, 41, dtype="int32"))
    features = text_features(examples, tokenizer, 30)
    rows = features.inputs
    expected = [
        (tuple(ids[mask == 1]), i + 1)
        for i, (ids, mask) in enumerate(zip(rows["token_ids"], rows["padding_mask"]))
    ]
    in_order = features.dataset(12, shuffle=False, repeat=False)
    assert unpadded(in_order) == (expected, 8)
    assert len(in_order) == 4
    assert in_order.element_spec[0]["segment_ids"].shape == (12, 30)
    shorter = features.dataset(12, shuffle=False, repeat=False, pad_to_longest=True)
    assert unpadded(shorter) == (expected, 8)
    lengths = [inputs["token_ids"].shape[1] for inputs, _, _ in shorter]
    assert lengths == [
        max(len(ids) for ids, _ in expected[i : i + 12]) for i in range(0, 40, 12)
    ]
    # Three epochs without a gap, of another order each, the same at every reading.
    orders = []
    for seed in (0, 0, 1):
        found, empty = unpadded(features.dataset(12, seed).take(10))
        assert len(found) == 120 and empty == 0
        epochs = [found[i : i + 40] for i in (0, 40, 80)]
        for epoch in epochs:
            assert sorted(epoch) == sorted(expected) and epoch != expected
        assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
        orders.append(found)
    assert orders[0] == orders[1] != orders[2]


def test_without_labels_there_are_inputs_alone(documents, tokenizer):
    features = text_features(texts(documents), tokenizer, 20)
    assert features.labels is None and len(features) == 40
    for batch in features.dataset(7, repeat=False, shuffle=False).take(1):
        assert isinstance(batch, tuple) and len(batch) == 1


def test_bad_arguments_are_named(documents, tokenizer):
    examples = texts(documents)
    with pytest.raises(TypeError, match="`examples` must be .*list"):
        text_features(list(examples.first), tokenizer, 20)
    with pytest.raises(ValueError, match="`examples` must hold examples"):
        text_features(texts(documents, count=0), tokenizer, 20)
    with pytest.raises(
        ValueError, match="`sequence_length` must be .*sequence_length=4"
    ):
        text_features(examples, tokenizer, 4)
    with pytest.raises(ValueError, match="`batch_size` must be .*batch_size=0"):
        text_features(examples, tokenizer, 20).dataset(0)


def test_a_sample_is_of_whole_examples_in_order(documents):
    labels = np.arange(40, dtype="int32")
    examples = texts(documents, labels=labels)
    sample = examples.sample(10, seed=3)
    rows = sample.labels.tolist()
    assert len(sample) == 10 and rows == sorted(set(rows)) == list(sample.ids)
    assert sample.first == tuple(examples.first[row] for row in rows)
    assert sample.second == tuple(examples.second[row] for row in rows)
    assert sample.label_names == examples.label_names
    assert rows == examples.sample(10, seed=3).labels.tolist()
    assert rows != examples.sample(10, seed=4).labels.tolist() != list(range(10))
    assert texts(documents, pairs=False).sample(3).labels is None
    with pytest.raises(ValueError, match="`count` must be .*at most 40.*count=41"):
        examples.sample(41)


def test_columns_that_do_not_fit(documents):
    first, labels = tuple(documents[:3]), np.array([0, 1, 1])
    examples = TextExamples(first, None, [0, 1, 1], ("0", "1"), tuple("abc"))
    assert examples.labels.tolist() == [0, 1, 1]
    TextExamples(first, None, labels, ("0", "1"), tuple("abc"))
    labels[0] = 1  # The caller's own array is left as it is.
    for second, labels, message in (
        (first[:1], None, r"equally long. Received: \{'first': 3, 'second': 1"),
        (None, np.array([0, 1]), "'labels': 2"),
        (None, np.array([0, 1, 2]), r"`labels` must be from 0 to 1.*Received: 2 at 2"),
    ):
        with pytest.raises(ValueError, match=message):
            TextExamples(first, second, labels, ("0", "1"), tuple("abc"))
    for labels in ([0.5, 1.0, 0.0], [0, 1, None], np.array([np.nan, 1.0, 1.0])):
        with pytest.raises(TypeError, match="`labels` must be integers"):
            TextExamples(first, None, labels, ("0", "1"), tuple("abc"))
    ratings = TextExamples(first, None, np.array([0.5, 1.0, 0.0]), None, tuple("abc"))
    assert ratings.labels.tolist() == [0.5, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"`options` must be equally many.*\[2, 3\]"):
        ChoiceExamples(
            *(first[:2], ("a", "b"), (("c", "d"), ("e", "f", "g"))),
            *(None, ("A", "B", "C"), ("x", "y")),
        )
    with pytest.raises(ValueError, match=r"`spans` must be within the 5 characters"):
        Question("q", "who?", "a wall"[:5], ("x",), ((5, 6),))


def test_what_a_notebook_shows(documents, tokenizer):
    features = text_features(texts(documents), tokenizer, 17)
    assert repr(features) == "<TextFeatures of 40 rows: sequence_length=17>"
    question = Question("a", "what", "the small cat")
    windows = make_span_features([question], tokenizer, 16)
    shown = "<SpanFeatures of 1 windows: 1 questions, sequence_length=16>"
    assert repr(windows) == shown
