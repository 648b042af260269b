"""RACE: a question about a passage, and four options.

The metrics are the accuracies on all questions and on those of each school; NaN for a
school without questions. The option `levels` selects schools. RACE defines no format of
predictions: `RACE.json` has the letter for each id.

Reference:
    Lai et al., "RACE: Large-scale ReAding Comprehension Dataset From Examinations",
    2017.
"""

import math
import os
import re

import numpy as np

from tfeff.data.finetuning.examples import ChoiceExamples
from tfeff.datasets.checks import check_list
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import checked, field, json_file
from tfeff.datasets.metrics import accuracy
from tfeff.datasets.submissions import new_file, predicted_texts, write_json
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_choice
from tfeff.utils.paths import check_path

RACE_LEVELS = ("middle", "high")
_LETTERS = ("A", "B", "C", "D")


@paths(folder=READ)
def read_race(
    split: str, folder: str | os.PathLike, levels: tuple[str, ...] = RACE_LEVELS
) -> ChoiceExamples:
    """Reads one split of RACE: the files `folder/split/level/*.txt`, one a passage.

    Args:
        split: `"train"`, `"dev"` or `"test"`.
        folder: the folder of the three splits.
        levels: `"middle"` and `"high"`, the schools whose exams are read.

    Returns:
        The passages, questions, options, labels and ids, level by level and by the
        number in a file's name. The labels are None if no question has an answer.

    Raises:
        ValueError: if there is no such split, level or folder, or a file is empty or
            malformed, or a question does not have four options, or has another answer
            than A to D.

    Example:
    ```python
    import json
    import os
    import tfeff

    os.makedirs("race/dev/high")
    passage = {
        "id": "high1.txt",
        "article": "It rains.",
        "questions": ["It is _ ."],
        "options": [["dry", "wet", "hot", "late"]],
        "answers": ["B"],
    }
    with open("race/dev/high/1.txt", "w") as file:
        json.dump(passage, file)
    examples = tfeff.datasets.read_race("dev", "race", levels=("high",))
    assert examples.labels.tolist() == [1]
    ```

    Reference:
        Lai et al., "RACE: Large-scale ReAding Comprehension Dataset From
        Examinations", 2017, section 3.
    """
    check_choice("split", split, ("train", "dev", "test"))
    folder = check_path("folder", folder)
    if not isinstance(levels, (tuple, list)) or not levels:
        raise ValueError(
            f"`levels` must be a tuple of levels. Received: {levels=!r:.80}"
        )
    rows = []
    for level in levels:
        check_choice("levels", level, RACE_LEVELS)
        directory = os.path.join(folder, split, level)
        names = os.listdir(directory) if os.path.isdir(directory) else []
        names = sorted((n for n in names if n.endswith(".txt")), key=_number)
        if not names:
            raise ValueError(
                f"`folder` must hold {split}/{level}/*.txt. Received: {folder!r}"
            )
        for name in names:
            rows += _questions(os.path.join(directory, name), f"{level}{name}")
    if not rows:
        raise ValueError(f"`folder` must hold questions. Received: {folder!r}")
    passages, questions, options, labels, ids = zip(*rows)
    labelled = any(label is not None for label in labels)
    if labelled and None in labels:
        raise ValueError(
            "`folder`: all questions must have answers, or none. Received: none for "
            f"{ids[labels.index(None)]}"
        )
    return ChoiceExamples(
        passages=passages,
        questions=questions,
        options=options,
        labels=np.array(labels, np.int32) if labelled else None,
        label_names=_LETTERS,
        ids=ids,
    )


def _number(name):
    return [int(digits) for digits in re.findall(r"\d+", name)], name


def _questions(path, passage_id):
    record = json_file(path)
    passage = field(record, "article", str, path)
    questions = field(record, "questions", list, path)
    options = field(record, "options", list, path)
    answers = field(record, "answers", list, path) if "answers" in record else None
    for name, column in (("options", options), ("answers", answers)):
        if column is not None and len(column) != len(questions):
            raise ValueError(
                f"{path}: {name!r} must have one entry a question, {len(questions)}. "
                f"Received: {len(column)}"
            )
    for index, question in enumerate(questions):
        where = f"{path}, question {index}"
        texts = tuple(
            checked(o, str, where) for o in checked(options[index], list, where)
        )
        if len(texts) != len(_LETTERS):
            raise ValueError(f"{where}: must have 4 options. Received: {len(texts)}")
        if answers is not None and answers[index] not in _LETTERS:
            raise ValueError(
                f"{where}: the answer must be one of {list(_LETTERS)}. Received: "
                f"{answers[index]!r:.80}"
            )
        yield (
            passage,
            checked(question, str, where),
            texts,
            None if answers is None else _LETTERS.index(answers[index]),
            f"{passage_id}-{index}",
        )


def _score(examples, predictions):
    ids, labels = check_list("ids", examples.ids, str), examples.labels
    metrics = {"accuracy": accuracy(labels, predictions)}
    for level in RACE_LEVELS:
        rows = [i for i, name in enumerate(ids) if name.startswith(level)]
        value = accuracy(labels[rows], predictions[rows]) if rows else math.nan
        metrics[f"accuracy_{level}"] = value
    return metrics


def _write(split, examples, predictions, folder):
    path = new_file(folder, "RACE.json")
    return (write_json(predicted_texts(examples, predictions), path),)


DATASETS = (
    Dataset(
        name="RACE",
        reader=read_race,
        options=("levels",),
        kind=ChoiceExamples,
        label_names=_LETTERS,
        metric_names=("accuracy", *(f"accuracy_{level}" for level in RACE_LEVELS)),
        scorer=_score,
        writer=_write,
    ),
)
