"""Tokens with their characters, windows, and answers from logits."""

import collections
import re
import string
import unicodedata
import warnings

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import offsets as reference_offsets
from tests.reference import spans as reference
from tests.subjects import sentence_pieces
from tests.subjects.characters import (
    CORPUS,
    SPECIAL,
    word_piece_vocabulary,
    word_pieces,
)
from tests.subjects.corpus import token_lists
from tfeff.data import (
    Question,
    best_spans,
    load_tokenizer,
    make_span_features,
    save_tokenizer,
    train_tokenizer,
)
from tfeff.data.finetuning import span_decoding, span_features
from tfeff.data.finetuning.span_decoding import best_in_windows
from tfeff.data.finetuning.span_features import token_span
from tfeff.data.finetuning.windows import windows_of
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.offset_tokenizer import encode_with_offsets, offset_tokenizer
from tfeff.datasets import read_squad, squad_v1_metrics

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("cased", "kerashub")]


@pytest.fixture(scope="module", params=["unigram", "bert", *SLOW])
def any_tokenizer(request):
    if request.param in ("unigram", "cased"):
        lowercase = request.param == "unigram"
        return train_tokenizer(CORPUS, vocabulary_size=64, lowercase=lowercase)
    if request.param == "bert":
        return word_pieces()
    return keras_hub.tokenizers.BertTokenizer(word_piece_vocabulary(), lowercase=True)


@pytest.fixture(scope="module")
def encode(any_tokenizer):
    """Ids and places of texts, by a tokenizer that is made once."""
    tokens = offset_tokenizer(any_tokenizer)

    def encode(texts):
        for ids, starts, ends in zip(*tokens(tf.constant(texts))):
            yield ids.numpy(), np.stack([starts, ends], axis=1)

    return encode


def cut(text, places):
    return [text[start:end] for start, end in places]


def test_places_of_word_pieces():
    expected = {
        "The fox": ["The", "fox"],
        "  The\t \nfox  ": ["The", "fox"],
        "fox,fox.": ["fox", ",", "fox", "."],
        "Café": ["Café"],
        "Cafe\u0301 fox": ["Cafe\u0301", "fox"],
        "CAFÉs": ["CAFÉ", "s"],
        "cafe\u0301s": ["cafe\u0301", "s"],
        "漢字": ["漢", "字"],
        "(字)fox": ["(", "字", ")", "fox"],
        "\u200bf\u200box\u200b": ["f\u200box"],
        "😀x": ["😀x"],
        "": [],
        " \u200b ": [],
    }
    tokenizer = word_pieces()
    found = encode_with_offsets(tokenizer, list(expected))
    for (text, tokens), (ids, places) in zip(expected.items(), found, strict=True):
        assert cut(text, places) == tokens
        assert ids.tolist() == list(tokenizer(text))
        assert (ids.dtype, places.dtype, places.shape[1]) == (np.int32, np.int32, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fox", ["fox"]),
        ("  FOX \t fox ", ["FOX", "fox"]),
        ("2.fox", ["2", ".", "f", "o", "x"]),
        # Two or three pieces for one character: all cover it.
        ("\ufb01ve", ["\ufb01", "\ufb01", "v", "e"]),
        ("2½.", ["2", "½", "½", "½", "."]),
        # A space of its own before a character without a piece.
        ("fox ☃", ["fox", "", "☃"]),
        ("fox \u200b\u0001 fox", ["fox", "fox"]),
        ("Ｆox", ["Ｆox"]),
        ("", []),
        (" \t\u3000", []),
    ],
)
def test_places_of_sentence_pieces(text, expected):
    pieces = ["▁fox", "▁f", "▁", *"ehitvxo.12f"]  # As training gives them, or not.
    tokenizer = sentence_pieces.with_pieces(pieces)
    ((ids, places),) = encode_with_offsets(tokenizer, [text])
    assert ids.tolist() == list(tokenizer(text))
    # A mark of a word's begin, on its own, is no character where the text begins.
    first = next((i for i, place in enumerate(places) if place[1] > 0), 0)
    assert cut(text, places[first:]) == expected


texts = st.lists(
    st.sampled_from(
        [*"abcxyzTHEé0129.,-'\"()$ ", "  ", "\t", "\n", "漢", "ß", "½", "\ufb01", "İ"]
        + ["e\u0301", "\u0301", "\u200b", "\u00a0", "\u2028", "☃", "😀", "▁", "[CLS]"]
        + ["\x00", "\x1c", "Ａ", "…", "ｶﾞ", "한"]
    ),
    max_size=40,
).map("".join)


@pytest.mark.quick("unigram")
@settings(max_examples=40)
@given(st.lists(texts, min_size=1, max_size=4))
def test_any_text(any_tokenizer, encode, batch):
    rows = list(encode(batch))
    assert [ids.tolist() for ids, _ in rows] == [
        [int(id) for id in row] for row in token_lists(any_tokenizer, batch)
    ]
    for text, (_, places) in zip(batch, rows):
        starts, ends = places.T
        assert (starts >= 0).all() and (starts <= ends).all()
        assert (ends <= len(text)).all()
        visible = starts < ends
        assert (np.diff(starts[visible]) >= 0).all()
        assert (np.diff(ends[visible]) >= 0).all()
        covered = {i for start, end in places for i in range(start, end)}
        for index, character in enumerate(text):
            if character.isascii() and character.isalnum():
                assert index in covered
        for word in cut(text, places[visible]):
            for edge in (word[0], word[-1]):
                assert not edge.isspace() and unicodedata.category(edge) != "Cf"


words = st.text(st.sampled_from("abcdexyzTHE019.,-'"), min_size=1, max_size=9)
spaces = st.sampled_from([" ", "  ", "\t", " \n", "\u00a0", " \u2009"])


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(words, spaces), min_size=1, max_size=9), st.data())
def test_pieces_are_the_text_and_spans_come_back(any_tokenizer, encode, parts, data):
    text = "".join(word + space for word, space in parts)
    ((ids, places),) = encode([text])
    sentence_pieces = hasattr(any_tokenizer, "proto")
    folded = text if "T" in any_tokenizer.get_vocabulary() else text.lower()
    pieces = [any_tokenizer.id_to_token(int(id)) for id in ids]
    # KerasHub's own reads words that other spaces join as one.
    splits = sentence_pieces or isinstance(any_tokenizer, BertTokenizer)
    if splits or "\u00a0" not in text and "\u2009" not in text:
        for piece, (start, end) in zip(pieces, places):
            if piece not in ("<unk>", "[UNK]"):
                plain = piece.removeprefix("##").replace("▁", "")
                assert folded[start:end] == plain
    # A span of whole tokens comes back as it was.
    visible = np.flatnonzero(places[:, 0] < places[:, 1])
    first = data.draw(st.sampled_from(visible.tolist()))
    last = data.draw(st.sampled_from([i for i in visible.tolist() if i >= first]))
    start, end = places[first, 0], places[last, 1]
    found = token_span(places, start, end)
    assert (places[found[0], 0], places[found[1], 1]) == (start, end)
    # Any other span is within the one that comes back.
    start = data.draw(st.sampled_from(range(len(text))))
    end = data.draw(st.sampled_from(range(start + 1, len(text) + 1)))
    found = token_span(places, start, end)
    gold = text[start:end]
    if gold.strip():
        start += len(gold) - len(gold.lstrip())
        end -= len(gold) - len(gold.rstrip())
        assert places[found[0], 0] <= start and end <= places[found[1], 1]
    elif gold.isascii():  # Others are letters to some tokenizers.
        assert found is None


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 20))
def test_windows_leave_nothing_out_and_stop_in_time(count, room, stride):
    windows = windows_of(room, np.array([count]), stride)
    question, starts, sizes = (tensor.numpy().tolist() for tensor in windows)
    assert starts == list(reference.window_starts(count, room, stride))
    assert sizes == [min(room, count - start) for start in starts]
    assert set(question) == {0}
    assert starts[0] == 0
    assert {i for s in starts for i in range(s, s + room)} >= set(range(count))
    assert set(np.diff(starts)) <= {min(stride, room)}
    assert all(start + room < count for start in starts[:-1])


@pytest.fixture(scope="module")
def letters():
    """A tokenizer for which each letter is a token."""
    characters = list(string.ascii_lowercase)
    return keras_hub.tokenizers.BertTokenizer(
        [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    )


def test_windows_by_hand(letters):
    questions = [
        Question("1", "q", "abcdefg", ("cde",), ((2, 5),)),
        Question("2", "qr", "xy", ("y",), ((1, 2),)),
        Question("3", "q", "abcdefg", ("g", "b"), ((6, 7), (1, 2))),
        Question("4", "q", "xyz"),
    ]
    features = make_span_features(questions, letters, sequence_length=8, stride=2)
    pieces = [letters.id_to_token(int(id)) for id in features.token_ids.flat]
    pieces = [piece.removeprefix("##").strip("[]") for piece in pieces]
    rows = np.reshape(pieces, (-1, 8)).tolist()
    first = [
        ["CLS", "q", "SEP", "a", "b", "c", "d", "SEP"],
        ["CLS", "q", "SEP", "c", "d", "e", "f", "SEP"],
        ["CLS", "q", "SEP", "e", "f", "g", "SEP", "PAD"],
    ]
    second = ["CLS", "q", "r", "SEP", "x", "y", "SEP", "PAD"]
    last = ["CLS", "q", "SEP", "x", "y", "z", "SEP", "PAD"]
    assert rows == [*first, second, *first, last]
    assert features.question_indices.tolist() == [0, 0, 0, 1, 2, 2, 2, 3]
    assert features.start_positions.tolist() == [0, 3, 0, 5, 4, 0, 5, 0]
    assert features.end_positions.tolist() == [0, 5, 0, 5, 4, 0, 5, 0]
    assert features.padding_mask.tolist()[3] == [1, 1, 1, 1, 1, 1, 1, 0]
    assert features.segment_ids.tolist()[3] == [0, 0, 0, 0, 1, 1, 1, 0]
    assert features.segment_ids.tolist()[0] == [0, 0, 0, 1, 1, 1, 1, 1]
    assert features.window_offsets(2).tolist() == [[4, 5], [5, 6], [6, 7]]
    assert features.window_offsets(3).tolist() == [[0, 1], [1, 2]]
    assert len(features) == 8
    assert {k: v.dtype for k, v in features.inputs.items()} == dict.fromkeys(
        ("token_ids", "segment_ids", "padding_mask"), np.int32
    )


def test_a_stride_beyond_the_window_leaves_no_gap(letters):
    features = make_span_features(
        [Question("1", "q", "abcdefg")], letters, 7, stride=99
    )
    assert features.window_starts.tolist() == [0, 3, 6]


def test_bad_arguments(letters, tokenizer):
    questions = [Question("1", "q", "abc"), Question("2", "qrst", "abc")]
    message = (
        r"`sequence_length` must be at least 8 for question '2' of 4 tokens. "
        r"Received: sequence_length=7"
    )
    with pytest.raises(ValueError, match=message):
        make_span_features(questions, letters, 7)
    assert len(make_span_features(questions, letters, 8)) == 4
    with pytest.raises(ValueError, match="`stride` must be an integer of at least 1"):
        make_span_features(questions, letters, 9, stride=0)
    with pytest.raises(ValueError, match="`sequence_length` must be an integer"):
        make_span_features(questions, letters, 3)
    with pytest.raises(ValueError, match="`questions` must hold questions"):
        make_span_features([], letters, 9)
    with pytest.raises(TypeError, match="sequence of `Question`s. Received: 'a' at 0"):
        make_span_features(["a"], letters, 9)
    with pytest.raises(ValueError, match="passages with text. Received: question '3'"):
        make_span_features([Question("3", "q", " \u200b")], tokenizer, 30)
    with pytest.raises(TypeError, match="ByteTokenizer without .*cls_token_id"):
        make_span_features(questions, keras_hub.tokenizers.ByteTokenizer(), 9)
    padding = keras_hub.tokenizers.BertTokenizer([*SPECIAL, "q"], sequence_length=4)
    with pytest.raises(ValueError, match="`tokenizer` must neither pad"):
        make_span_features(questions, padding, 9)


def check_features(questions, tokenizer, length, stride):
    """The features of questions are the reference's."""
    features = make_span_features(questions, tokenizer, length, stride)
    texts = [text for q in questions for text in (q.question, q.passage)]
    encoded = reference_offsets.encode_with_offsets(tokenizer, texts)
    special = [getattr(tokenizer, f"{n}_token_id") for n in ("cls", "sep", "pad")]
    rows = []
    for index, question in enumerate(questions):
        (asked, _), (passage, offsets) = next(encoded), next(encoded)
        assert list(map(tuple, features.offsets[index])) == offsets
        spans = question.spans
        found = reference.windows(
            asked, passage, offsets, spans, length, stride, *special
        )
        rows += [(*row, index) for row in found]
    ids, segments, mask, targets, begins, firsts, indices = zip(*rows)
    for name, expected in {
        "token_ids": ids,
        "segment_ids": segments,
        "padding_mask": mask,
        "start_positions": [start for start, _ in targets],
        "end_positions": [end for _, end in targets],
        "passage_positions": begins,
        "window_starts": firsts,
        "question_indices": indices,
    }.items():
        assert getattr(features, name).dtype == np.int32
        np.testing.assert_array_equal(getattr(features, name), expected)


@st.composite
def asked_questions(draw):
    passages = draw(st.lists(texts.map(lambda t: t + "x"), min_size=1, max_size=3))
    questions = []
    for number in range(draw(st.integers(1, 5))):
        passage = draw(st.sampled_from(passages))
        spans = []
        for _ in range(draw(st.integers(0, 2))):
            start = draw(st.integers(0, len(passage) - 1))
            spans.append((start, draw(st.integers(start + 1, len(passage)))))
        asked = draw(st.sampled_from(["", "who", "Fox ½?"]))
        questions.append(Question(str(number), asked, passage, spans=tuple(spans)))
    return questions


@settings(max_examples=40, derandomize=True)
@given(asked_questions(), st.integers(16, 40), st.integers(1, 30))
def test_features_are_those_of_the_reference(tokenizer, questions, length, stride):
    check_features(questions, tokenizer, length, stride)


def test_features_of_many_windows(any_tokenizer, monkeypatch):
    passages = ["The quick\tbrown 漢 fox, " * 9, "cafe\u0301 ½ \u200b times", "é"]
    questions = [
        Question(f"{i}", "Who?" * (i % 3), passage, spans=((0, 1), (i % 9, 9))[: i % 4])
        if len(passage) > 9
        else Question(f"{i}", "", passage)
        for i, passage in enumerate(passages * 4)
    ]
    monkeypatch.setattr(span_features, "_WINDOWS_AT_ONCE", 7)
    check_features(questions, any_tokenizer, 30, 5)


def best_by_hand(features, starts, ends, longest):
    """(score, start, end, score of no answer) for each question, by trying all."""
    found = {}
    for row, index in enumerate(features.question_indices):
        best = found.setdefault(index, [-np.inf, None, None, np.inf])
        best[3] = min(best[3], starts[row, 0] + ends[row, 0])
        begin = features.passage_positions[row]
        places = features.window_offsets(row)
        logits = starts[row, begin:], ends[row, begin:]
        span = reference.best_span(places, *logits, longest)
        if span[0] > best[0]:
            best[:3] = span
    return [found[index] for index in range(len(features.questions))]


def test_best_spans_of_many_windows(tokenizer, monkeypatch):
    monkeypatch.setattr(span_decoding, "_WINDOWS_AT_ONCE", 2)
    check_best_spans(tokenizer, 1, 4, 2, False)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_best_spans_against_trying_all(tokenizer, seed, longest, stride, ties):
    check_best_spans(tokenizer, seed, longest, stride, ties)


def check_best_spans(tokenizer, seed, longest, stride, ties):
    generator = np.random.default_rng(seed)
    passages = ["the  time\u2009is ☃ now", "but  not", "a ½ of it or more, so be it"]
    questions = [Question(str(i), "who", p) for i, p in enumerate(passages)]
    length = 2 + max(len(ids) for ids in token_lists(tokenizer, ["who"])) + 6
    features = make_span_features(questions, tokenizer, length, stride)
    starts, ends = generator.normal(size=(2, *features.token_ids.shape))
    if ties:
        starts, ends = starts.round(), ends.round()
    expected = best_by_hand(features, starts, ends, longest)
    answers = best_spans(features, starts, ends, longest)
    for answer, question, (score, start, end, none) in zip(
        answers, questions, expected
    ):
        assert (answer.id, answer.start, answer.end) == (question.id, start, end)
        assert answer.text == question.passage[start:end] != ""
        assert answer.score == pytest.approx(score)
        odds = np.exp(none) / (np.exp(none) + np.exp(score))
        assert answer.no_answer_probability == pytest.approx(odds)
    gaps = sorted(none - score for score, _, _, none in expected)
    threshold = (gaps[0] + gaps[1]) / 2
    answers = best_spans(features, starts, ends, longest, threshold)
    for answer, (score, start, end, none) in zip(answers, expected):
        given_up = none - score > threshold
        assert (answer.start, answer.end) == ((0, 0) if given_up else (start, end))
        assert (answer.text == "") == given_up
        assert answer.score == pytest.approx(score)


def test_what_is_no_number_is_no_answer():
    logits = np.array([[0.0, 1, 2], [np.nan, np.inf, 2], [np.nan, -np.inf, np.inf]])
    found = best_in_windows(*[tf.constant(logits)] * 2, np.full((3, 3), True), 3)
    assert [x.numpy().tolist() for x in found] == [
        [4, 4, -np.inf],
        [2, 2, 0],
        [2, 2, 0],
    ]


def test_bad_logits(letters):
    features = make_span_features([Question("1", "q", "abc")], letters, 8)
    good = np.zeros((1, 8))
    with pytest.raises(
        ValueError, match=r"`start_logits` must have the shape \(1, 8\)"
    ):
        best_spans(features, good[:, :7], good)
    with pytest.raises(ValueError, match="`end_logits` must be finite"):
        best_spans(features, good, good * np.nan)
    for wrong in (good.astype(str), good.astype(complex), [[10**400] * 8]):
        with pytest.raises(TypeError, match="`start_logits` must be an array of num"):
            best_spans(features, wrong, good)
    thresholds = (0.5, np.float32(0.5), np.array(0.5), tf.constant(0.5))
    found = [best_spans(features, good, good, 3, x) for x in thresholds]
    assert found == [found[0]] * 4
    for wrong in ("0.5", np.nan, np.array([0.5]), np.array("0.5")):
        with pytest.raises(ValueError, match="`no_answer_threshold` must be a number"):
            best_spans(features, good, good, 3, wrong)
    with pytest.raises(ValueError, match="`max_answer_tokens` must be an integer"):
        best_spans(features, good, good, max_answer_tokens=0)
    extreme = np.full((1, 8), 1e30)
    (answer,) = best_spans(features, extreme, extreme)
    assert 0 <= answer.no_answer_probability <= 1


@pytest.fixture(scope="module", params=["sentence_piece", "word_piece"])
def trained(request, data_dir, tmp_path_factory):
    """A tokenizer as for a real experiment, and the questions."""
    squad = data_dir / "squad"
    if not squad.is_dir():
        pytest.skip(f"no {squad}")
    files = [squad / "train-v1.1.json", squad / "dev-v1.1.json"]
    questions = [q for file in files for q in read_squad(file).questions]
    passages = list(dict.fromkeys(question.passage for question in questions))
    if request.param == "sentence_piece":
        tokenizer = train_tokenizer(passages, vocabulary_size=4000)
        path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.spm"
        save_tokenizer(tokenizer, path)
        return load_tokenizer(path), questions
    found = collections.Counter(re.findall(r"\w+", " ".join(passages).lower()))
    words = [word for word, count in found.most_common(3000) if len(word) > 1]
    letters = sorted({c for passage in passages for c in passage.lower()})
    vocabulary = [*SPECIAL, *words, *letters, *(f"##{c}" for c in letters)]
    tokenizer = BertTokenizer(vocabulary, lowercase=True, strip_accents=True)
    return tokenizer, questions


def test_gold_spans_of_real_questions_come_back(trained, capsys):
    tokenizer, questions = trained
    features = make_span_features(questions, tokenizer, 384, stride=128)
    positions = np.arange(384)
    starts = 9.0 * (positions == features.start_positions[:, None])
    ends = 9.0 * (positions == features.end_positions[:, None])
    held = set(features.question_indices[features.start_positions > 0])
    assert held == set(range(len(questions)))  # Each answer is whole in some window.
    # A window without the answer must not win by the place of its zeros.
    none = features.start_positions == 0
    starts[none], ends[none] = -9.0, -9.0
    longest = int((features.end_positions - features.start_positions).max()) + 1
    answers = best_spans(features, starts, ends, longest)
    predictions = {answer.id: answer.text for answer in answers}
    missed = {}
    for question, answer in zip(questions, answers):
        assert question.passage[answer.start : answer.end] == answer.text
        exact = squad_v1_metrics([question], predictions={question.id: answer.text})
        if exact["exact_match"] < 100:
            gold = question.spans[0]
            missed[question.id] = _reason(question, answer, gold)
    with capsys.disabled():
        for name, reason in missed.items():
            print(f"\n{type(tokenizer).__name__}, {name}: {reason}")
    assert len(missed) <= 0.005 * len(questions)
    scores = squad_v1_metrics(questions, predictions)
    right = 100 * (1 - len(missed) / len(questions))
    assert scores["exact_match"] == pytest.approx(right)
    others = [question for question in questions if question.id not in missed]
    kept = {question.id: predictions[question.id] for question in others}
    assert squad_v1_metrics(others, kept) == {"exact_match": 100.0, "f1": 100.0}


def _reason(question, answer, gold):
    sides = []
    if answer.start < gold[0]:
        sides.append("begins inside of a token")
    if answer.end > gold[1]:
        sides.append("ends inside of a token")
    assert sides, "a span that is cut has no reason"
    text = question.passage[gold[0] : gold[1]]
    return f"the answer {text!r} {' and '.join(sides)}; it became {answer.text!r}"


def test_answers_without_their_places_are_told():
    question = Question("a", "Which?", "12 green bottles", answers=("green",))
    features = make_span_features([question], word_pieces(), 16)
    with pytest.warns(UserWarning, match="1 of 1 questions have answers and no spans"):
        features.dataset(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features.dataset(1, shuffle=False, repeat=False)


def test_wide_spaces_end_words():
    passage = "12 green\u00a0bottles\u3000hanging\u2003on"
    question = Question("a", "Which?", passage, answers=("bottles",), spans=((9, 16),))
    features = make_span_features([question], word_pieces(), 32)
    start, end = features.start_positions[0], features.end_positions[0]
    first = features.passage_positions[0]
    places = features.window_offsets(0)
    assert passage[places[start - first][0] : places[end - first][1]] == "bottles"
