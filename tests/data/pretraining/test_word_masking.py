"""Whole words and n-grams: what belongs together, and what is chosen of it."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.masking import choose_units, word_spans
from tests.subjects import sentence_pieces
from tests.subjects.masking import (
    CLS,
    MASK,
    PAD,
    SEP,
    SETTINGS,
    SPECIAL,
    sequences,
)
from tests.subjects.versions import needs_xlm_roberta
from tfeff.convert import XLNetTokenizer
from tfeff.data import mask_tokens, word_starts
from tfeff.data.pretraining import word_masking

STARTS = np.array([token % 3 != 1 for token in range(SETTINGS["vocabulary_size"])])
WORDS = {**SETTINGS, "masking": "whole_word", "word_starts": STARTS}
NGRAMS = {**WORDS, "masking": "ngram"}


def chosen_places(result):
    """The places that are predicted, a sorted list for each row."""
    _, positions, _, weights = (np.asarray(t) for t in result)
    return [p[w == 1].tolist() for p, w in zip(positions, weights)]


def check_slots(rows, result):
    """Labels, weights and untouched tokens are those of the places chosen."""
    masked, positions, labels, weights = (np.asarray(t) for t in result)
    for b, places in enumerate(chosen_places(result)):
        free = positions.shape[1] - len(places)
        assert places == sorted(set(places))
        assert weights[b].tolist() == [1.0] * len(places) + [0.0] * free
        assert labels[b].tolist() == [*rows[b][places], *[0] * free]
        assert positions[b].tolist() == places + [0] * free
        others = np.setdiff1d(np.arange(rows.shape[1]), places)
        np.testing.assert_array_equal(masked[b][others], rows[b][others])
        assert not set(rows[b][places]) & set(SPECIAL)
        assert not set(masked[b][places]) & (set(SPECIAL) - {MASK})


CASES = {
    "lengths": st.lists(st.integers(0, 23), min_size=5, max_size=5),
    "seed": st.integers(-(2**63), 2**63 - 1),
    "first": st.integers(0, 2**40),
    "rate": st.floats(0.01, 1.0),
    "max_masks": st.sampled_from([1, 4, 25]),
}


def with_inner_separators(lengths, seed):
    """Rows of which some have a `[SEP]` inside, and some none of their frame."""
    rows = sequences(lengths, 25, seed % 1000)
    rows[0, 9] = SEP
    rows[1] = np.roll(rows[1], -1)
    return rows


@settings(max_examples=20)
@given(**CASES)
def test_words_are_masked_whole(lengths, seed, first, rate, max_masks):
    rows = with_inner_separators(lengths, seed)
    settings = {"max_masks": max_masks, "mask_rate": rate}
    result = mask_tokens(rows, seed, first, **settings, **WORDS)
    check_slots(rows, result)
    for row, places in zip(rows, chosen_places(result)):
        spans = word_spans(row, SPECIAL, STARTS)
        count = sum(end - start for start, end in spans)
        budget = min(max_masks, count, max(1, round(rate * count)))
        whole = [set(range(*s)) for s in spans if set(range(*s)) <= set(places)]
        assert set().union(*whole) == set(places)
        # Nothing is left over that would have fitted.
        left = budget - len(places)
        assert left >= 0
        rest = [end - start for start, end in spans if start not in places]
        assert all(size > left for size in rest)


@settings(max_examples=20)
@given(**CASES)
def test_ngrams_are_masked_whole(lengths, seed, first, rate, max_masks):
    """Runs of at most three words, whole words all."""
    rows = with_inner_separators(lengths, seed)
    settings = {"max_masks": max_masks, "mask_rate": rate}
    result = mask_tokens(rows, seed, first, **settings, **NGRAMS)
    check_slots(rows, result)
    for row, places in zip(rows, chosen_places(result)):
        spans = word_spans(row, SPECIAL, STARTS)
        count = sum(end - start for start, end in spans)
        assert len(places) <= min(max_masks, max(1, round(rate * count)))
        whole = [set(range(*s)) for s in spans if set(range(*s)) <= set(places)]
        assert set().union(*whole) == set(places)


def test_choice_is_the_sequential_one():
    """In rounds or unit by unit: the same units, for many sizes and budgets."""
    generator = np.random.default_rng(0)
    rows, length = 300, 30
    units = np.cumsum(generator.random((rows, length)) < 0.5, axis=1)
    units = (units - units[:, :1]).astype(np.int32)
    draws = generator.integers(0, 2**32, (rows, length))
    draws[: rows // 2] %= 3  # with equal draws
    special_units = generator.random((rows, length)) < 0.1
    special = np.take_along_axis(special_units, units, axis=1)
    count = generator.integers(0, 15, (rows, 1)).astype(np.int32)
    found = word_masking.choose_units(units, draws, special, count).numpy()
    for b in range(rows):
        sizes = np.bincount(units[b], minlength=length)
        sizes[special_units[b]] = 0
        order = sorted(range(length), key=lambda k: (-draws[b, k], -k))
        taken = choose_units(sizes, order, count[b, 0])
        assert found[b].tolist() == [unit in taken for unit in units[b]]


def test_every_word_is_as_likely_and_ngrams_are_of_their_lengths():
    """Runs of n words with probability 6/11, 3/11, 2/11: within 5 sigma."""
    rows = np.tile(sequences([120], 122), (3000, 1))
    rows[:, 1:-1] = 6  # each token a word
    special = np.isin(rows, SPECIAL)
    draws = np.random.default_rng(0).integers(0, 2**32, rows.shape)
    longest = np.full([len(rows), 1], 18, np.int32)
    runs = word_masking.ngrams(rows, special, STARTS, draws, longest).numpy()
    assert (runs[:, 0] == 0).all() and (runs[:, 1] == 1).all()
    assert (runs[:, -1] == runs[:, -2] + 1).all()  # special tokens are apart
    lengths = np.concatenate([np.bincount(r[1:61])[1:31] for r in runs])
    for n, share in [(1, 6 / 11), (2, 3 / 11), (3, 2 / 11)]:
        sigma = np.sqrt(len(lengths) * share * (1 - share))
        assert abs(np.sum(lengths == n) - share * len(lengths)) < 5 * sigma
    assert lengths.max() == 3
    # A run that ends at a `[SEP]` is cut there, and no run is above the budget.
    rows[:, 50] = SEP
    special = np.isin(rows, SPECIAL)
    one = word_masking.ngrams(rows, special, STARTS, draws, np.minimum(longest, 2))
    assert (np.diff(one.numpy()[:, 49:52], axis=1) == 1).all()
    assert max(np.bincount(row).max() for row in one.numpy()[:100]) == 2

    chosen = mask_tokens(rows, 3, max_masks=18, **NGRAMS)
    counts = np.bincount(np.concatenate(chosen_places(chosen)), minlength=122)
    share = np.asarray(chosen[3]).sum() / (len(rows) * 119)
    assert 0.145 < share <= 18 / 119
    sigma = np.sqrt(len(rows) * share * (1 - share))
    text = np.setdiff1d(np.arange(1, 121), [50])
    assert np.abs(counts[text] - len(rows) * share).max() < 5 * sigma


@pytest.mark.quick("words")
@pytest.mark.parametrize("settings", [WORDS, NGRAMS], ids=["words", "ngrams"])
def test_masks_depend_on_the_example_not_on_the_batch(settings):
    rows = sequences([20 - i % 5 for i in range(9)], 23)
    whole = mask_tokens(rows, 3, 1000, max_masks=5, mask_rate=0.3, **settings)
    for start, end in [(0, 4), (4, 5), (5, 9)]:
        part = mask_tokens(
            rows[start:end],
            3,
            1000 + start,
            max_masks=5,
            mask_rate=0.3,
            **settings,
        )
        for a, b in zip(whole, part):
            np.testing.assert_array_equal(a[start:end], b)
    graph = tf.function(
        lambda ids: mask_tokens(ids, 3, 1000, max_masks=5, mask_rate=0.3, **settings),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
    )
    for a, b in zip(graph(rows), whole):
        np.testing.assert_array_equal(a, b)
    other = mask_tokens(rows, 4, 1000, max_masks=5, mask_rate=0.3, **settings)
    assert not np.array_equal(other[1], whole[1])


def test_words_that_do_not_fit():
    """A word above the budget is never masked, not even in part."""
    rows = np.array([[CLS, 6, 6, 7, 7, 7, 7, SEP], [CLS, 7, 7, SEP, *[PAD] * 4]])
    chosen = chosen_places(mask_tokens(rows, 0, max_masks=4, mask_rate=0.6, **WORDS))
    assert chosen == [[1], []]  # budgets of 4 and 1
    chosen = chosen_places(mask_tokens(rows, 0, max_masks=6, mask_rate=1, **WORDS))
    assert chosen == [[1, 2, 3, 4, 5, 6], [1, 2]]


@pytest.mark.parametrize(("mask", "other"), [(0.85, 0.0), (0.0, 1.0), (0.3, 0.3)])
def test_shares(mask, other):
    rows = sequences([40] * 1000, 42)
    rows[:, 1:-1] = 6
    shares = {"mask_share": mask, "random_share": other}
    masked, positions, _, _ = mask_tokens(rows, 1, max_masks=20, **WORDS, **shares)
    found = np.take_along_axis(masked.numpy(), positions.numpy(), axis=1)[:, :6]
    same = 1 - mask - other + other / 46
    for value, share in [(found == MASK, mask), (found == 6, same)]:
        sigma = np.sqrt(found.size * share * (1 - share))
        assert abs(value.sum() - found.size * share) <= 5 * sigma


class TestWordStarts:
    def test_sentence_piece(self, tokenizer):
        starts = word_starts(tokenizer)
        pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.vocabulary_size())]
        assert starts.tolist() == [p.startswith("▁") for p in pieces]
        assert not starts[:5].any() and 10 < starts.sum() < len(starts)

    def test_xlnet(self, xlnet_tokenizer):
        starts = word_starts(xlnet_tokenizer)
        assert starts.shape == (xlnet_tokenizer.vocabulary_size(),)
        ids = xlnet_tokenizer("two words")
        assert starts[np.asarray(ids)].sum() == 2

    def test_a_mask_token_behind_the_pieces(self, documents):
        proto = sentence_pieces.trained(
            documents[:100],
            90,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            pad_piece="[PAD]",
            bos_piece="[CLS]",
            eos_piece="[SEP]",
            unk_piece="[UNK]",
        )
        tokenizer = keras_hub.tokenizers.DebertaV3Tokenizer(proto=proto)
        starts = word_starts(tokenizer)
        assert starts.shape == (91,) and not starts[tokenizer.mask_token_id]

    @needs_xlm_roberta
    def test_ids_that_are_not_the_model_s(self, documents):
        proto = sentence_pieces.trained(
            documents[:100],
            90,
            unk_id=0,
            bos_id=1,
            eos_id=2,
        )
        tokenizer = keras_hub.tokenizers.XLMRobertaTokenizer(proto=proto)
        starts = word_starts(tokenizer)
        pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.vocabulary_size())]
        assert starts.tolist() == [p.startswith("▁") for p in pieces]
        ids = np.asarray(tokenizer("two words"))
        assert starts[ids[0]] and starts[ids].sum() == 2

    def test_word_piece(self):
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "."]
        tokenizer = keras_hub.tokenizers.BertTokenizer(pieces)
        assert word_starts(tokenizer).tolist() == [p != "##ing" for p in pieces]

    def test_bad_tokenizers(self):
        for tokenizer in (keras_hub.tokenizers.ByteTokenizer(), None):
            with pytest.raises(TypeError, match="`tokenizer`.*of type"):
                word_starts(tokenizer)
        pieces = ["##a", "##b"]
        inner = keras_hub.tokenizers.WordPieceTokenizer(pieces, oov_token="##a")
        with pytest.raises(ValueError, match="`tokenizer`.*2 pieces, none"):
            word_starts(inner)


@pytest.fixture
def xlnet_tokenizer(documents):
    proto = sentence_pieces.trained(
        documents[:100],
        90,
        control_symbols=["<cls>", "<sep>", "<mask>"],
        pad_id=3,
        pad_piece="<pad>",
    )
    return XLNetTokenizer(proto)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"masking": "words"}, ValueError, "`masking` must be one of.*'words'"),
        ({"word_starts": None}, ValueError, r"`word_starts`.*=50.*shape \(\)"),
        ({"word_starts": STARTS[1:]}, ValueError, r"`word_starts`.*\(49,\)"),
        ({"mask_share": -0.1}, ValueError, "`mask_share`.*-0.1"),
        ({"random_share": "0"}, TypeError, "`random_share`"),
        ({"mask_share": 0.95}, ValueError, "`mask_share` and `random_share`.*0.95"),
    ],
)
def test_bad_arguments(arguments, error, message):
    good = {"token_ids": sequences([5], 9), "seed": 0, "max_masks": 2, **WORDS}
    with pytest.raises(error, match=message):
        mask_tokens(**{**good, **arguments})
