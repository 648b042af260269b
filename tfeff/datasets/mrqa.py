"""The data sets of MRQA 2019, read from `folder/train` and `folder/dev`.

Metrics and files of predictions are those of SQuAD 1.1.
"""

import os
import unicodedata

from tfeff.data.finetuning.examples import Question, SpanExamples
from tfeff.datasets.files import checked, field, json_lines
from tfeff.datasets.settings import BLOCKBERT
from tfeff.datasets.squad import collected, span_dataset
from tfeff.utils.checks import check_path

# The names of the published files.
_FILES = {
    "HotpotQA": ("HotpotQA",),
    "NewsQA": ("NewsQA",),
    "SearchQA": ("SearchQA",),
    "TriviaQA": ("TriviaQA-web", "TriviaQA"),
    "NaturalQuestions": ("NaturalQuestionsShort", "NaturalQuestions"),
}


def read_mrqa(path: str | os.PathLike, skip_mismatched: bool = False) -> SpanExamples:
    """Reads HotpotQA, NewsQA, SearchQA, TriviaQA, NaturalQuestions … in MRQA's layout.

    Args:
        path: the file, `.jsonl.gz` as published, or `.jsonl`.
        skip_mismatched: skip questions with an answer whose letters and digits are
            not in the passage at the given characters, and list them in `skipped`. By
            default they are errors.

    Returns:
        The questions. `answers` has all correct texts, `spans` the characters
        where one was found; their numbers may differ.

    Raises:
        ValueError: if the file is missing, empty or malformed, an answer is not at the
            given characters, or two questions have the same id; the message names the
            file and the line.

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
    path = check_path("path", path)
    return collected(path, _questions(path), skip_mismatched)


def _questions(path):
    for index, (where, record) in enumerate(json_lines(path)):
        if index == 0 and "header" in record:
            continue
        passage = field(record, "context", str, where)
        for entry in field(record, "qas", list, where):
            yield _question(checked(entry, dict, where), passage, where)


def _question(record, passage, where):
    name = field(record, "qid", str, where)
    where = f"{where}, question {name!r}"
    answers = [checked(a, str, where) for a in field(record, "answers", list, where)]
    spans = []
    for found in field(record, "detected_answers", list, where):
        checked(found, dict, where)
        text = field(found, "text", str, where)
        for span in field(found, "char_spans", list, where):
            span = [checked(c, int, where) for c in checked(span, list, where)]
            if len(span) != 2:
                raise ValueError(f"{where}: a span must be a pair. Received: {span}")
            start, end = span[0], span[1] + 1
            inside = 0 <= start < end <= len(passage)
            if not inside or _letters(passage[start:end]) != _letters(text):
                return None, (
                    f"{where}: the answer {text!r} must be at characters {span}. "
                    f"Received: {passage[max(start, 0) : max(end, 0)]!r} there"
                )
            spans.append((start, end))
    question = Question(
        id=name,
        question=field(record, "question", str, where),
        passage=passage,
        answers=tuple(answers),
        spans=tuple(spans),
    )
    return question, None


def _letters(text):
    # The texts of detected answers are normalised, those of passages are not.
    plain = unicodedata.normalize("NFKD", text).casefold()
    return [c for c in plain if c.isalnum()] or plain.split()


DATASETS = tuple(
    span_dataset(
        name,
        {
            split: tuple(
                os.path.join(split, stem + ending)
                for stem in stems
                for ending in (".jsonl.gz", ".jsonl")
            )
            for split in ("train", "dev")
        },
        read_mrqa,
        settings={"BlockBERT": BLOCKBERT},
    )
    for name, stems in _FILES.items()
)
