"""Requests that no model can answer, or not in the time that a server has."""

import random

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tests.export import hostile
from tests.reference import text_rows
from tests.subjects import byte_pairs
from tests.subjects.characters import word_pieces
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import make_encoder, make_model, own_model
from tfeff.data.finetuning.packing import fill_gaps, pack
from tfeff.data.text.offset_tokenizer import offset_tokenizer
from tfeff.export import parts
from tfeff.export.any_model import predict_endpoint
from tfeff.export.classification import (
    choose_endpoint,
    classify_endpoint,
    rate_endpoint,
)
from tfeff.export.embeddings import embedding_endpoints
from tfeff.export.fill_mask import fill_mask_endpoint
from tfeff.export.request_texts import (
    first_characters,
    most_characters,
    spaces_in_words,
    valid,
    with_rank_checks,
)
from tfeff.export.span_qa import answer_endpoint
from tfeff.export.tagging import tag_endpoints
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
)

LENGTH = 16
LABELS = ["O", "B-PER", "I-PER"]
GAPS = st.text(st.sampled_from("_ab \n漢\\1\0"), max_size=9)


@pytest.fixture(scope="module")
def served():
    """A function of each signature, as an export holds it, by name."""
    made = tokenizer()
    text_encoder = TextEncoder(made, LENGTH)
    # A convolution beside attention: TensorFlow's own fail for an empty batch.
    attention = {"name": "mixed", "kernel_size": 3}
    encoder = make_encoder(attention, max_sequence_length=LENGTH)
    functions = {
        **embedding_endpoints(encoder, text_encoder),
        "fill_mask": fill_mask_endpoint(
            make_model(max_sequence_length=LENGTH), text_encoder, top_k=2
        ),
        "classify": classify_endpoint(
            Classifier(encoder, 3), text_encoder, True, ["a", "b", "c"]
        ),
        "rate": rate_endpoint(Regressor(encoder, "layerwise"), text_encoder, False),
        "predict": predict_endpoint(own_model(encoder), text_encoder, True, 300),
        "choose": choose_endpoint(MultipleChoice(encoder), text_encoder),
        **answer_endpoint(SpanQA(encoder), text_encoder, 4, max_windows=9),
        **tag_endpoints(TokenClassifier(encoder, 3), text_encoder, LABELS, 9),
    }
    return functions


TEXT, OPTIONS = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.string)
INPUTS = {
    "sentence_embeddings": ["text"],
    "token_embeddings": ["text"],
    "fill_mask": ["text"],
    "classify": ["text", "text_pair"],
    "rate": ["text"],
    "predict": ["text", "text_pair"],
    "choose": ["passage", "question", "options"],
    "answer": ["question", "passage"],
    "tag": ["text"],
    "entities": ["text"],
}


@pytest.fixture(scope="module")
def traced(served):
    return trace(served)


def trace(functions):
    return {
        name: tf.function(function, autograph=False).get_concrete_function(
            **{key: OPTIONS if key == "options" else TEXT for key in INPUTS[name]}
        )
        for name, function in functions.items()
    }


def texts(*values):
    return tf.constant(values, tf.string)


def refused(function, match, **inputs):
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        function(**inputs)


def test_other_ranks_are_named(tmp_path):
    """A signature takes tensors of any shape, and a scalar has no rows to count."""
    module, ranks = tf.Module(), {"passage": 1, "options": 2}

    def choose(passage, options):
        shape = tf.shape(options)
        return {"rows": tf.fill(shape[:1], shape[1]), "texts": passage}

    module.choose = tf.function(
        with_rank_checks(choose, ranks),
        input_signature=[tf.TensorSpec([None], tf.string), OPTIONS],
    )
    tf.saved_model.save(module, str(tmp_path / "e"), {"choose": module.choose})
    function = tf.saved_model.load(str(tmp_path / "e")).signatures["choose"]
    good = {"passage": texts("a", "b"), "options": tf.fill([2, 3], "o")}
    assert function(**good)["rows"].numpy().tolist() == [3, 3]
    for name, rank in ranks.items():
        for shape in ([], [2], [0], [2, 3], [0, 3], [2, 1, 3], [0, 0, 0, 0]):
            if len(shape) != rank:
                message = rf"`{name}` must have {rank} ax.*shape:"
                refused(function, message, **good | {name: tf.fill(shape, "a")})


@pytest.mark.slow
def test_unequal_numbers_of_rows_are_named(traced):
    two, one, three = texts("a", "b"), texts("a"), texts("a", "b", "c")
    for pair in (one, three, texts()):
        refused(
            traced["classify"], "`text_pair` must have as", text=two, text_pair=pair
        )
        refused(traced["predict"], "`text_pair` must", text=two, text_pair=pair)
        refused(traced["answer"], "`passage` must have as", question=two, passage=pair)
        refused(
            traced["choose"],
            "`question` must have as",
            passage=two,
            question=pair,
            options=tf.constant([["a", "b"]] * 2),
        )
        refused(
            traced["choose"],
            "`options` must have as",
            passage=two,
            question=two,
            options=tf.fill([tf.size(pair), 2], "a"),
        )


def test_rows_of_pairs_are_counted_before_they_are_cut():
    first, second = tf.ragged.constant([[5], [6]]), tf.ragged.constant([[7]])
    for keep in ("neither", "second"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`second` must have"):
            pack(first, second, tokenizer(), LENGTH, keep)


@pytest.mark.parametrize("columns", [0, 65, 100_000])
def test_options_are_few(traced, columns):
    refused(
        traced["choose"],
        rf"`options` must have 1 to 64 columns.*\[{columns}\]",
        passage=texts("a"),
        question=texts("b"),
        options=tf.fill([1, columns], "a"),
    )


@pytest.mark.slow
def test_empty_batches_have_empty_answers(traced):
    shapes = {
        "sentence_embeddings": {"embeddings": (0, 16)},
        "token_embeddings": {
            "embeddings": (0, 1, 16),  # Some models must have a first token.
            **{name: (0, 1) for name in ("mask", "token_ids", "tokens")},
        },
        "fill_mask": {
            name: (0, 0, 2) for name in ("fillings", "token_ids", "probabilities")
        },
        "classify": {"label": (0,), "labels": (0, 3), "probabilities": (0, 3)},
        "rate": {"score": (0,)},
        "predict": {"output": (0, 2)},
        "choose": {"option": (0,), "index": (0,), "probabilities": (0, 4)},
        "answer": {
            name: (0,)
            for name in ("answer", "start", "end", "score", "no_answer_probability")
        },
        "tag": {
            **{name: (0, 0) for name in ("words", "label", "start", "end")},
            "labels": (0, 3),
            "probabilities": (0, 0, 3),
        },
        "entities": {
            name: (0, 0) for name in ("entity", "type", "start", "end", "probability")
        },
    }
    for name, names in INPUTS.items():
        inputs = {
            key: tf.fill([0, 4], "a") if key == "options" else texts() for key in names
        }
        outputs = traced[name](**inputs)
        assert {key: tuple(v.shape) for key, v in outputs.items()} == shapes[name]


def test_questions_and_passages_have_limits(traced):
    def limited(match, question="a", passage="a"):
        # The one in question is not among the first, which alone would be shown.
        refused(
            traced["answer"],
            match,
            question=texts(*"aaaa", question),
            passage=texts(*"aaaa", passage),
        )

    limited(r"`question` must leave room .* 16 tokens.*\d\d\]", question="zebras " * 9)
    limited(r"`passage` must have at most 9 windows.*\d\d\]", passage="zebras " * 9)
    shown = r"`passage` must have at most \d+ characters.*00000\]"
    limited(shown, passage="a " * 10**6)
    limited(shown, passage=b"\x80" * 10**6)


def identity():
    """The tokenizer, without a normalizer that makes spaces of other white space."""
    made = tokenizer()
    model = ModelProto.FromString(made.proto)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.precompiled_charsmap = b""
    return type(made)(proto=model.SerializeToString())


MADE = {
    "unigram": (tokenizer, "\v"),
    "identity": (identity, "\t\n\v\f\r"),
    "word_pieces": (word_pieces, ""),
    "byte_pairs": (byte_pairs.tokenizer, ""),
}


@pytest.mark.quick("identity")
@pytest.mark.parametrize("kind", MADE)
def test_words_of_texts_that_are_not_cut_are_short(kind):
    """The time for a run of unknown characters is quadratic."""
    make, within = MADE[kind]
    made = make()
    assert spaces_in_words(made) == within
    # Of a longer window, as a short one cannot have so long a word.
    encoder = make_encoder(
        max_sequence_length=60, vocabulary_size=made.vocabulary_size()
    )
    text_encoder = TextEncoder(made, 60)
    many = 4096
    answer = answer_endpoint(SpanQA(encoder), text_encoder, max_windows=many)["answer"]
    tag = tag_endpoints(TokenClassifier(encoder, 3), text_encoder, LABELS, many)["tag"]
    message = r"must have no word of more than 20000 characters.*\[20001\]"
    long = texts("zebras", "zebras \U0001f993" + "\U0001f993" * 20_000)
    if kind in ("word_pieces", "byte_pairs"):  # Their time is in proportion.
        traced = trace({"tag": tag, "answer": answer})
        assert traced["tag"](text=long)["words"].shape == (2, 2)
        answers = traced["answer"](question=texts("", ""), passage=long)
        assert answers["answer"].shape == (2,)
        return
    refused(tag, f"`text` {message}", text=long)
    refused(answer, f"`passage` {message}", question=texts("", ""), passage=long)
    for space in within:
        long = texts("zebras " + f"\U0001f993{space}" * 10_001)
        match = "`passage` must have no word of more than 20000"
        refused(answer, match, question=texts(""), passage=long)


@pytest.mark.slow
def test_limits_beyond_32_bits_hold():
    text_encoder = TextEncoder(tokenizer(), LENGTH)
    encoder = make_encoder(max_sequence_length=LENGTH)
    many = 10**8
    tag = tag_endpoints(TokenClassifier(encoder, 3), text_encoder, LABELS, many)
    answer = answer_endpoint(SpanQA(encoder), text_encoder, 4, max_windows=many)
    traced = trace({"tag": tag["tag"], **answer})
    assert traced["tag"](text=texts("a fox"))["words"].shape == (1, 2)
    answer = traced["answer"](question=texts("a"), passage=texts("a fox"))
    assert answer["answer"].shape == (1,)


@pytest.mark.slow
def test_answers_are_the_same_in_parts(served, traced, monkeypatch):
    monkeypatch.setattr(parts, "TOKENS_AT_ONCE", 2 * LENGTH)
    in_parts = trace(served)
    rows = ["", "zebras", *DOCUMENTS[:4], "[MASK] a [MASK]", "", "[MASK]", "a"]
    for name, names in INPUTS.items():
        inputs = dict.fromkeys(names, texts(*rows))
        if name == "answer":
            inputs["question"] = texts("", "a", "b", "", "a")
            inputs["passage"] = texts("", *["a fox " * k for k in (1, 6, 4, 5)])
        if "options" in inputs:
            inputs["options"] = tf.stack([inputs["options"]] * 3, axis=1)
        found, expected = in_parts[name](**inputs), traced[name](**inputs)
        for key, value in expected.items():
            if value.dtype.is_floating:
                np.testing.assert_allclose(found[key], value, atol=1e-5)
            else:
                np.testing.assert_array_equal(found[key], value)


def test_parts_have_few_tokens():
    rows = tf.ragged.constant([[1] * 900, *[[2, 2]] * 30, []])

    def of_part(rows):
        count = rows.nrows()
        return [tf.fill([count], count), rows.row_lengths()]

    for longest, most in ((900, 9), (2, 32), (10**9, 1), (0, 32)):
        count, lengths = parts.by_parts(of_part, longest, rows)
        assert tf.reduce_max(count) == most
        assert lengths.numpy().tolist() == rows.row_lengths().numpy().tolist()
    assert [x.shape for x in parts.by_parts(of_part, 9, rows[:0])] == [0, 0]


@pytest.mark.slow
def test_answers_have_a_limit(traced, served, monkeypatch):
    many = texts("zebras " * LENGTH, *[""] * 200_000)
    refused(
        traced["token_embeddings"], r"`text` must .* tokens.*200001\] \[16\]", text=many
    )
    masks = texts("[MASK]" * LENGTH, *[""] * 300_000)
    refused(traced["fill_mask"], "`text` must have at most .* masks", text=masks)
    words = texts("a " * 30, *[""] * 200_000)
    for name in ("tag", "entities"):
        refused(traced[name], "`text` must have at most .* words", text=words)
    pair = {"text": many[:31], "text_pair": many[:31]}
    refused(traced["predict"], "`text` must have at most 300 tokens", **pair)
    monkeypatch.setattr(parts, "MOST_BYTES", 1000)
    limited = ("sentence_embeddings", "classify", "tag")
    for name, function in trace({name: served[name] for name in limited}).items():
        inputs = {key: texts(*["a"] * 99) for key in INPUTS[name]}
        refused(function, r"`text` must have at most \d+ rows.*99", **inputs)
        shortened = {key: value[:2] for key, value in inputs.items()}
        assert all(len(value) == 2 for value in function(**shortened).values())


@pytest.mark.parametrize("make", [tokenizer, word_pieces])
def test_texts_lose_nothing_that_fits(make):
    """The tokens are the first ones of the whole text, however long it is."""
    made, source = make(), random.Random(0)
    text_encoder = TextEncoder(made, LENGTH)
    words = " ".join(DOCUMENTS).split() + ["漢字", "e\u0301\u0301", "a\tb", "(x)"]
    rows = ["", " ", *DOCUMENTS, " ".join(DOCUMENTS * 40)]
    rows += [" ".join(source.choices(words, k=k)) for k in (1, 5, 40, 2000, 20_000)]
    rows += [source.choice(words) * k for k in (2, 40, 2000)]
    assert max(map(len, rows)) > 20 * text_encoder.most_characters
    whole = tf.function(lambda text: made(text))(tf.constant(rows))
    read = tf.function(text_encoder.tokens)(tf.constant(rows))
    assert read.to_list() == whole[:, :LENGTH].to_list()


@pytest.mark.parametrize("make", [tokenizer, word_pieces])
def test_the_longest_text_of_so_many_tokens_fits(make):
    """All that is not counted aside, no text of as many tokens is cut."""
    made = make()
    special = {"[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "<pad>", "<unk>"}
    spelled = {p.removeprefix("##").lstrip("▁") for p in made.get_vocabulary()}
    longest = max(spelled - special, key=len)
    # Each letter of the most characters that can be one.
    for word in (longest, longest.replace("a", "ᾳ\u0313\u0300\u0345")):
        text = " ".join([word] * LENGTH)
        assert len(text) <= most_characters(made, LENGTH)


def test_only_what_is_not_utf_8_is_changed():
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    rows = tf.constant([f"x{c}" for c in every] + [f"{c}x" for c in every])
    assert tf.reduce_all(valid(rows) == rows)
    broken = [b"a\xff", b"a\xc3", b"a\xed\xa0\x80", b"a\xc0\x80", b"\x80" * 100]
    for text in first_characters(tf.constant(broken), 9).numpy():
        assert set(text.decode()) <= {"a", "\ufffd"} and len(text.decode()) <= 9
    cut = first_characters(tf.constant(["漢\U0001f993" * 9, "abc"]), 5).numpy()
    assert [text.decode() for text in cut] == ["漢\U0001f993漢\U0001f993漢", "abc"]


def test_an_option_that_is_returned_is_utf_8(traced):
    options = tf.constant([[b"\xff", b"a\xfe"], [b"b", b"\xff"]])
    found = traced["choose"](
        passage=texts("a", "b"), question=texts("_", "_"), options=options
    )
    for text in found["option"].numpy():
        assert text.decode() in ("\ufffd", "a\ufffd", "b")


def test_gaps_are_filled_no_further_than_is_read():
    question, option = "_é" * 3000, "漢" * 3000
    filled = fill_gaps(texts(question, "a _ b_", "a"), texts(option, "c", "d"), 4000)
    first, *others = [text.decode() for text in filled.numpy()]
    assert first[:4000] == text_rows.fill_gaps(question, option)[:4000]
    assert len(first) < 13_000
    assert others == ["a c bc", "a d"]


def test_gaps_that_stay_empty_make_no_copies_of_the_option():
    """7,000 copies of 40 kB would be 280 MB."""
    question, option = texts("_é" * 7000), texts("漢" * 14_000)
    fill_gaps(texts("_"), texts("a"), 1)
    filled, taken = hostile.most_taken(lambda: fill_gaps(question, option, 14_000))
    assert filled[0].numpy().decode() == "漢" * 14_000 + "é" * 7000
    assert taken < 100


@given(
    st.lists(st.tuples(GAPS, GAPS), max_size=5),
    st.one_of(st.none(), st.integers(1, 9)),
)
def test_gaps_are_those_of_the_reference(pairs, most):
    questions, options = (
        (texts(*column) for column in zip(*pairs)) if pairs else (texts(), texts())
    )
    found = [text.decode() for text in fill_gaps(questions, options, most).numpy()]
    expected = [text_rows.fill_gaps(*pair) for pair in pairs]
    assert [text[:most] for text in found] == [text[:most] for text in expected]


@pytest.mark.slow
def test_one_long_chunk_makes_no_tensor_of_chunks_by_pieces():
    """10,000 chunks, one of 10,000 words: dense they would be 400 MB."""
    placed = tf.function(offset_tokenizer(word_pieces()).__call__)
    text = texts("a " * 10_000 + "漢" * 10_000)
    placed(texts("a"))
    before = hostile.resident()
    ids, starts, _ = placed(text)
    assert hostile.resident() - before < 200
    assert ids.row_lengths().numpy().tolist() == [20_000]
    np.testing.assert_array_equal(starts[0, -10_000:], np.arange(20_000, 30_000))


def test_a_few_hundred_hostile_requests(traced):
    served = [(name, function, INPUTS[name]) for name, function in traced.items()]
    # A function of Python has its ranks checked by TensorFlow, a signature has not.
    result = hostile.fire(served, 300, seed=5, ranks=0)
    named = {
        "classify text_pair",
        "choose options",
        "choose question",
        "answer passage",
    }
    assert named <= set(result["named"])
    assert all(count["answers"] > 10 for count in result["counts"].values())
