"""Pairs from a cache, together with words, n-grams and orders from it."""

import itertools

import numpy as np
import pytest

import tfeff
from tests.subjects.corpus import token_lists
from tfeff.data import (
    MaskedTokens,
    PermutedTokens,
    SentencePairs,
    build_cache,
    word_starts,
)
from tfeff.data.cache import layout

CLS, SEP = 2, 3
T = 20


@pytest.fixture(scope="module")
def cache(documents, tokenizer, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))
        path = tmp_path_factory.mktemp("pairs") / "cache"
        return build_cache(documents, tokenizer, path, T, num_threads=1, progress=False)


@pytest.fixture(scope="module")
def texts(documents, tokenizer):
    """(document, tokens) of every sequence, in order."""
    return [
        (number, tuple(ids[start : start + T - 2]))
        for number, ids in enumerate(token_lists(tokenizer, documents))
        for start in range(0, len(ids), T - 2)
    ]


def examples(dataset, count=None):
    """Single examples as dictionaries of arrays, inputs, labels and weights in one."""
    result = []
    for inputs, labels, weights in itertools.islice(dataset, count):
        parts = {
            **inputs,
            **{f"label_{name}": value for name, value in labels.items()},
            **{f"weight_{name}": value for name, value in weights.items()},
        }
        parts = {name: value.numpy() for name, value in parts.items()}
        size = len(parts["token_ids"])
        result += [{n: v[i] for n, v in parts.items()} for i in range(size)]
    return result


def parts(example):
    """(A, B) of a pair; checks its frame, segments and padding. B may be None."""
    ids = example["token_ids"][example["padding_mask"] == 1].tolist()
    assert not example["token_ids"][len(ids) :].any()
    assert not example["padding_mask"][len(ids) :].any()
    assert ids[0] == CLS and ids[-1] == SEP
    middle = ids.index(SEP)
    segments = [0] * (middle + 1) + [1] * (len(ids) - middle - 1)
    assert example["segment_ids"].tolist() == segments + [0] * (T - len(ids))
    first, second = ids[1:middle], ids[middle + 1 : -1]
    assert first and SEP not in second
    if middle == len(ids) - 1:
        return tuple(first), None
    assert second
    return tuple(first), tuple(second)


def assert_same(some, others):
    assert len(some) == len(others)
    for one, other in zip(some, others):
        assert set(one) == set(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def check_half(labels):
    assert abs(np.mean(labels) - 0.5) < 5 * 0.5 / np.sqrt(len(labels))


@pytest.mark.quick("False")
@pytest.mark.parametrize("words", [True, False])
def test_order(cache, texts, tokenizer, words):
    settings = {"tokenizer": tokenizer} if words else {}
    starts = word_starts(tokenizer)
    swapped, cuts = [], set()
    for seed in range(2):
        dataset = cache.batches(
            SentencePairs(masked=None),
            8,
            seed,
            shuffle=False,
            repeat=False,
            **settings,
        )
        found = examples(dataset)
        assert len(found) == -(-len(texts) // 8) * 8
        for _, filling in zip(range(len(texts), len(found)), reversed(found)):
            assert not any(value.any() for value in filling.values())
        for (_, text), example in zip(texts, found):
            text = text[: T - 3]
            borders = [
                place
                for place in range(1, len(text))
                if not words or starts[text[place]]
            ]
            first, second = parts(example)
            label, weight = example["label_sentence"], example["weight_sentence"]
            assert weight == bool(borders)
            if not borders:
                assert (first, second, label) == (text, None, 0)
                continue
            ordered = (second, first) if label else (first, second)
            assert ordered[0] + ordered[1] == text
            assert len(ordered[0]) in borders
            swapped.append(label)
            if len(text) == T - 3 and not words:
                cuts.add(len(ordered[0]))
    check_half(swapped)
    assert words or cuts == set(range(1, T - 3))


def test_next(cache, texts, tokenizer):
    """A wrong B is a piece of another document, a right one what follows."""
    starts = word_starts(tokenizer)
    of_piece = {}
    for number, text in texts:
        for start, end in itertools.combinations(range(len(text) + 1), 2):
            of_piece.setdefault(text[start:end], set()).add(number)
    labels, lengths = [], {0: [], 1: []}
    for seed in range(2):
        found = examples(
            cache.batches(
                SentencePairs("next", masked=None),
                8,
                seed,
                tokenizer=tokenizer,
                shuffle=False,
                repeat=False,
            )
        )
        for (number, text), example in zip(texts, found):
            text = text[: T - 3]
            first, second = parts(example)
            if not example["weight_sentence"]:
                continue
            label = example["label_sentence"]
            assert text[: len(first)] == first and starts[text[len(first)]]
            assert len(second) <= len(text) - len(first)
            if label:
                assert of_piece[second] - {number}
                if len(second) > 9:  # so long a piece is in one document alone
                    assert number not in of_piece[second]
            else:
                assert first + second == text
            labels.append(label)
            lengths[label].append(len(second))
    check_half(labels)
    assert abs(np.mean(lengths[0]) - np.mean(lengths[1])) < 1


@pytest.mark.slow
def test_masks_on_top(cache, tokenizer):
    """Masks hide tokens of the same pairs; M = round(0.3 · 17)."""
    settings = {"seed": 5, "tokenizer": tokenizer, "repeat": False}
    plain = examples(cache.batches(SentencePairs(masked=None), 8, **settings))
    pairs = SentencePairs(masked=MaskedTokens(0.3, "ngram"))
    masked = examples(cache.batches(pairs, 8, **settings))
    assert len(masked) == len(plain)
    assert sum(e["weight_masked_lm"].sum() for e in masked) > 2 * len(plain)
    for one, other in zip(plain, masked):
        assert other["mask_positions"].shape == (5,)
        used = other["weight_masked_lm"] == 1
        ids = other["token_ids"].copy()
        ids[other["mask_positions"][used]] = other["label_masked_lm"][used]
        np.testing.assert_array_equal(ids, one["token_ids"])
        for name in ("segment_ids", "label_sentence", "weight_sentence"):
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.slow
def test_function_of_seed_and_example_number(cache):
    """Across the end of an epoch, in other batches, and when batches are skipped."""
    for kind in ("order", "next"):
        count = cache.num_sequences // 30 + 4
        whole = examples(cache.batches(SentencePairs(kind), 30, 3), count)
        parted = cache.batches(SentencePairs(kind), 70, 3)
        assert_same(examples(parted, 6), whole[:420])
        later = cache.batches(SentencePairs(kind), 30, 3, skip_batches=count - 3)
        assert_same(examples(later, 3), whole[-90:])
        other = examples(cache.batches(SentencePairs(kind), 30, 4), 1)
        assert any(
            (a["token_ids"] != b["token_ids"]).any() for a, b in zip(whole, other)
        )


@pytest.mark.slow
def test_two_documents_suffice(tokenizer, tmp_path):
    """Nearly half of the pairs are wrong even if there is but one other piece."""
    documents = ["the of and a to in is was", "him been has when who will no more"] * 2
    cache = build_cache(documents[:2], tokenizer, tmp_path / "c", progress=False)
    pairs = SentencePairs("next", masked=None)
    found = examples(cache.batches(pairs, 50, tokenizer=tokenizer), 4)
    left, right = (set(ids) for ids in token_lists(tokenizer, documents[:2]))
    for example in found:
        first, second = (set(part) for part in map(list, long_parts(example)))
        other = right if first <= left else left
        assert (second <= other) == example["label_sentence"]
    check_half([example["label_sentence"] for example in found])


def long_parts(example):
    ids = example["token_ids"][example["padding_mask"] == 1].tolist()
    middle = ids.index(SEP)
    return ids[1:middle], ids[middle + 1 : -1]


def test_orders_and_words_from_a_cache(cache, tokenizer, texts):
    """Batches of a cache: the same functions of each example's number."""
    inputs, labels, weights = next(
        iter(cache.batches(PermutedTokens(), 8, 1, skip_batches=2, shuffle=False))
    )
    rows = [(CLS, *text, SEP) for _, text in texts[16:24]]
    rows = [[*row, *[0] * (T - len(row))] for row in rows]
    assert inputs["token_ids"].numpy().tolist() == rows
    expected = tfeff.data.permute_targets(
        rows, 1, 16, special_token_ids=[0, 2, 3, 4], max_targets=3
    )
    found = (inputs["ranks"], inputs["mask_positions"], labels, weights)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)

    options = {"masking": "whole_word", "mask_share": 0.85, "random_share": 0.0}
    inputs, labels, _ = next(
        iter(
            cache.batches(
                MaskedTokens(**options),
                8,
                1,
                skip_batches=2,
                shuffle=False,
                tokenizer=tokenizer,
            )
        )
    )
    ids, positions, tokens, _ = tfeff.data.mask_tokens(
        rows,
        1,
        16,
        vocabulary_size=120,
        mask_token_id=4,
        special_token_ids=[0, 2, 3, 4],
        max_masks=3,
        word_starts=word_starts(tokenizer),
        **options,
    )
    np.testing.assert_array_equal(inputs["token_ids"], ids)
    np.testing.assert_array_equal(inputs["mask_positions"], positions)
    np.testing.assert_array_equal(labels, tokens)


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "message"),
    [
        (MaskedTokens, {"masking": "words"}, ValueError, "`masking`.*'words'"),
        (MaskedTokens, {"mask_share": 2}, ValueError, "`mask_share`.*2"),
        (MaskedTokens, {"mask_share": 0.95}, ValueError, "`random_share`.*0.1"),
        (MaskedTokens, {"mask_rate": 0.0}, ValueError, "`mask_rate`.*0.0"),
        (MaskedTokens, {"mask_rate": None}, TypeError, "`mask_rate`.*None"),
        (PermutedTokens, {"mask_rate": 2}, ValueError, "`mask_rate`.*2"),
        (SentencePairs, {"kind": "both"}, ValueError, "`kind`.*'both'"),
        (SentencePairs, {"masked": 0.15}, TypeError, "`masked`.*0.15"),
    ],
)
def test_bad_settings(settings, arguments, error, message):
    with pytest.raises(error, match=message):
        settings(**arguments)


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        (MaskedTokens(masking="whole_word"), {}, "`tokenizer`.*whole_word.*None"),
        (SentencePairs(masked=MaskedTokens(masking="ngram")), {}, "`tokenizer`.*None"),
        (SentencePairs(), {"seed": 2**63}, "`seed`"),
        (PermutedTokens(), {"batch_size": 0}, "`batch_size`"),
    ],
)
def test_bad_arguments(cache, settings, arguments, message):
    with pytest.raises(ValueError, match=message):
        cache.batches(settings, **{"batch_size": 8, **arguments})


def test_bad_caches(documents, tokenizer, tmp_path, cache):
    def build(name, documents, length=T, **settings):
        return build_cache(
            documents,
            tokenizer,
            tmp_path / name,
            length,
            num_threads=1,
            progress=False,
            **settings,
        )

    with pytest.raises(ValueError, match="one document each.*cross_documents=True"):
        build("cross", documents, cross_documents=True).batches(SentencePairs(), 8)
    with pytest.raises(ValueError, match="at least 5.*sequence_length=4"):
        build("short", documents, 4).batches(SentencePairs(), 8)
    alone = build("one", ["", documents[0], " "])
    assert examples(alone.batches(SentencePairs(), 2), 1)
    with pytest.raises(ValueError, match="`kind` must be 'order'.*1 document"):
        alone.batches(SentencePairs("next"), 8)
    other = tfeff.data.train_tokenizer(documents, 110)
    for settings in (MaskedTokens(), PermutedTokens(), SentencePairs()):
        with pytest.raises(ValueError, match="`tokenizer` must be the one.*cache"):
            cache.batches(settings, 8, tokenizer=other)
