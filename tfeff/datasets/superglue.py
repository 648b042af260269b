"""BoolQ and MultiRC, from the files in which SuperGLUE publishes them."""

import os

import numpy as np

from tfeff.data.finetuning.examples import TextExamples
from tfeff.datasets.files import checked, field, first_file, json_lines
from tfeff.utils.checks import check_choice, check_path

SUPERGLUE_TASKS = {"BoolQ": ("false", "true"), "MultiRC": ("0", "1")}
_FILES = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}


def read_superglue(task: str, split: str, folder: str | os.PathLike) -> TextExamples:
    """Reads one part of BoolQ or MultiRC.

    The file is `folder/task/train.jsonl`, `val.jsonl` (the dev part) or `test.jsonl`.
    The first text is the passage. The second one is the question, in MultiRC with one
    of its answers behind it: each answer is an example, right (1) or wrong (0).

    Args:
        task: `"BoolQ"` or `"MultiRC"`.
        split: `"train"`, `"dev"` or `"test"`.
        folder: the folder of all tasks.

    Returns:
        The texts, labels (None for a test part without) and ids: integers of BoolQ,
        triples (passage, question, answer) of MultiRC.

    Raises:
        ValueError: if there is no such task, split or file, or the file is empty,
            malformed, or has a label outside of the set; the message has the file and
            the line.

    Example:
    ```python
    import os
    import tfeff

    os.makedirs("superglue/BoolQ")
    with open("superglue/BoolQ/val.jsonl", "w") as file:
        file.write('{"question": "is it", "passage": "It is.", "idx": 0, ')
        file.write('"label": true}')
    examples = tfeff.datasets.read_superglue("BoolQ", "dev", "superglue")
    assert (examples.first, examples.second) == (("It is.",), ("is it",))
    assert examples.labels.tolist() == [1]
    ```

    Reference:
        Wang et al., "SuperGLUE: A Stickier Benchmark for General-Purpose Language
        Understanding Systems", 2019, section 3.
    """
    check_choice("task", task, SUPERGLUE_TASKS)
    name = _FILES[check_choice("split", split, _FILES)]
    path = first_file(check_path("folder", folder), os.path.join(task, name))
    read = {"BoolQ": _boolq, "MultiRC": _multirc}[task]
    rows = [row for where, record in json_lines(path) for row in read(record, where)]
    if not rows:
        raise ValueError(f"{path} must hold examples. Received: none")
    first, second, labels, ids, places = zip(*rows)
    labelled = any(label is not None for label in labels)
    if labelled or split != "test":
        for label, place in zip(labels, places):
            if label is None:
                raise ValueError(f"{place}: must have 'label'. Received: none")
    return TextExamples(
        first=first,
        second=second,
        labels=np.array(labels, np.int32) if labelled else None,
        label_names=SUPERGLUE_TASKS[task],
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
