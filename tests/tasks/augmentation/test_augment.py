"""Replacing words: by what, how often, and what stays as it is."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.corpus import token_lists
from tfeff.data import TextExamples
from tfeff.data.text.characters import is_ideograph
from tfeff.tasks import augment, read_word_vectors
from tfeff.tasks.augmentation.augment import _word
from tfeff.tasks.augmentation.mlm_candidates import MLMCandidates, whole_words
from tfeff.tasks.augmentation.word_vectors import WordVectors

TEXTS = ("Which time, would you like?", "no more zygotes: the (other) people_s!", " ~ ")
PAIRS = ("out of it", "", "been there")
WORD = re.compile(r"[A-Za-z0-9]+")


def make_masked_lm(**changes):
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=125,  # more than the tokenizer has
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=40,
        **changes,
    )
    model = tfeff.objectives.MaskedLM(encoder)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    return model


@pytest.fixture(scope="module")
def masked_lm():
    keras.utils.set_random_seed(0)
    return make_masked_lm()


def examples(second=PAIRS):
    labels = np.array([1, 0, 1], "int32")
    return TextExamples(TEXTS, second, labels, ("no", "yes"), ("a", "b", "c"))


def literal_fillings(model, tokenizer, text, word, count):
    """The likeliest whole words where `word` stands in a short text, one at a time."""
    ids = token_lists(tokenizer, [text])[0]
    (own,) = token_lists(tokenizer, [word])[0]
    row = [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
    place = row.index(own)
    row[place] = tokenizer.mask_token_id
    inputs = {
        "token_ids": tf.constant([row]),
        "segment_ids": tf.zeros((1, len(row)), "int32"),
        "padding_mask": tf.ones((1, len(row)), "int32"),
        "mask_positions": tf.constant([[place]]),
    }
    logits = model(inputs).numpy()[0, 0]
    scores = {
        piece[1:]: logits[id]
        for id, piece in enumerate(tokenizer.get_vocabulary())
        if re.fullmatch("▁[a-z0-9]+", piece)
    }
    return sorted(scores, key=lambda word: -scores[word])[:count]


def literal_neighbours(model, tokenizer, word, count):
    """The whole words whose rows have the largest cosine with the mean of pieces."""
    table = model.encoder.token_embedding.embeddings.numpy().astype("float64")
    mean = table[token_lists(tokenizer, [word])[0]].mean(axis=0)
    cosines = {
        other: table[id] @ mean / np.linalg.norm(table[id])
        for id, other in whole_words(tokenizer)
        if other != word
    }
    return sorted(cosines, key=lambda other: -cosines[other])[:count]


def test_words_are_replaced_by_their_candidates_alone(masked_lm, tokenizer):
    copies = 60
    more = augment(
        examples(), masked_lm, tokenizer, copies=copies, rate=1.0, candidates=4
    )
    assert len(more) == 3 * (copies + 1) == len(more.second)
    assert more.labels.tolist() == np.repeat([1, 0, 1], copies + 1).tolist()
    assert more.ids[: copies + 2] == ("a",) * (copies + 1) + ("b",)
    assert more.label_names == ("no", "yes")
    assert more.first[:: copies + 1] == TEXTS and more.second[:: copies + 1] == PAIRS
    assert set(more.first[-copies:]) == {" ~ "} and set(more.second[62:122]) == {""}

    # Everything between words stays as it is.
    first = more.first[1 : copies + 1]
    assert {WORD.sub("w", text) for text in first} == {"w w, w w w?"}
    second = more.first[copies + 2 : 2 * copies + 2]
    assert {WORD.sub("w", text) for text in second} == {"w w w: w (w) w_w!"}

    def seen(texts, slot):
        return {WORD.findall(text)[slot] for text in texts}

    for texts, original, slot, word in (
        (first, TEXTS[0], 3, "you"),
        (second, TEXTS[1], 3, "the"),
        (more.second[1 : copies + 1], PAIRS[0], 1, "of"),
    ):
        expected = literal_fillings(masked_lm, tokenizer, original, word, 4)
        assert seen(texts, slot) == set(expected), word
    expected = literal_neighbours(masked_lm, tokenizer, "zygotes", 4)
    assert seen(second, 2) == set(expected)


@pytest.mark.slow
def test_it_follows_from_the_seed_and_the_place_alone(masked_lm, tokenizer):
    def run(**arguments):
        return augment(examples(), masked_lm, tokenizer, **{"copies": 5, **arguments})

    one = run(seed=3)
    assert (run(seed=3, batch_size=2).first, run(seed=3).second) == (
        one.first,
        one.second,
    )
    assert run(seed=4).first != one.first
    single = augment(
        TextExamples(TEXTS[:1], None, None, None, ("a",)),
        masked_lm,
        tokenizer,
        copies=5,
        seed=3,
    )
    assert single.first == one.first[:6]
    assert single.second is None and single.labels is None
    assert set(run(rate=0.0).first) == set(TEXTS)


def test_the_share_of_replaced_words(masked_lm, tokenizer):
    """0.4 of the words that can be, whatever the candidates; here never themselves."""
    vectors = WordVectors(["zygotes", "a", "b"], [[1, 0], [1, 0], [1, 0]])
    texts = TextExamples(("zygotes Zygotes " * 20,), None, None, None, (0,))
    more = augment(texts, masked_lm, tokenizer, copies=100, word_vectors=vectors)
    words = " ".join(more.first[1:]).split()
    share = np.mean([word in ("a", "b") for word in words])
    assert abs(share - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 4000)
    assert abs(np.mean([word == "a" for word in words]) - 0.2) < 0.03
    # What the file does not hold stays.
    other = TextExamples(("zymurgists",), None, None, None, (0,))
    more = augment(other, masked_lm, tokenizer, rate=1.0, word_vectors=vectors)
    assert set(more.first) == {"zymurgists"}


def test_words_of_a_long_text_are_seen_with_what_is_around_them(masked_lm, tokenizer):
    """The last word of a text that is too long, as of its end alone."""
    text = "the " * 60 + "of"
    more = augment(
        TextExamples((text,), None, None, None, (0,)),
        masked_lm,
        tokenizer,
        copies=80,
        rate=1.0,
        candidates=3,
    )
    end = "the " * 37 + "of"  # with [CLS] and [SEP] 40 tokens
    assert len(token_lists(tokenizer, [end])[0]) == 38
    expected = literal_fillings(masked_lm, tokenizer, end, "of", 3)
    assert {copy.split()[-1] for copy in more.first[1:]} == set(expected)


def test_other_texts_change_nothing_where_the_length_does(tokenizer):
    """Blocks depend on the padded length, which is then that of the encoder."""
    attention = {"name": "blockwise", "head_blocks": "1:1"}
    model = make_masked_lm(attention=attention)
    assert model.encoder.length_dependent
    candidates = MLMCandidates(model, tokenizer, 3, batch_size=2)
    short, long = token_lists(tokenizer, ["out of it", "the " * 30])
    masked = [(short, position) for position in range(len(short))]
    alone = [*candidates.likeliest(masked)]
    for index, pair in enumerate(masked):
        assert next(candidates.likeliest([pair, (long, 0)])) == alone[index]


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_rows_of_a_quantized_table_have_their_scales(tokenizer, mode):
    model = make_masked_lm()
    table = model.encoder.token_embedding.embeddings
    # Without the scales all rows would be equally long.
    scales = np.random.default_rng(1).lognormal(0, 2, (table.shape[0], 1))
    table.assign(table * scales)
    expected = literal_neighbours(model, tokenizer, "zygotes", 3)
    rows = table.numpy()
    model.quantize(mode)
    candidates = MLMCandidates(model, tokenizer, 3, batch_size=2)
    error = np.abs(candidates._table - rows).max(axis=1) / np.abs(rows).max(axis=1)
    assert error.max() < {"int8": 0.01, "int4": 0.1}[mode]
    (ids,) = token_lists(tokenizer, ["zygotes"])
    found = candidates.near(ids, 3, "zygotes")
    assert found == expected or mode == "int4"


def test_an_ideograph_is_a_word():
    words = [found[0] for found in _word().finditer("我爱don't, 北京2x𠀀!")]
    assert words == ["我", "爱", "don't", "北", "京", "2x", "𠀀"]
    for character in map(chr, range(0x3000, 0x40000)):
        if is_ideograph(character):
            assert _word().fullmatch(character)
            assert _word().match(character * 2)[0] == character


@pytest.mark.parametrize(
    "text",
    [
        "हिन्दी में किताब",
        "بِسْمِ اللَّهِ",
        "ภาษาไทย",
        "na\u0131\u0308ve cafe\u0301",
        "می\u200cخواهم",
        "క్ష నమస్కారం",
    ],
)
def test_vowel_signs_and_accents_are_parts_of_words(text):
    assert [found[0] for found in _word().finditer(text)] == text.split()


def test_joiners_end_no_word():
    words = [found[0] for found in _word().finditer("a\u200d! \u0301b c_d 'e'")]
    assert words == ["a", "b", "c", "d", "e"]


def test_whole_words_of_word_pieces():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "!", "x1"]
    tokenizer = tfeff.convert.BertTokenizer([*pieces, "में", "\u0301"])
    assert whole_words(tokenizer) == [(5, "cat"), (8, "x1"), (9, "में")]


@pytest.mark.parametrize("size", [1e-43, 1e-30, 1.0, 1e30])
def test_the_cosine_does_not_depend_on_the_size(size):
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0, 0]])
    found = WordVectors(["cat", "dog", "day", "of"], size * vectors)
    assert found.nearest(size * vectors[2], 4) == ["day", "dog", "cat", "of"]
    assert found.nearest(vectors[0], 2) == ["cat", "dog"]
    assert found.nearest([1e-43, 0.0], 2) == ["cat", "dog"]


def test_word_vectors_from_a_file(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("cat 1 0\n. . 0.5 0.5\n\ndög 2.0 0.2\ncat 9 9\nday 0 -1e0\n")
    vectors = read_word_vectors(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_word_vectors(path).words == vectors.words
    assert vectors.words == ["cat", ". .", "dög", "day"]
    np.testing.assert_allclose(vectors["dög"], [2.0, 0.2])
    assert "dög" in vectors and "dog" not in vectors and len(vectors) == 4
    assert vectors.nearest([1, 0], 9) == ["cat", "dög", ". .", "day"]
    assert vectors.nearest([1, 0], 2, other_than="cat") == ["dög", ". ."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "empty"),
        (b"cat 1 2\ndog 1\n", "line 2: must be a word and 2 numbers"),
        (b"2 2\ncat 1 2\ndog 1 0\n", "line 1: must.*without a line of counts"),
        (b"cat 1 2\ndog 1 x\n", "line 2.*x"),
        (b"cat 1 2\n\ndog 1 nan\n", "line 3.*not finite"),
        (b"cat\n", "line 1"),
        (b"cat 1 2\nd\xff 1 2\n", "line 2.*UTF-8"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    path = tmp_path / "glove.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"glove.txt.*{message}"):
        read_word_vectors(path)
    with pytest.raises(ValueError, match="nowhere.txt"):
        read_word_vectors(tmp_path / "nowhere.txt")


def test_wrong_arguments_are_named(masked_lm, tokenizer):
    ones = examples()
    for error, message, arguments in (
        (TypeError, "`examples`", (["a text"], masked_lm, tokenizer)),
        (TypeError, "`masked_lm`", (ones, masked_lm.encoder, tokenizer)),
        (ValueError, "`rate`", (ones, masked_lm, tokenizer, 2, 1.5)),
        (TypeError, "`rate`", (ones, masked_lm, tokenizer, 2, "0.4")),
        (ValueError, "`copies`", (ones, masked_lm, tokenizer, 0)),
        (ValueError, "`candidates`", (ones, masked_lm, tokenizer, 2, 0.4, 0)),
        (TypeError, "`word_vectors`", (ones, masked_lm, tokenizer, 2, 0.4, 3, {})),
    ):
        with pytest.raises(error, match=message):
            augment(*arguments)
    with pytest.raises(ValueError, match="row"):
        WordVectors(["a"], [[1], [2]])
    with pytest.raises(ValueError, match="repeat"):
        WordVectors(["a", "a"], [[1], [2]])
    for wrong in (float("nan"), 1e300):
        with pytest.raises(ValueError, match=r"`vectors` must be finite.* of 'b'$"):
            WordVectors(["a", "b"], [[1, 0], [wrong, 0]])
    vectors = WordVectors(["a", "b"], [[1, 0], [0, 1]])
    for vector in ([1, 0, 0], 1.0, [[1, 0]], [float("nan"), 1]):
        with pytest.raises(ValueError, match="`vector` must be 2 finite numbers"):
            vectors.nearest(vector, 1)
    with pytest.raises(TypeError, match="`vector` must be an array of numbers"):
        vectors.nearest("ab", 1)
    for error, count in ((ValueError, -2), (ValueError, 0), (TypeError, 2.0)):
        with pytest.raises(error, match="`count` must be"):
            vectors.nearest([1, 0], count)
    model = make_masked_lm()
    table = model.encoder.token_embedding.embeddings
    table.assign(table * np.nan)
    with pytest.raises(ValueError, match="`masked_lm` must have .* finite"):
        augment(ones, model, tokenizer)
