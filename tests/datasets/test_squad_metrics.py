"""The official scores of SQuAD."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfeff.data import Question, SpanAnswer, SpanExamples
from tfeff.datasets import get, squad_v1_metrics, squad_v2_metrics
from tfeff.datasets.squad import withhold


def asked(name, *answers):
    return Question(name, "Who?", "…", answers)


def test_version_1():
    questions = [asked("a", "the Ada"), asked("b", "x", "red green"), asked("c", "y")]
    predictions = {"a": "ADA!", "b": "green red blue", "c": "z"}
    expected = {"f1": 100 * (1 + 0.8 + 0) / 3, "exact_match": 100 / 3}
    found = squad_v1_metrics(SpanExamples(tuple(questions)), predictions)
    assert found == pytest.approx(expected)
    assert squad_v1_metrics(questions, predictions) == pytest.approx(expected)


def test_texts_without_words():
    """Of two of them the first version has an F1 of 0, the second one of 1."""
    assert squad_v1_metrics([asked("a", "the")], {"a": "a"}) == {
        "f1": 0.0,
        "exact_match": 100.0,
    }
    found = squad_v2_metrics(
        [asked("a", "the", "Ada"), asked("b")], {"a": "", "b": "a"}
    )
    assert (found["HasAns_exact"], found["HasAns_f1"]) == (0, 0)
    assert (found["NoAns_exact"], found["NoAns_f1"]) == (100, 100)


def test_the_threshold_is_the_lowest_of_the_best():
    questions = [asked("a"), asked("b", "Ada"), asked("c"), asked("d", "Ada")]
    predictions = {"a": "x", "b": "Ada", "c": "x", "d": "Ada"}
    likely = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    found = squad_v2_metrics(questions, predictions, likely)
    # Withheld, all of them score 50, as they do with every second threshold.
    assert (found["best_exact"], found["best_exact_thresh"]) == (50, 0.0)


def test_version_2():
    questions = [asked("a", "Ada"), asked("b"), asked("c"), asked("d", "red green")]
    predictions = {"a": "Ada", "b": "", "c": "what", "d": "red"}
    found = squad_v2_metrics(questions, predictions)
    assert found["exact"] == pytest.approx(50)
    assert found["f1"] == pytest.approx(100 * (1 + 1 + 0 + 2 / 3) / 4)
    assert found["HasAns_f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert (found["NoAns_exact"], found["NoAns_f1"], found["total"]) == (50, 50, 4)
    # With a threshold between 0.2 and 0.7 the wrong answer to c is withdrawn.
    likely = {"a": 0.1, "b": 0.9, "c": 0.7, "d": 0.2}
    tuned = squad_v2_metrics(questions, predictions, likely)
    assert tuned["f1"] == found["f1"]
    assert tuned["best_f1"] == pytest.approx(100 * (1 + 1 + 1 + 2 / 3) / 4)
    assert tuned["best_f1_thresh"] == 0.2
    # Precision and recall after a, and after d: 1 and 1/2, then 5/6 and 5/6.
    areas = [tuned[f"pr_{name}_ap"] for name in ("exact", "f1", "oracle")]
    assert areas == pytest.approx([50, 100 * (1 / 2 + 5 / 6 / 3), 100])
    # Where d and c are equally likely, both come together: 5/9 and 5/6.
    tied = squad_v2_metrics(questions, predictions, likely | {"c": 0.2})
    assert tied["pr_f1_ap"] == pytest.approx(100 * (1 / 2 + 5 / 9 / 3))


@pytest.mark.parametrize("metrics", [squad_v1_metrics, squad_v2_metrics])
def test_predictions_are_for_the_questions(metrics):
    questions = [asked("a", "x"), asked("b", "x")]
    with pytest.raises(ValueError, match="they lack 1 of them, such as 'b'"):
        metrics(questions, {"a": "x"})
    with pytest.raises(ValueError, match="they have 1 others, such as 'c'"):
        metrics(questions, {"a": "x", "b": "x", "c": "x"})
    with pytest.raises(ValueError, match="`questions` must hold questions"):
        metrics([], {})


def test_bad_input():
    questions = [asked("a", "x"), asked("b")]
    predictions = {"a": "x", "b": ""}
    with pytest.raises(ValueError, match="`questions` must have answers.*'b' without"):
        squad_v1_metrics(questions, predictions)
    with pytest.raises(ValueError, match="`questions` must have answers.*'b' without"):
        squad_v1_metrics(iter(questions), predictions)
    with pytest.raises(ValueError, match="--task=squad2.* 1 of 2 questions without an"):
        get("squad1").metrics(SpanExamples(tuple(questions)), predictions)
    for bad in (None, 3, "a", [3]):
        with pytest.raises(TypeError, match="`questions` must be a sequence"):
            squad_v1_metrics(bad, predictions)
    for bad in (None, 3, ["a", "b"]):
        with pytest.raises(TypeError, match="`predictions` must be a mapping"):
            squad_v1_metrics(questions, bad)
    with pytest.raises(ValueError, match="`no_answer_probabilities` must be for the"):
        squad_v2_metrics(questions, predictions, {"a": 0.0})
    for bad in (1.5, -0.1, float("nan"), "x"):
        with pytest.raises(ValueError, match=r"must be from 0 to 1. Received: .*'a'"):
            squad_v2_metrics(questions, predictions, {"a": bad, "b": 0.0})
    for metrics in (squad_v1_metrics, squad_v2_metrics):
        for bad in (None, 1, b"x", answers(a=("x", 0.5))[0]):
            with pytest.raises(TypeError, match="`predictions` must be texts.*'a'"):
                metrics(questions[:1], {"a": bad})
        with pytest.raises(
            ValueError, match="`questions` must have different ids.*2 t"
        ):
            metrics([asked("a", "x"), asked("a", "y")], {"a": "x"})


@pytest.mark.parametrize("name", ["SQuAD1.1", "SQuAD2.0"])
def test_predictions_are_texts_one_for_each_question(name, tmp_path):
    dataset, examples = get(name), SpanExamples((asked("a", "x"),))
    twice = (*answers(a=("x", 0.5)), *answers(a=("y", 0.5)))
    with pytest.raises(ValueError, match="`predictions` must have different ids"):
        dataset.metrics(examples, twice)
    for wrong, error in ((twice, ValueError), ({"a": None}, TypeError)):
        with pytest.raises(error, match="`predictions` must"):
            dataset.write_predictions("dev", examples, wrong, tmp_path)
    assert not list(tmp_path.iterdir())


text = st.lists(
    st.sampled_from(["a", "The", "cat,", "CAT", "mat", "…", "?!", "an", "½", "İ"]),
    max_size=4,
).map(" ".join)
asked_and_answered = st.lists(
    st.tuples(
        st.lists(text, max_size=3),
        text,
        st.sampled_from([0.0, 0.1, 0.5, 0.5001, 1.0]),
    ),
    min_size=1,
    max_size=6,
)


@given(asked_and_answered)
def test_scores_are_those_of_the_official_scripts(rows):
    """Model Garden has the scripts."""
    v1 = pytest.importorskip("official.nlp.tools.squad_evaluate_v1_1")
    v2 = pytest.importorskip("official.nlp.tools.squad_evaluate_v2_0")
    names = [f"q{number}" for number in range(len(rows))]
    questions = [asked(name, *row[0]) for name, row in zip(names, rows)]
    predictions = {name: row[1] for name, row in zip(names, rows)}
    probabilities = {name: row[2] for name, row in zip(names, rows)}

    def file(questions):
        qas = [
            {"id": q.id, "answers": [{"text": text} for text in q.answers]}
            for q in questions
        ]
        return [{"paragraphs": [{"qas": qas}]}]

    for given_ones in (None, probabilities):
        found = squad_v2_metrics(questions, predictions, given_ones)
        expected = v2.evaluate(file(questions), predictions, given_ones)
        # SQuAD's own script says "best" where Model Garden's says "final".
        expected = {k.replace("final_", "best_"): v for k, v in expected.items()}
        assert list(found) == list(expected)
        assert found == pytest.approx(expected)
    answered = [q for q in questions if q.answers]
    if answered:
        predictions = {q.id: predictions[q.id] for q in answered}
        expected = v1.evaluate(file(answered), predictions)
        found = squad_v1_metrics(answered, predictions)
        assert found["f1"] == pytest.approx(100 * expected["final_f1"])
        assert found["exact_match"] == pytest.approx(100 * expected["exact_match"])


def answers(**found):
    """Answers with the text and the probability that there is none."""
    return tuple(
        SpanAnswer(name, text, 0, 0, 0.0, p) for name, (text, p) in found.items()
    )


@pytest.mark.parametrize("name", ["SQuAD1.1", "NewsQA"])
def test_data_sets_of_answers(name, tmp_path):
    dataset = get(name)
    examples = SpanExamples((asked("a", "the Ada"), asked("b", "x", "red green")))
    given = answers(a=("ADA!", 0.1), b=("green red blue", 0.9))
    expected = {"f1": 0.9, "exact_match": 0.5}
    texts = {answer.id: answer.text for answer in given}
    for predictions in (given, list(given), texts):
        found = dataset.metrics(examples, predictions)
        assert list(found) == list(dataset.metric_names)
        assert found == pytest.approx(expected)
        folder = tmp_path / type(predictions).__name__
        (path,) = dataset.write_predictions("dev", examples, predictions, folder)
        assert path == str(folder / "predictions.json")
        assert json.loads((folder / "predictions.json").read_text()) == texts


def test_data_set_with_questions_that_have_no_answer(tmp_path):
    dataset = get("SQuAD2.0")
    questions = asked("a", "Ada"), asked("b"), asked("c"), asked("d", "red green")
    examples = SpanExamples(questions)
    given = answers(a=("Ada", 0.1), b=("", 0.9), c=("what", 0.7), d=("red", 0.2))
    found = dataset.metrics(examples, given)
    assert list(found) == list(dataset.metric_names)
    assert found == pytest.approx(
        {"f1": (3 + 2 / 3) / 4, "exact_match": 0.75, "no_answer_threshold": 0.2}
    )
    assert found["no_answer_threshold"] == 0.2  # no rounding: that of a question
    decided = withhold(given, found["no_answer_threshold"])
    assert [answer.text for answer in decided] == ["Ada", "", "", "red"]
    texts = {answer.id: answer.text for answer in decided}
    # Texts are scored as they are.
    assert dataset.metrics(examples, texts) == pytest.approx(
        {"f1": found["f1"], "exact_match": 0.75}
    )
    undecided = {answer.id: answer.text for answer in given}
    assert dataset.metrics(examples, undecided)["exact_match"] == 0.5
    paths = dataset.write_predictions("dev", examples, decided, tmp_path)
    assert paths == tuple(
        str(tmp_path / name) for name in ("predictions.json", "null_odds.json")
    )
    written = [json.loads(Path(path).read_text()) for path in paths]
    assert written == [texts, {"a": 0.1, "b": 0.9, "c": 0.7, "d": 0.2}]
    (path,) = dataset.write_predictions("dev", examples, texts, tmp_path / "texts")
    assert json.loads(Path(path).read_text()) == texts
    (tmp_path / "predictions.json").unlink()
    with pytest.raises(ValueError, match="must not hold 'null_odds.json' yet"):
        dataset.write_predictions("dev", examples, decided, tmp_path)
    assert not (tmp_path / "predictions.json").exists()


@pytest.mark.parametrize("name", ["SQuAD1.1", "SQuAD2.0", "HotpotQA"])
def test_wrong_answers_are_named(name, tmp_path):
    dataset, examples = get(name), SpanExamples((asked("a", "x"), asked("b", "x")))
    for bad in (None, 3, "ab", [3], ["a", "b"]):
        with pytest.raises(TypeError, match="`predictions` must be a list"):
            dataset.metrics(examples, bad)
        with pytest.raises(TypeError, match="`predictions` must be a list"):
            dataset.write_predictions("dev", examples, bad, tmp_path)
    one = answers(a=("x", 0.5))
    with pytest.raises(ValueError, match="they lack 1 of them, such as 'b'"):
        dataset.metrics(examples, one)
    with pytest.raises(ValueError, match="they lack 1 of them, such as 'b'"):
        dataset.write_predictions("dev", examples, one, tmp_path)
    with pytest.raises(TypeError, match="`examples` must be `SpanExamples`"):
        dataset.metrics(examples.questions, one)
    (tmp_path / "predictions.json").write_text("mine")
    with pytest.raises(ValueError, match="must not hold 'predictions.json' yet"):
        dataset.write_predictions("dev", examples, {"a": "", "b": ""}, tmp_path)
