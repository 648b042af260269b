"""The nine tasks of GLUE, from the files in which they are published."""

import dataclasses
import math
import os

import numpy as np

from tfeff.data.finetuning.examples import TextExamples
from tfeff.datasets.files import first_file, lines, malformed
from tfeff.utils.checks import check_choice, check_path

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")
_SPLITS = ("train", "dev", "test")
_MNLI_SPLITS = (
    "train",
    "dev_matched",
    "dev_mismatched",
    "test_matched",
    "test_mismatched",
)


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task: the columns of its files, and what its labels are.

    Attributes:
        texts: the names of the columns of one text or two.
        label: the name of the label's column.
        label_names: all labels, in the order of their ids; None for ratings.
        splits: the parts that are published.
    """

    texts: tuple[str, ...]
    label: str
    label_names: tuple[str, ...] | None
    splits: tuple[str, ...] = _SPLITS


GLUE_TASKS = {
    "CoLA": GlueTask(("sentence",), "label", _BINARY),
    "SST-2": GlueTask(("sentence",), "label", _BINARY),
    "MRPC": GlueTask(("#1 String", "#2 String"), "Quality", _BINARY),
    "QQP": GlueTask(("question1", "question2"), "is_duplicate", _BINARY),
    "STS-B": GlueTask(_SENTENCES, "score", None),
    "MNLI": GlueTask(
        _SENTENCES,
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        _MNLI_SPLITS,
    ),
    "QNLI": GlueTask(("question", "sentence"), "label", _ENTAILMENT),
    "RTE": GlueTask(_SENTENCES, "label", _ENTAILMENT),
    "WNLI": GlueTask(_SENTENCES, "label", _BINARY),
}
# The two files of CoLA that have no line of names.
_COLA = ("source", "label", "mark", "sentence")
_MRPC_TRAIN = os.path.join("MRPC", "msr_paraphrase_train.txt")
_MRPC_TEST = os.path.join("MRPC", "msr_paraphrase_test.txt")
_MRPC_DEV_IDS = os.path.join("MRPC", "dev_ids.tsv")
HIGHEST_RATING = 5.0


def read_glue(
    task: str, split: str, folder: str | os.PathLike, skip_malformed: bool = False
) -> TextExamples:
    """Reads one part of a GLUE task.

    The file is `folder/task/split.tsv`. MRPC is also read as Microsoft publishes it:
    `msr_paraphrase_test.txt`, and `msr_paraphrase_train.txt` of which GLUE's
    `dev_ids.tsv` names the pairs of the dev part. Quotes are text, as the benchmark
    has them.

    Args:
        task: `"CoLA"`, `"SST-2"`, `"MRPC"`, `"QQP"`, `"STS-B"`, `"MNLI"`, `"QNLI"`,
            `"RTE"` or `"WNLI"`.
        split: `"train"`, `"dev"` or `"test"`; for MNLI `"train"`, `"dev_matched"`,
            `"dev_mismatched"`, `"test_matched"` or `"test_mismatched"`.
        folder: the folder of all tasks.
        skip_malformed: leave out lines with too few or too many columns, and say
            so in `skipped`; the published QQP has some. By default they are errors.

    Returns:
        The texts, labels (None for a test part without) and ids. The labels of STS-B
        are similarities from 0 to 5.

    Raises:
        ValueError: if there is no such task, split or file, or the file is empty,
            lacks a column, or has a malformed line or a label outside of the set; the
            message has the file and the line.

    Example:
    ```python
    import os
    import tfeff

    os.makedirs("glue/SST-2")
    with open("glue/SST-2/dev.tsv", "w") as file:
        file.write("sentence\\tlabel\\n" "a joy\\t1\\n" "a bore\\t0\\n")
    examples = tfeff.datasets.read_glue("SST-2", "dev", "glue")
    assert examples.first == ("a joy", "a bore")
    assert examples.labels.tolist() == [1, 0]
    ```

    Reference:
        Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
        Language Understanding", 2019, section 3.
    """
    known = GLUE_TASKS[check_choice("task", task, GLUE_TASKS)]
    check_choice("split", split, known.splits)
    names = [os.path.join(task, f"{split}.tsv")]
    if task == "MRPC":
        names.append(_MRPC_TEST if split == "test" else _MRPC_TRAIN)
    path = first_file(check_path("folder", folder), *names)
    in_part = _all
    if path.endswith(_MRPC_TRAIN):
        in_part = _mrpc_part(split, first_file(folder, _MRPC_DEV_IDS))

    rows = lines(path)
    if task == "CoLA" and split != "test":
        header = list(_COLA)
    else:
        header = next(rows)[1].split("\t")
    labelled = known.label in header or not split.startswith("test")
    for column in (*known.texts, *[known.label] * labelled):
        if column not in header:
            raise malformed(path, 1, f"must name the column {column!r}", str(header))
    text_places = [header.index(column) for column in known.texts]
    label_place = header.index(known.label) if labelled else None
    id_place = next((header.index(c) for c in ("index", "id") if c in header), None)

    texts, labels, ids, skipped = [], [], [], []
    for number, line in rows:
        cells = line.split("\t")
        if len(cells) != len(header):
            error = malformed(
                path, number, f"must have {len(header)} columns", str(len(cells))
            )
            if not skip_malformed:
                raise error
            skipped.append(str(error))
            continue
        if not in_part(cells):
            continue
        if labelled:
            labels.append(_label(cells[label_place], known.label_names, path, number))
        ids.append(str(len(ids)) if id_place is None else cells[id_place])
        texts.append([cells[place] for place in text_places])
    if not texts:
        raise ValueError(f"{path} must hold examples. Received: none")
    first, *second = zip(*texts)
    kind = np.float32 if known.label_names is None else np.int32
    return TextExamples(
        first=first,
        second=second[0] if second else None,
        labels=np.array(labels, kind) if labelled else None,
        label_names=known.label_names,
        ids=tuple(ids),
        skipped=tuple(skipped),
    )


def _all(_cells):
    return True


def _mrpc_part(split, path):
    """Which rows of Microsoft's training file are GLUE's part of the name."""
    dev = {tuple(line.split("\t")) for _, line in lines(path)}
    return lambda cells: (tuple(cells[1:3]) in dev) == (split == "dev")


def _label(text, names, path, number):
    if names is not None:
        if text not in names:
            expected = f"the label must be one of {list(names)}"
            raise malformed(path, number, expected, repr(text))
        return names.index(text)
    try:
        rating = float(text)
    except ValueError:
        rating = math.nan
    if not 0 <= rating <= HIGHEST_RATING:
        expected = f"the label must be a number from 0 to {HIGHEST_RATING:g}"
        raise malformed(path, number, expected, repr(text))
    return rating
