"""SQuAD 1.1 and 2.0, and MRQA, in their published layouts."""

import gzip
import hashlib
import json
import unicodedata

import pytest

from tests.datasets.files import write, write_json
from tfeff.data import Question
from tfeff.datasets import get, read_mrqa, read_squad, span_dataset

PASSAGE = "Ünï\u2009Ada\twrote  it."


def squad(*questions, passage=PASSAGE):
    paragraph = {"context": passage, "qas": list(questions)}
    return {"version": "v2.0", "data": [{"title": "T", "paragraphs": [paragraph]}]}


def asked(name="q1", *answers, **more):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": "Who?", "answers": answers, **more}


def test_squad(tmp_path):
    none = {
        "is_impossible": True,
        "plausible_answers": [{"text": "?", "answer_start": 9}],
    }
    path = write_json(
        tmp_path / "dev.json",
        squad(
            asked("q1", ("Ada", 4), ("Ünï\u2009Ada", 0)),
            asked("q2", ("wrote  it", 8), is_impossible=False),
            asked("q3", **none),
            {"id": "q4", "question": "None?", "is_impossible": True},
        ),
    )
    examples = read_squad(path)
    assert examples.questions == (
        Question("q1", "Who?", PASSAGE, ("Ada", "Ünï\u2009Ada"), ((4, 7), (0, 7))),
        Question("q2", "Who?", PASSAGE, ("wrote  it",), ((8, 17),)),
        Question("q3", "Who?", PASSAGE),
        Question("q4", "None?", PASSAGE),
    )
    assert (len(examples), examples.skipped) == (4, ())


def test_questions_alone(tmp_path):
    question = {"id": "q", "question": "Who?"}
    path = write_json(tmp_path / "test.json", squad(question))
    assert read_squad(path).questions == (Question("q", "Who?", PASSAGE),)
    path = write_json(tmp_path / "a.json", squad(asked("a", ("Ada", 4)), question))
    with pytest.raises(ValueError, match="question 'q': must have 'answers'"):
        read_squad(path)
    record = {"context": PASSAGE, "qas": [{"qid": "q", "question": "Who?"}]}
    path = write_json(tmp_path / "test.jsonl", record)
    assert read_mrqa(path).questions == (Question("q", "Who?", PASSAGE),)
    path = write_json(tmp_path / "a.jsonl", record, mrqa([4, 6], name="b"))
    with pytest.raises(ValueError, match="question 'q': must have 'answers'"):
        read_mrqa(path)


def test_another_unicode_form_of_an_answer_is_told(tmp_path):
    answer = unicodedata.normalize("NFD", PASSAGE[:3])
    path = write_json(tmp_path / "a.json", squad(asked("a", (answer, 0))))
    with pytest.raises(ValueError, match="Another Unicode form of it is .*: 'Ünï'$"):
        read_squad(path)
    path = write_json(tmp_path / "a.json", squad(asked("a", ("Ada", 5))))
    with pytest.raises(ValueError, match="Received: 'da.*' there$"):
        read_squad(path)


@pytest.mark.parametrize("answer", [("Ada", 5), ("Ada", -14), ("", 0), ("it.x", 15)])
def test_mismatched_answers_are_skipped_only_if_asked(tmp_path, answer):
    record = squad(asked("good", ("Ada", 4)), asked("bad", ("Ada", 4), answer))
    path = write_json(tmp_path / "dev.json", record)
    place = f"question 'bad': the answer {answer[0]!r} must be at character {answer[1]}"
    with pytest.raises(ValueError, match=place.replace(".", r"\.")):
        read_squad(path)
    examples = read_squad(path, skip_mismatched=True)
    assert [question.id for question in examples.questions] == ["good"]
    assert len(examples.skipped) == 1 and place in examples.skipped[0]
    (bad,) = examples.mismatched
    assert (bad.id, bad.answers, bad.spans) == ("bad", ("Ada", answer[0]), ((4, 7),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"dev\.json must hold text. Received: an empty file"),
        ('{\n"data": [}', r"dev\.json, line 2: must be JSON"),
        ("[]", r"dev\.json: must be an object. Received: \[\]"),
        ('{"version": "1.1"}', r"dev\.json: must have 'data'. Received: \['version'\]"),
        ('{"data": []}', r"dev\.json must hold questions. Received: none"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            r"article 1, paragraph 1: must have",
        ),
        (
            json.dumps(squad({"id": "a", "question": "b", "answers": {}})),
            r"question 'a', 'answers': must be a list. Received: \{\}",
        ),
        (
            json.dumps(
                squad(
                    {
                        "id": "a",
                        "question": "b",
                        "answers": {"text": ["Ada"], "answer_start": [4]},
                    }
                )
            ),
            r"question 'a', 'answers': must be .* not lists by name.*: \{'text'",
        ),
        (json.dumps(squad({"question": "b"})), r"paragraph 1: must have 'id'"),
        (
            json.dumps(squad(asked("a", ("Ada", "4")))),
            "must be an integer. Received: '4'",
        ),
        (
            json.dumps(squad(asked("a", ("Ada", 4), is_impossible=True))),
            "if and only if it is possible. Received: is_impossible=True, 1 answers",
        ),
        (
            json.dumps(squad(asked("a", is_impossible=False))),
            "Received: is_impossible=False, 0 answers",
        ),
        (
            json.dumps(squad(asked("a"), asked("a"))),
            "ids must differ. Received: 'a' twice",
        ),
        (
            json.dumps(squad(asked("a"))).replace(json.dumps(PASSAGE), '" \\n"'),
            r"dev\.json, question 'a': must have a passage with text. Received: ' \\n'",
        ),
    ],
)
def test_bad_squad(tmp_path, text, message):
    path = write(tmp_path / "dev.json", text)
    with pytest.raises(ValueError, match=message):
        read_squad(path)


def test_missing_file(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must exist.*none\.json"):
        read_squad(tmp_path / "none.json")


def mrqa(*spans, text="ADA", name="q1"):
    found = {"text": text, "char_spans": list(spans), "token_spans": [[0, 0]]}
    entry = {"qid": name, "question": "Who?", "answers": ["Ada", "A. L."]}
    entry["detected_answers"] = [found]
    return {"context": PASSAGE, "context_tokens": [], "qas": [entry]}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("name", ["NewsQA.jsonl.gz", "NewsQA.jsonl"])
def test_mrqa(tmp_path, name, header):
    records = [{"header": {"dataset": "NewsQA"}}] * header + [mrqa([4, 6])]
    records.append(mrqa([8, 16], text="wrote it", name="q2"))
    path = write_json(tmp_path / name, *records)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert read_mrqa(path).questions == (
        Question("q1", "Who?", PASSAGE, ("Ada", "A. L."), ((4, 7),)),
        Question("q2", "Who?", PASSAGE, ("Ada", "A. L."), ((8, 17),)),
    )


@pytest.mark.parametrize("span", [[3, 5], [-15, -13], [4, 90], [6, 4]])
def test_mismatched_mrqa(tmp_path, span):
    records = mrqa([4, 6], name="good"), mrqa([4, 6], span, name="bad")
    path = write_json(tmp_path / "a.jsonl", *records)
    with pytest.raises(
        ValueError, match=r"line 2, question 'bad': the answer 'ADA' must"
    ):
        read_mrqa(path)
    examples = read_mrqa(path, skip_mismatched=True)
    assert [question.id for question in examples.questions] == ["good"]
    assert len(examples.skipped) == 1
    assert [question.id for question in examples.mismatched] == ["bad"]


def test_halves_of_mrqa(tmp_path):
    """Even, by the digests of the ids, whatever else is in the file or skipped."""
    names = [f"q{i}" for i in range(9)]
    ranked = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    records = [mrqa([4, 6], name=name) for name in names]
    path = write_json(tmp_path / "a.jsonl", *records)
    halves = {half: ids(read_mrqa(path, half=half)) for half in ("first", "second")}
    assert set(halves["first"]) == set(ranked[:5])
    assert set(halves["second"]) == set(ranked[5:])
    for found in halves.values():
        assert found == [name for name in names if name in found]  # The file's order.
    assert ids(read_mrqa(path)) == names
    # One that is skipped leaves the others where they are.
    records[names.index(ranked[0])] = mrqa([4, 6], [5, 6], name=ranked[0])
    path = write_json(tmp_path / "b.jsonl", *records)
    skipping = ids(read_mrqa(path, skip_mismatched=True, half="first"))
    assert set(skipping) == set(ranked[1:5])
    with pytest.raises(ValueError, match="`half` must be one of .*half='third'"):
        read_mrqa(path, half="third")

    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "NewsQA.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes())
    dataset = get("NewsQA")
    assert ids(dataset.read("dev_half", tmp_path)) == halves["first"]
    assert ids(dataset.read("test_half", tmp_path / "a.jsonl")) == halves["second"]
    assert ids(dataset.read("dev", tmp_path)) == names


def ids(examples):
    return [question.id for question in examples.questions]


def test_bad_mrqa(tmp_path):
    path = write_json(tmp_path / "a.jsonl", {"header": {}}, mrqa([4]))
    with pytest.raises(ValueError, match=r"line 2, .*a span must be a pair. Received"):
        read_mrqa(path)
    path = write_json(tmp_path / "a.jsonl", {"header": {}}, {"context": "a"})
    with pytest.raises(ValueError, match=r"line 2: must have 'qas'. Received"):
        read_mrqa(path)
    path = write_json(tmp_path / "a.jsonl", {"header": {}})
    with pytest.raises(ValueError, match="must hold questions"):
        read_mrqa(path)
    whole = gzip.compress(json.dumps(mrqa([4, 6])).encode())
    for content in (b"no gzip", whole[:-9], whole[:12] + b"\xff\xff" + whole[14:]):
        path = write(tmp_path / "a.jsonl.gz", content)
        with pytest.raises(ValueError, match=r"cannot read '.*a\.jsonl\.gz'"):
            read_mrqa(path)


def test_data_sets_read_the_published_files_or_any_one(tmp_path):
    v1, v2 = get("SQuAD1.1"), get("SQuAD2.0")
    for split in ("train", "dev"):
        file = squad(asked(split, ("Ada", 4)))
        path = write_json(tmp_path / f"{split}-v1.1.json", file)
        for place in (tmp_path, str(path)):
            (question,) = v1.read(split, place).questions
            assert question.id == split
        write_json(tmp_path / f"{split}-v2.0.json", squad(asked(f"{split}2")))
        (question,) = v2.read(split, tmp_path).questions
        assert question.id == f"{split}2"
    with pytest.raises(ValueError, match=r"`split` must be one of \['train', 'dev'\]"):
        v1.read("test", tmp_path)
    with pytest.raises(ValueError, match=r"`folder` must hold dev-v1\.1\.json"):
        v1.read("dev", write_json(tmp_path / "deep" / "a.json", {}).parent)
    with pytest.raises(ValueError, match=r"`folder` must exist.*none\.json"):
        v1.read("dev", tmp_path / "none.json")
    bad = write_json(
        tmp_path / "bad.json", squad(asked("a", ("Ada", 4)), asked("b", ("Ada", 5)))
    )
    with pytest.raises(ValueError, match="question 'b': the answer 'Ada' must be"):
        v1.read("dev", bad)
    assert len(v1.read("dev", bad, skip_mismatched=True).skipped) == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("HotpotQA", "HotpotQA.jsonl.gz"),
        ("NewsQA", "NewsQA.jsonl"),
        ("SearchQA", "SearchQA.jsonl.gz"),
        ("TriviaQA", "TriviaQA-web.jsonl.gz"),
        ("TriviaQA", "TriviaQA.jsonl"),
        ("NaturalQuestions", "NaturalQuestionsShort.jsonl.gz"),
        ("NaturalQuestions", "NaturalQuestions.jsonl.gz"),
    ],
)
def test_data_sets_of_mrqa(tmp_path, name, file):
    for split in ("train", "dev"):
        path = write_json(tmp_path / split / file, mrqa([4, 6], name=split))
        if file.endswith(".gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
        for place in (tmp_path, path):
            (question,) = get(name).read(split, place).questions
            assert question.id == split
    with pytest.raises(ValueError, match="`folder` must hold dev/"):
        get(name).read("dev", tmp_path / "train")


def test_all_questions_to_train_on_are_answered_but_those_of_version_2(tmp_path):
    path = tmp_path / "some.json"
    write_json(path, squad(asked("a", ("Ada", 4)), asked("b"), asked("c")))
    with pytest.raises(
        ValueError, match=r"some\.json must have .*squad2.*2 of 3 quest"
    ):
        get("SQuAD1.1").read("train", path)
    assert len(get("SQuAD2.0").read("train", path)) == 3
    assert len(get("SQuAD1.1").read("dev", path)) == 3  # `metrics` tells it.


def test_spans_of_ones_own(tmp_path):
    quiz = span_dataset("Quiz", {"dev": ("a.json",)})
    write_json(tmp_path / "a.json", squad(asked("a", ("Ada", 4))))
    assert len(quiz.read("dev", tmp_path)) == 1
    assert (quiz.splits, quiz.metric_names) == (("dev",), ("f1", "exact_match"))
    for files, error in (
        ({}, ValueError),
        (None, TypeError),
        ({"dev": "a"}, TypeError),
    ):
        with pytest.raises(error, match="`files`|`dev_splits`"):
            span_dataset("Quiz", files)
    files = dict.fromkeys(("train", "dev"), ("a.json",))
    other = span_dataset("Quiz", files, read_file=lambda *_, **__: 3)
    with pytest.raises(TypeError, match="SpanExamples"):
        other.read("train", tmp_path)
    with pytest.raises(TypeError, match="`read_file` must be callable"):
        span_dataset("Quiz", {"dev": ("a.json",)}, read_file=3)
    for options in (3, {"test": {}}, {"dev": 3}):
        with pytest.raises((TypeError, ValueError), match="`split_options` must be"):
            span_dataset("Quiz", {"dev": ("a.json",)}, split_options=options)
