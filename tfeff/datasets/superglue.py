"""BoolQ and MultiRC of SuperGLUE.

The files are `folder/task/train.jsonl`, `val.jsonl` (the dev split) and `test.jsonl`,
which may lack labels. The first text is the passage. The second one is the question, in
MultiRC followed by one of its answers: each answer is an example, right (1) or wrong
(0). Ids are integers in BoolQ, triples (passage, question, answer) in MultiRC.

Metrics are accuracy for BoolQ; for MultiRC, F1 of the label 1 over all answers (`f1a`),
the share of questions with all answers right (`exact_match`), and accuracy over all
answers, which Shatter prints for the dev split. Predictions are written to
`BoolQ.jsonl` and `MultiRC.jsonl`.

Reference:
    Wang et al., "SuperGLUE: A Stickier Benchmark for General-Purpose Language
    Understanding Systems", 2019, section 3.
"""

import collections
import functools
import os

import numpy as np

from tfeff.data.finetuning.examples import TextExamples
from tfeff.datasets.checks import check_list
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import checked, field, first_file, json_lines
from tfeff.datasets.metrics import accuracy, f1
from tfeff.datasets.submissions import new_file, predicted_texts, write_json_lines

_FILES = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}


def _read(task, records, label_names, split, folder):
    """The examples of a split: `records` makes those of each line of its file."""
    path = first_file(folder, os.path.join(task, _FILES[split]))
    rows = [row for where, line in json_lines(path) for row in records(line, where)]
    if not rows:
        raise ValueError(f"{path} must hold examples. Received: none")
    first, second, labels, ids, sources = zip(*rows)
    labelled = any(label is not None for label in labels)
    if labelled or split != "test":
        for label, where in zip(labels, sources):
            if label is None:
                raise ValueError(f"{where}: must have 'label'. Received: none")
    return TextExamples(
        first=first,
        second=second,
        labels=np.array(labels, np.int32) if labelled else None,
        label_names=label_names,
        ids=ids,
    )


def _boolq(record, where):
    yield (
        field(record, "passage", str, where),
        field(record, "question", str, where),
        _label(record, (False, True), where),
        field(record, "idx", int, where),
        where,
    )


def _multirc(record, where):
    passage = field(record, "passage", dict, where)
    text = field(passage, "text", str, where)
    for question in field(passage, "questions", list, where):
        checked(question, dict, where)
        for answer in field(question, "answers", list, where):
            checked(answer, dict, where)
            words = (
                field(question, "question", str, where),
                field(answer, "text", str, where),
            )
            parts = (record, question, answer)
            ids = tuple(field(part, "idx", int, where) for part in parts)
            yield text, " ".join(words), _label(answer, (0, 1), where), ids, where


def _label(record, labels, where):
    label = record.get("label")
    if label is None:
        return None
    if type(label) is not type(labels[0]) or label not in labels:
        raise ValueError(
            f"{where}: 'label' must be {' or '.join(map(repr, labels))}. "
            f"Received: {label!r:.80}"
        )
    return labels.index(label)


def _write_boolq(split, examples, predictions, folder):
    texts = predicted_texts(examples, predictions)
    records = [{"idx": id, "label": text} for id, text in texts.items()]
    return (write_json_lines(records, new_file(folder, "BoolQ.jsonl")),)


def _score_multirc(examples, predictions):
    answers = collections.defaultdict(list)
    right = examples.labels == predictions
    for (passage, question, _), is_right in zip(_triples(examples.ids), right):
        answers[passage, question].append(is_right)
    return {
        "f1a": f1(examples.labels, predictions),
        "exact_match": float(np.mean([all(found) for found in answers.values()])),
        "accuracy": accuracy(examples.labels, predictions),
    }


def _write_multirc(split, examples, predictions, folder):
    passages = collections.defaultdict(lambda: collections.defaultdict(list))
    triples = _triples(examples.ids)
    for (passage, question, answer), label in zip(triples, predictions):
        record = {"idx": answer, "label": int(label)}
        passages[passage][question].append(record)
    records = []
    for passage, questions in passages.items():
        answers = [{"idx": q, "answers": found} for q, found in questions.items()]
        records.append({"idx": passage, "passage": {"questions": answers}})
    return (write_json_lines(records, new_file(folder, "MultiRC.jsonl")),)


def _triples(ids):
    ids = check_list("ids", ids)
    for value in ids:
        if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 3:
            raise TypeError(
                f"`ids` must be (passage, question, answer). It holds {value!r}"
            )
    return ids


def _dataset(name, records, label_names, **attributes):
    return Dataset(
        name=name,
        reader=functools.partial(_read, name, records, label_names),
        label_names=label_names,
        **attributes,
    )


DATASETS = (
    _dataset("BoolQ", _boolq, ("false", "true"), writer=_write_boolq),
    _dataset(
        "MultiRC",
        _multirc,
        ("0", "1"),
        metric_names=("f1a", "exact_match", "accuracy"),
        scorer=_score_multirc,
        writer=_write_multirc,
    ),
)
