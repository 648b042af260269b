"""Examples that users make by hand: columns of any kind, and what is no column."""

import keras
import numpy as np
import pytest

from tfeff.data import (
    ChoiceExamples,
    Question,
    SentenceExamples,
    SpanExamples,
    TextExamples,
    TokenExamples,
)
from tfeff.datasets import squad_v1_metrics
from tfeff.datasets.phrases import check_labels

TEXTS = {
    "first": ("the cat", "a fox"),
    "second": ("a", "b"),
    "labels": [0, 1],
    "label_names": ("no", "yes"),
    "ids": ("0", "1"),
}
CHOICES = {
    "passages": ("p",),
    "questions": ("q",),
    "options": (("a", "b"),),
    "labels": [1],
    "label_names": ("A", "B", "C"),
    "ids": ("0",),
}
WORDS = {
    "words": (("the", "cat"),),
    "labels": ([1, 0],),
    "label_names": ("O", "B-X"),
    "ids": ("0",),
}
QUESTION = {
    "id": "a",
    "question": "what",
    "passage": "the small cat",
    "answers": ("cat",),
    "spans": ((10, 13),),
}


class Table(list):
    """As a data frame, which iterates over the names of its columns."""

    columns = ("text",)
    shape = (2, 1)


class Frame(list):
    """As a column of a data frame, whose rows have names that are not 0, 1, …"""

    def __getitem__(self, name):
        raise KeyError(name)


@pytest.mark.parametrize(
    ("make", "given", "name", "value", "end"),
    [
        (TextExamples, TEXTS, "first", ("ä", "b\ud800"), r"'b\\ud800' at 1"),
        (TextExamples, TEXTS, "label_names", ("a", "\udfff"), "at 1"),
        (ChoiceExamples, CHOICES, "options", (("a", "\ud83d"),), "at 0"),
        (TokenExamples, WORDS, "words", (("a", "\ud83d"),), "at 0"),
        (SentenceExamples, {}, "rows", (("a",), ("\ud83d",)), "at 1"),
        (Question, QUESTION, "question", "\ud83d", r"question='\\ud83d'"),
        (Question, QUESTION, "answers", ("\ud83d",), "at 0"),
    ],
)
def test_half_characters_are_named(make, given, name, value, end):
    with pytest.raises(ValueError, match=rf"^`{name}` must be Unicode text.* {end}$"):
        make(**given | {name: value})


@pytest.mark.parametrize("column", [list, np.array, Frame])
def test_columns_of_any_kind_are_tuples(column):
    examples = TextExamples(
        first=column(["the cat", "a fox"]),
        second=column(["a", "b"]),
        labels=column([0, 1]),
        label_names=column(["no", "yes"]),
        ids=column(["0", "1"]),
    )
    assert {name: getattr(examples, name) for name in TEXTS if name != "labels"} == {
        name: column for name, column in TEXTS.items() if name != "labels"
    }
    assert examples.sample(1, seed=1).first in (("the cat",), ("a fox",))
    question = Question(**QUESTION | {"answers": column(["cat", "dog"])})
    assert question.answers == ("cat", "dog")
    assert SpanExamples([question]).questions == (question,)
    assert Question(**QUESTION | {"spans": np.array([[10, 13]])}).spans == ((10, 13),)
    words = TokenExamples(**WORDS | {"words": [column(["the", "cat"])]})
    assert words.words == (("the", "cat"),)
    options = ChoiceExamples(**CHOICES | {"options": [column(["a", "b"])]}).options
    assert options == (("a", "b"),)
    assert SentenceExamples([column(["a", "b"])]).rows == (("a", "b"),)


def test_options_have_names():
    for labels in ([0], None):
        wrong = {"options": [("a", "b", "c", "d")], "labels": labels}
        with pytest.raises(ValueError, match="`label_names` must .* for 4 options"):
            ChoiceExamples(**CHOICES | wrong)


def test_new_examples_need_no_labels():
    words = TokenExamples([["the", "cat"], ["a"]])
    assert (words.labels, words.label_names, words.ids) == (None, None, (0, 1))
    choices = ChoiceExamples(["p"] * 2, ["q"] * 2, [["a", "b", "c"]] * 2)
    assert (choices.labels, choices.ids) == (None, (0, 1))
    assert choices.label_names == ("A", "B", "C")
    with pytest.raises(TypeError, match="`label_names` must .*label_names=None"):
        TokenExamples(words.words, labels=[[0, 0], [0]])
    with pytest.raises(ValueError, match="`examples` must have `label_names`"):
        check_labels(words, [[0, 0], [0]])


def test_ratings_are_finite_floats():
    ratings = TextExamples(**TEXTS | {"label_names": None, "labels": [1, 2]}).labels
    assert ratings.dtype == np.float32 and ratings.tolist() == [1.0, 2.0]
    assert not ratings.flags.writeable
    predicted = keras.ops.cast([1, 2], "bfloat16")  # By a model of that precision.
    ratings = TextExamples(**TEXTS | {"label_names": None, "labels": predicted}).labels
    assert ratings.dtype == np.float32 and ratings.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="finite in float32. Received: 1e.300 at 0"):
        TextExamples(**TEXTS | {"label_names": None, "labels": [1e300, 1]})


@pytest.mark.parametrize(
    ("kind", "good", "name", "value", "message"),
    [
        (TextExamples, TEXTS, "first", "ab", "sequence of strings. .*first='ab'"),
        (TextExamples, TEXTS, "first", {"ab", "b"}, "sequence of strings. .*first={"),
        (TextExamples, TEXTS, "first", {"a": 1, "b": 2}, "sequence of strings. .*{"),
        (TextExamples, TEXTS, "first", Table(["text", "b"]), r"one of its col.*'text'"),
        (TextExamples, TEXTS, "first", ("a", float("nan")), "nan at 1"),
        (TextExamples, TEXTS, "first", (None, "a"), "None at 0"),
        (TextExamples, TEXTS, "first", (b"the", "a"), "b'the' at 0"),
        (TextExamples, TEXTS, "first", np.array("the cat"), "array"),
        (TextExamples, TEXTS, "second", "ab", "sequence of strings. .*second='ab'"),
        (TextExamples, TEXTS, "ids", "01", "sequence of ids. .*ids='01'"),
        (TextExamples, TEXTS, "label_names", ("x", "x"), "different names"),
        (TextExamples, TEXTS, "label_names", "xy", "label_names='xy'"),
        (TextExamples, TEXTS, "label_names", (0, 1), "0 at 0"),
        (TextExamples, TEXTS, "labels", ["no", "yes"], "label_names.index.*dtype <U3"),
        (TextExamples, TEXTS, "labels", np.array(["a", "b"], "O"), "label_names.index"),
        (TextExamples, TEXTS, "labels", [[0, 1], [1, 0]], "one axis. .*2, 2"),
        (TextExamples, TEXTS, "labels", [[0, 1], [1, 0]], "a classifier for each"),
        (TextExamples, TEXTS, "labels", [[0], [1]], "one axis. Received: .*2, 1"),
        (ChoiceExamples, CHOICES, "options", ("ab",), "'ab' at 0"),
        (ChoiceExamples, CHOICES, "options", (("a", None),), "None.* at 0"),
        (ChoiceExamples, CHOICES, "options", ((),), "at least 1"),
        (ChoiceExamples, CHOICES, "passages", "p", "passages='p'"),
        (ChoiceExamples, CHOICES, "questions", (1,), "1 at 0"),
        (ChoiceExamples, CHOICES, "labels", [2], "from 0 to 1, .*Received: 2 at 0"),
        (ChoiceExamples, CHOICES, "label_names", None, "label_names=None"),
        (TokenExamples, WORDS, "words", ("ab",), "'ab' at 0"),
        (TokenExamples, WORDS, "words", ((1, 2),), "1, 2.* at 0"),
        (TokenExamples, WORDS, "words", (["the", "cat"], {"a"}), "{'a'} at 1"),
        (TokenExamples, WORDS, "labels", (None,), "integers"),
        (TokenExamples, WORDS, "labels", (["O", "B-X"],), "label_names.index.* of 0 "),
        (TokenExamples, WORDS, "labels", ([[1, 0]],), "one axis. .*of 0 of shape"),
        (TokenExamples, WORDS, "labels", {0: [1, 0]}, "sequence of labels"),
        (Question, QUESTION, "answers", "cat", "answers='cat'"),
        (Question, QUESTION, "answers", (None,), "None at 0"),
        (Question, QUESTION, "question", None, "question=None"),
        (Question, QUESTION, "passage", None, "passage=None"),
        (Question, QUESTION, "passage", b"the small cat", "passage=b'the"),
        (Question, QUESTION, "spans", ((10.5, 13.2),), "pairs of integers"),
        (Question, QUESTION, "spans", (10, 13), "pairs of integers"),
        (SpanExamples, {"questions": ()}, "questions", "ab", "questions='ab'"),
        (SpanExamples, {"questions": ()}, "questions", ("a",), "'a' at 0"),
        (SpanExamples, {"questions": ()}, "skipped", "a", "skipped='a'"),
    ],
)
def test_what_is_no_column_is_named(kind, good, name, value, message):
    kind(**good)
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must .*{message}"):
        kind(**good | {name: value})


@pytest.mark.parametrize(
    "ratings",
    [[float("nan"), 1.0], [float("inf"), 1.0], [1e300, 1.0], ["1", "2"], [None, 2.0]]
    + [[[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0, 3.0]], [True, False], 1.0],
    ids=str,
)
def test_wrong_ratings_are_named(ratings):
    with pytest.raises((TypeError, ValueError), match="`labels` must .*Received"):
        TextExamples(**TEXTS | {"label_names": None, "labels": ratings})


def test_a_sample_of_questions():
    questions = [Question(**QUESTION | {"id": str(index)}) for index in range(9)]
    found = SpanExamples(questions, skipped=["one"], mismatched=questions[:1])
    sample = found.sample(4, seed=1)
    ids = [question.id for question in sample.questions]
    assert ids == sorted(set(ids)) and len(ids) == 4
    assert sample.skipped == ("one",) and sample.mismatched == tuple(questions[:1])


@pytest.mark.parametrize("seed", [-1, "x", None, 1.5, True])
def test_the_seed_of_a_sample_is_named(seed):
    for examples in (TextExamples(**TEXTS), SentenceExamples([("a", "b")])):
        with pytest.raises((TypeError, ValueError), match="`seed` must be an integer"):
            examples.sample(1, seed=seed)


def test_an_answer_is_no_sequence_of_letters():
    """Its letters would be the right answers: the score would be 0."""
    questions = [Question(**QUESTION | {"answers": ["cat"]})]
    assert squad_v1_metrics(questions, {"a": "cat"})["f1"] == 100


@pytest.mark.parametrize(
    ("labels", "end"),
    [
        ([1.0, float("nan"), 0.0], "float64, with nan at 1"),
        (np.array([1, None, 0], object), "object, with None at 1"),
        ([0.0, 1.0, 0.5], "float64, with 0.5 at 2"),
        ([0.0, 1.0, 1.0], "float64"),
    ],
    ids=str,
)
def test_the_first_label_that_is_no_integer_is_named(labels, end):
    with pytest.raises(TypeError) as raised:
        TextExamples(("a", "b", "c"), None, labels, ("no", "yes"))
    assert str(raised.value) == (
        f"`labels` must be integers. Received: labels of dtype {end}"
    )


def test_what_a_notebook_shows():
    texts = TextExamples(["the cat " * 99] * 3000, labels=[0.5] * 3000)
    shown = repr(texts)
    assert shown.startswith("<TextExamples of 3,000: first=('the cat the")
    assert ", labels=array([0.5, " in shown and "ids=(0, 1, 2, ...)" in shown
    assert "second" not in shown and len(shown) < 300
    assert repr(TextExamples(["a"])) == "<TextExamples of 1: first=('a',), ids=(0,)>"
    words = TokenExamples([["a"] * 999] * 99, None, ("O", "B-X"), ["0"] * 99)
    assert repr(words) == (
        "<TokenExamples of 99: words=(('a', 'a', 'a', ...), ('a', 'a', 'a', ...), "
        "('a', 'a', 'a', ...), ...), label_names=('O', 'B-X'), "
        "ids=('0', '0', '0', ...)>"
    )
    questions = SpanExamples([Question("a", "what " * 99, "the cat " * 99)] * 400)
    assert len(repr(questions)) < 300 and " of 400: " in repr(questions)
    assert len(repr(SentenceExamples([("the cat " * 99, "b")] * 99))) < 300
    choices = ChoiceExamples(**CHOICES)
    assert repr(choices).startswith("<ChoiceExamples of 1: passages=('p',), ")
