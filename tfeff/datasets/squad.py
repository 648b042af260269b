"""SQuAD 1.1 and 2.0, from the files in which they are published."""

import os
from collections.abc import Iterable

from tfeff.data.finetuning.examples import Question, SpanExamples
from tfeff.datasets.files import checked, field, json_file
from tfeff.utils.checks import check_path


def read_squad(path: str | os.PathLike, skip_mismatched: bool = False) -> SpanExamples:
    """Reads SQuAD 1.1 or 2.0, or another data set in their layout.

    Args:
        path: the JSON file.
        skip_mismatched: leave out questions with an answer that is not in the passage
            where the file says, and say so in `skipped`. By default they are errors.

    Returns:
        The questions. Those of SQuAD 2.0 that are impossible have no answers.

    Raises:
        ValueError: if the file is missing, empty or malformed, an answer is not where
            the file says, or two questions have one id; the message has the file and
            the question.

    Example:
    ```python
    import json
    import tfeff

    answer = {"text": "Ada", "answer_start": 0}
    question = {"id": "q1", "question": "Who wrote it?", "answers": [answer]}
    paragraph = {"context": "Ada wrote it.", "qas": [question]}
    with open("dev-v1.1.json", "w") as file:
        json.dump({"data": [{"paragraphs": [paragraph]}], "version": "1.1"}, file)
    (question,) = tfeff.datasets.read_squad("dev-v1.1.json").questions
    assert question.spans == ((0, 3),)
    ```

    Reference:
        Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of
        Text", 2016, section 3; "Know What You Don't Know: Unanswerable Questions for
        SQuAD", 2018, section 4.
    """
    path = check_path("path", path)
    records = _records(json_file(path), path)
    return collected(path, (_question(*r) for r in records), skip_mismatched)


def collected(path: str, found: Iterable, skip_mismatched: bool) -> SpanExamples:
    """The questions, if there are some and their ids differ.

    `found` has a question, or `None` and what is wrong with its answers, for each.
    """
    questions, skipped = [], []
    for question, problem in found:
        if problem is None:
            questions.append(question)
        elif skip_mismatched:
            skipped.append(problem)
        else:
            raise ValueError(problem)
    if not questions:
        raise ValueError(
            f"{path} must hold questions. Received: none, and {len(skipped)} skipped"
        )
    ids = set()
    for question in questions:
        if question.id in ids:
            raise ValueError(
                f"{path}: ids must differ. Received: {question.id!r} twice"
            )
        ids.add(question.id)
    return SpanExamples(tuple(questions), tuple(skipped))


def _records(file, path):
    for number, article in enumerate(field(file, "data", list, path), start=1):
        where = f"{path}, article {number}"
        checked(article, dict, where)
        paragraphs = field(article, "paragraphs", list, where)
        for place, paragraph in enumerate(paragraphs, start=1):
            inside = f"{where}, paragraph {place}"
            checked(paragraph, dict, inside)
            passage = field(paragraph, "context", str, inside)
            for record in field(paragraph, "qas", list, inside):
                checked(record, dict, inside)
                name = field(record, "id", str, inside)
                yield record, passage, f"{path}, question {name!r}"


def _question(record, passage, where):
    impossible = record.get("is_impossible")
    answers = field(record, "answers", list, where) if "answers" in record else []
    if impossible not in (None, not answers):
        raise ValueError(
            f"{where}: a question must have answers if and only if it is possible. "
            f"Received: is_impossible={impossible!r}, {len(answers)} answers"
        )
    texts, spans = [], []
    for answer in answers:
        checked(answer, dict, where)
        text = field(answer, "text", str, where)
        start = field(answer, "answer_start", int, where)
        end = start + len(text)
        if not text or start < 0 or passage[start:end] != text:
            return None, (
                f"{where}: the answer {text!r} must be at character {start}. "
                f"Received: {passage[max(start, 0) : max(end, 0)]!r} there"
            )
        texts.append(text)
        spans.append((start, end))
    question = Question(
        id=record["id"],
        question=field(record, "question", str, where),
        passage=passage,
        answers=tuple(texts),
        spans=tuple(spans),
    )
    return question, None
