"""The data sets of MRQA 2019, read from `folder/train` and `folder/dev`.

The test sets have no answers, so BlockBERT and SpanBERT divide the development set
evenly into one to choose by and one to test on: the splits `dev_half` and `test_half`.
Questions are ranked by the SHA-256 digest of their id; the first half, and the middle
one of an odd number, is `dev_half`. `dev` is the whole. Metrics and files of
predictions are those of SQuAD 1.1.

Reference:
    Qiu et al., "BlockBERT", section 4.2; Joshi et al., "SpanBERT", section 4.1.
"""

import hashlib
import os
import unicodedata

from tfeff.data.finetuning.examples import Question, SpanExamples
from tfeff.datasets.files import check_existing, checked, field, json_lines
from tfeff.datasets.squad import collected, span_dataset
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_bool, check_choice

# The names of the published files.
_FILES = {
    "HotpotQA": ("HotpotQA",),
    "NewsQA": ("NewsQA",),
    "SearchQA": ("SearchQA",),
    "TriviaQA": ("TriviaQA-web", "TriviaQA"),
    "NaturalQuestions": ("NaturalQuestionsShort", "NaturalQuestions"),
}

_ANSWERS = ("answers", "detected_answers")
_FOLDERS = {"train": "train", "dev": "dev", "dev_half": "dev", "test_half": "dev"}


@paths(path=READ)
def read_mrqa(
    path: str | os.PathLike, skip_mismatched: bool = False, half: str | None = None
) -> SpanExamples:
    """Reads HotpotQA, NewsQA, SearchQA, TriviaQA, NaturalQuestions … in MRQA's layout.

    Args:
        path: the file, `.jsonl.gz` as published, or `.jsonl`.
        skip_mismatched: skip questions with an answer whose letters and digits are
            not in the passage at the given characters, and list them in `skipped` and
            `mismatched`. By default they are errors.
        half: `"first"` or `"second"`, the questions in this half of the order by the
            SHA-256 digest of their id; the first one has the middle one of an odd
            number. `None` for all.

    Returns:
        The questions, in the order of the file. `answers` has all correct texts,
        `spans` the characters where one was found; their numbers may differ. A file
        without `answers` and `detected_answers` has questions alone.

    Raises:
        ValueError: if the file is missing, empty or malformed, an answer is not at the
            given characters, or two questions have the same id; the message names the
            file and the line. If there is no such half.

    Example:
    ```python
    import gzip
    import json
    import tfeff

    found = {"text": "Ada", "char_spans": [[0, 2]]}  # MRQA's ends are inclusive
    question = {"qid": "q1", "question": "Who?", "answers": ["Ada", "A. Lovelace"]}
    question["detected_answers"] = [found]
    with gzip.open("NewsQA.jsonl.gz", "wt") as file:
        file.write(json.dumps({"header": {"dataset": "NewsQA"}}) + "\\n")
        file.write(json.dumps({"context": "Ada wrote it.", "qas": [question]}))
    (question,) = tfeff.datasets.read_mrqa("NewsQA.jsonl.gz").questions
    assert question.spans == ((0, 3),)
    ```

    Reference:
        Fisch et al., "MRQA 2019 Shared Task: Evaluating Generalization in Reading
        Comprehension", 2019, section 3.
    """
    check_bool("skip_mismatched", skip_mismatched)
    if half is not None:
        check_choice("half", half, ("first", "second"))
    path = check_existing("path", path)
    records = list(_records(path))
    if half is not None:
        chosen = _half(records, half)
        records = [found for found in records if found[0]["qid"] in chosen]
    labelled = any(key in record for record, *_ in records for key in _ANSWERS)
    questions = (_question(labelled, *found) for found in records)
    return collected(path, questions, skip_mismatched)


def _half(records, half):
    """The ids in a half. Skipped questions count, so that both halves stay."""
    ids = sorted((record["qid"] for record, *_ in records), key=_digest)
    middle = (len(ids) + 1) // 2
    return set(ids[:middle] if half == "first" else ids[middle:])


def _records(path):
    """Each question's record, with its passage and where it stands."""
    for index, (where, record) in enumerate(json_lines(path)):
        if index == 0 and "header" in record:
            continue
        passage = field(record, "context", str, where)
        for entry in field(record, "qas", list, where):
            field(checked(entry, dict, where), "qid", str, where)
            yield entry, passage, where


def _digest(question_id):
    return hashlib.sha256(question_id.encode()).digest()


def _question(labelled, record, passage, where):
    name = record["qid"]
    where = f"{where}, question {name!r}"
    # A file of questions alone, as those of the test sets, has no answers to any.
    answers, detected = (
        field(record, key, list, where) if labelled else [] for key in _ANSWERS
    )
    answers = [checked(a, str, where) for a in answers]
    spans, problem = [], None
    for found in detected:
        checked(found, dict, where)
        text = field(found, "text", str, where)
        for span in field(found, "char_spans", list, where):
            span = [checked(c, int, where) for c in checked(span, list, where)]
            if len(span) != 2:
                raise ValueError(f"{where}: a span must be a pair. Received: {span}")
            start, end = span[0], span[1] + 1
            inside = 0 <= start < end <= len(passage)
            if inside and _letters(passage[start:end]) == _letters(text):
                spans.append((start, end))
            else:
                problem = problem or (
                    f"{where}: the answer {text!r} must be at characters {span}. "
                    f"Received: {passage[max(start, 0) : max(end, 0)]!r} there"
                )
    question = Question(
        id=name,
        question=field(record, "question", str, where),
        passage=passage,
        answers=tuple(answers),
        spans=tuple(spans),
    )
    return question, problem


def _letters(text):
    # The texts of detected answers are normalised, those of passages are not.
    plain = unicodedata.normalize("NFKD", text).casefold()
    return [c for c in plain if c.isalnum()] or plain.split()


DATASETS = tuple(
    span_dataset(
        name,
        {
            split: tuple(
                os.path.join(folder, stem + ending)
                for stem in stems
                for ending in (".jsonl.gz", ".jsonl")
            )
            for split, folder in _FOLDERS.items()
        },
        read_mrqa,
        {"dev_half": {"half": "first"}, "test_half": {"half": "second"}},
    )
    for name, stems in _FILES.items()
)
