"""SQuAD 1.1 and 2.0, and the base of data sets of spans.

The splits are read from `train-v1.1.json`, `dev-v1.1.json` and so on, or from a file
that is given instead of the folder. The metrics are those of the official scripts, from
0 to 1. Predictions are written to `predictions.json`, a text for each id; for SQuAD 2.0
also to `null_odds.json`, the probability that each question has no answer.
"""

import dataclasses
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tfeff.data.finetuning.examples import Question, SpanAnswer, SpanExamples
from tfeff.datasets.checks import check_different, check_list, check_names
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import check_existing, checked, field, first_file, json_file
from tfeff.datasets.squad_metrics import (
    check_predictions,
    squad_v1_metrics,
    squad_v2_metrics,
)
from tfeff.datasets.submissions import new_file, write_json
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_bool, check_callable, check_choice, check_mapping
from tfeff.utils.naming import named_as


def span_dataset(
    name: str,
    files: Mapping[str, tuple[str, ...]],
    read_file: Callable | None = None,
    split_options: Mapping[str, Mapping] | None = None,
    **attributes: Any,
) -> Dataset:
    """A data set of questions whose answers are spans, with SQuAD 1.1's metrics.

    Args:
        name: the name of the data set.
        files: for each split the possible names of its file in the folder.
        read_file: `read_file(path, skip_mismatched)`, a function that reads a file;
            `tfeff.datasets.read_squad` by default.
        split_options: for a split further keyword arguments of `read_file`; `None` for
            none.
        **attributes: further attributes of `Dataset`; they replace those that are
            set here.

    Returns:
        A `Dataset`, to be registered. It also reads a file that is given instead of
        the folder, as of a split whose name begins with "test", too.

    Raises:
        TypeError, ValueError: if `files` or `read_file` has another type or value.

    Example:
    ```python
    import tfeff

    quiz = tfeff.datasets.span_dataset(
        "Quiz", {"train": ("quiz-train.json",), "dev": ("quiz-dev.json",)}
    )
    assert quiz.metric_names == ("f1", "exact_match")
    ```
    """
    check_mapping("files", files, "splits to names of files")
    files = {split: check_names("files", names) for split, names in files.items()}
    split_options = {} if split_options is None else split_options
    check_mapping("split_options", split_options, "splits to arguments")
    for split, options in split_options.items():
        check_choice("split_options", split, files)
        check_mapping("split_options", options, "arguments to values")
    if read_file is None:
        read_file = read_squad
    check_callable("read_file", read_file)
    scorer = attributes.get("scorer", _score_v1)

    def read(split, folder, skip_mismatched=False):
        path = folder
        if os.path.isdir(folder):
            path = first_file(folder, *files[check_choice("split", split, files)])
        options = split_options.get(split, {})
        with named_as(path="folder"):
            found = read_file(path, skip_mismatched=skip_mismatched, **options)
        # `Dataset.read` names what is of another type.
        is_scored = scorer is _score_v1 and isinstance(found, SpanExamples)
        if split == "train" and is_scored and any(x.answers for x in found.questions):
            _check_all_answered(path, found.questions)
        return found

    defaults: dict[str, Any] = {
        "name": name,
        "reader": read,
        "options": ("skip_mismatched",),
        "kind": SpanExamples,
        "splits": tuple(files),
        "more_tests": "reader" not in attributes,
        "metric_names": ("f1", "exact_match"),
        "scorer": scorer,
        "writer": _write_texts,
    }
    return Dataset(**(defaults | attributes))


def withhold(answers: Iterable[SpanAnswer], threshold: float) -> tuple[SpanAnswer, ...]:
    """The answers, empty if the no-answer probability is above the threshold."""
    return tuple(
        dataclasses.replace(answer, text="", start=0, end=0)
        if answer.no_answer_probability > threshold
        else answer
        for answer in answers
    )


@paths(path=READ)
def read_squad(path: str | os.PathLike, skip_mismatched: bool = False) -> SpanExamples:
    """Reads SQuAD 1.1 or 2.0, or another data set in their layout.

    Args:
        path: the JSON file.
        skip_mismatched: skip questions with an answer that is not in the passage at
            the given character, and list them in `skipped` and `mismatched`, even if
            those are all. By default they are errors.

    Returns:
        The questions. Those of SQuAD 2.0 that are impossible have no answers, and
        those of a file without `answers` have none. A blank question stays, since a
        benchmark wants a prediction of each id.

    Raises:
        ValueError: if the file is missing, empty or malformed, an answer is not at the
            given character, a passage is blank, or two questions have the same id; the
            message names the file and the question.

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
    check_bool("skip_mismatched", skip_mismatched)
    path = check_existing("path", path)
    records = list(_records(json_file(path), path))
    labelled = any("answers" in record for record, _, _ in records)
    found = (_question(labelled, *record) for record in records)
    return collected(path, found, skip_mismatched)


def collected(path: str, found: Iterable, skip_mismatched: bool) -> SpanExamples:
    """The questions; raises if the file has none or two have the same id.

    `found` has `(question, None)` for each question, or `(question, problem)` if an
    answer is not at its place.
    """
    questions, skipped, mismatched = [], [], []
    for question, problem in found:
        if problem is None:
            if not question.passage.strip():
                raise ValueError(
                    f"{path}, question {question.id!r}: must have a passage with text. "
                    f"Received: {question.passage!r}"
                )
            questions.append(question)
        elif skip_mismatched:
            skipped.append(problem)
            mismatched.append(question)
        else:
            raise ValueError(problem)
    if not questions and not mismatched:
        raise ValueError(f"{path} must hold questions. Received: none")
    check_different_ids(path, questions)
    return SpanExamples(tuple(questions), tuple(skipped), tuple(mismatched))


def check_different_ids(path: str, questions: Iterable[Question]) -> None:
    """Raises if two questions have the same id."""
    ids = set()
    for question in questions:
        if question.id in ids:
            raise ValueError(
                f"{path}: ids must differ. Received: {question.id!r} twice"
            )
        ids.add(question.id)


def _records(file, path):
    for number, article in enumerate(field(file, "data", list, path), start=1):
        where = f"{path}, article {number}"
        checked(article, dict, where)
        paragraphs = field(article, "paragraphs", list, where)
        for index, paragraph in enumerate(paragraphs, start=1):
            inside = f"{where}, paragraph {index}"
            checked(paragraph, dict, inside)
            passage = field(paragraph, "context", str, inside)
            for record in field(paragraph, "qas", list, inside):
                checked(record, dict, inside)
                name = field(record, "id", str, inside)
                yield record, passage, f"{path}, question {name!r}"


def _question(labelled, record, passage, where):
    impossible = record.get("is_impossible")
    # A file of questions alone has no answers to any.
    has_answers = "answers" in record or (labelled and not impossible)
    given = record.get("answers")
    if isinstance(given, dict) and "answer_start" in given:
        raise ValueError(
            f"{where}, 'answers': must be a list of objects with 'text' and "
            "'answer_start', as in SQuAD's own files, not lists by name, as in Hugging "
            f"Face's `datasets`. Received: {given!r:.80}"
        )
    answers = field(record, "answers", list, where) if has_answers else []
    if impossible not in (None, not answers):
        raise ValueError(
            f"{where}: a question must have answers if and only if it is possible. "
            f"Received: is_impossible={impossible!r}, {len(answers)} answers"
        )
    texts, spans, problem = [], [], None
    for answer in answers:
        checked(answer, dict, where)
        text = field(answer, "text", str, where)
        start = field(answer, "answer_start", int, where)
        end = start + len(text)
        texts.append(text)
        if text and start >= 0 and passage[start:end] == text:
            spans.append((start, end))
        else:
            problem = problem or (
                f"{where}: the answer {text!r} must be at character {start}. "
                f"Received: {passage[max(start, 0) : max(end, 0)]!r} there"
                + _other_form(text, passage)
            )
    question = Question(
        id=record["id"],
        question=field(record, "question", str, where),
        passage=passage,
        answers=tuple(texts),
        spans=tuple(spans),
    )
    return question, problem


def _other_form(text, passage):
    """The end of an error message, where the answer is there in another form."""
    forms = [unicodedata.normalize("NFC", x) for x in (text, passage)]
    if not text or text in passage or forms[0] not in forms[1]:
        return ""
    return f". Another Unicode form of it is in the passage: {forms[0]!r}"


def _check_all_answered(what, questions):
    """Raises if a question has no answer, which SQuAD 1.1 does not have."""
    unanswered = sum(not question.answers for question in questions)
    if unanswered:
        raise ValueError(
            f"{what} must have an answer to each question, but for those of SQuAD "
            "2.0: --task=squad2, in Python task='squad2'. Received: "
            f"{unanswered} of {len(questions)} questions without an answer"
        )


def _score_v1(examples, predictions):
    _check_all_answered("`examples`", examples.questions)
    scores = squad_v1_metrics(examples, _texts(predictions))
    return {name: scores[name] / 100 for name in ("f1", "exact_match")}


def _score_v2(examples, predictions):
    """Metrics of texts as they are; of answers, those with the best threshold."""
    texts = _texts(predictions)
    if texts is predictions:
        scores = squad_v2_metrics(examples, texts)
        return {"f1": scores["f1"] / 100, "exact_match": scores["exact"] / 100}
    scores = squad_v2_metrics(examples, texts, _no_answer(predictions))
    return {
        "f1": scores["best_f1"] / 100,
        "exact_match": scores["best_exact"] / 100,
        "no_answer_threshold": scores["best_f1_thresh"],  # a probability
    }


def _write_texts(split, examples, predictions, folder):
    texts = _texts(predictions)
    check_predictions(examples.questions, texts)
    return (write_json(texts, new_file(folder, "predictions.json")),)


def _write_v2(split, examples, predictions, folder):
    if isinstance(predictions, Mapping):
        return _write_texts(split, examples, predictions, folder)
    path = new_file(folder, "null_odds.json")  # Before the other file is written.
    texts = _write_texts(split, examples, predictions, folder)
    return (*texts, write_json(_no_answer(predictions), path))


def _texts(predictions):
    if isinstance(predictions, Mapping):
        return predictions
    answers = check_list("predictions", predictions, SpanAnswer)
    check_different("predictions", (a.id for a in answers), "have different ids")
    return {answer.id: answer.text for answer in answers}


def _no_answer(answers):
    return {answer.id: answer.no_answer_probability for answer in answers}


def _files(version):
    return {split: (f"{split}-v{version}.json",) for split in ("train", "dev")}


DATASETS = (
    span_dataset(
        "SQuAD1.1",
        _files("1.1"),
    ),
    span_dataset(
        "SQuAD2.0",
        _files("2.0"),
        metric_names=("f1", "exact_match", "no_answer_threshold"),
        scorer=_score_v2,
        writer=_write_v2,
    ),
)
