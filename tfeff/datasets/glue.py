"""The nine tasks of GLUE.

The files are `folder/task/split.tsv`. MRPC is also read as Microsoft publishes it:
`msr_paraphrase_test.txt`, and `msr_paraphrase_train.txt`, whose pairs of the dev split
are named in GLUE's `dev_ids.tsv`. A test split may lack labels. With `skip_malformed`,
lines with too few or too many columns are skipped; the published QQP has some.

Metrics are Matthews' correlation and accuracy for CoLA; F1 of the label 1 and accuracy
for MRPC and QQP; Pearson's and Spearman's correlation for STS-B; accuracy for the
others. Predictions go into `CoLA.tsv`, `MNLI-m.tsv`, `MNLI-mm.tsv` ….

Reference:
    Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
    Language Understanding", 2019, section 3.
"""

import functools
import math
import os
from collections.abc import Mapping
from typing import Any

from tfeff.datasets.files import first_file, lines, malformed
from tfeff.datasets.submissions import new_file, predicted_texts, write_tsv
from tfeff.datasets.tsv import read_tsv, tsv_dataset
from tfeff.utils.checks import check_mapping, is_number

# The average is over all tasks but WNLI.
SCORED_TASKS = ("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE")
_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")
# Published texts are read as they are: some are blank or begin and end with quotes.
_COLA: dict[str, Any] = dict(
    texts=("sentence",), label="label", label_names=_BINARY, any_text=True
)
_MRPC: dict[str, Any] = dict(
    texts=("#1 String", "#2 String"),
    label="Quality",
    label_names=_BINARY,
    any_text=True,
)
# The columns of CoLA's two files without a header.
_COLA_HEADER = ("source", "label", "mark", "sentence")
_MRPC_TRAIN = os.path.join("MRPC", "msr_paraphrase_train.txt")
_MRPC_TEST = os.path.join("MRPC", "msr_paraphrase_test.txt")
_MRPC_IDS = ("#1 ID", "#2 ID")
_MRPC_DEV_IDS = os.path.join("MRPC", "dev_ids.tsv")


def glue_average(scores: Mapping[str, float]) -> float:
    """The mean of one metric of each of GLUE's eight tasks, all but WNLI.

    Args:
        scores: the metric of each task, by its name; others are left out.

    Returns:
        The mean; NaN if a metric is.

    Raises:
        ValueError: if a task is missing.
        TypeError: if a metric is no number.

    Example:

    >>> import tfeff
    >>> tasks = ["CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE"]
    >>> tfeff.datasets.glue_average(dict.fromkeys(tasks, 0.5) | {"RTE": 0.7})
    0.525

    Reference:
        Jiang et al., "ConvBERT", section 4.2: "the average of all 8 tasks".
    """
    check_mapping("scores", scores, "tasks to metrics")
    missing = [task for task in SCORED_TASKS if task not in scores]
    if missing:
        raise ValueError(
            f"`scores` must have all of {list(SCORED_TASKS)}. "
            f"Received: none of {', '.join(missing)}"
        )
    for task in SCORED_TASKS:
        if not is_number(scores[task]):
            raise TypeError(
                f"`scores` must be numbers. Received: {task}={scores[task]!r}"
            )
    return math.fsum(scores[task] for task in SCORED_TASKS) / len(SCORED_TASKS)


def _read_cola(split, folder, skip_malformed=False):
    is_test = split == "test"
    return read_tsv(
        first_file(folder, os.path.join("CoLA", f"{split}.tsv")),
        **_COLA,
        header=None if is_test else _COLA_HEADER,
        label_optional=is_test,
        skip_malformed=skip_malformed,
    )


def _read_mrpc(split, folder, skip_malformed=False):
    is_test = split == "test"
    path = first_file(
        folder,
        os.path.join("MRPC", f"{split}.tsv"),
        _MRPC_TEST if is_test else _MRPC_TRAIN,
    )
    keep = None
    if path.endswith(_MRPC_TRAIN):
        number, names = next(lines(path))
        if not {*_MRPC_IDS} <= set(names.split("\t")):
            raise malformed(path, number, f"must name {' and '.join(_MRPC_IDS)}", names)
        dev_ids = lines(first_file(folder, _MRPC_DEV_IDS))
        dev = {tuple(line.split("\t")) for _, line in dev_ids}
        keep = functools.partial(_in_mrpc_part, dev, split == "dev")
    return read_tsv(
        path,
        **_MRPC,
        keep=keep,
        label_optional=is_test,
        skip_malformed=skip_malformed,
    )


def _in_mrpc_part(dev, of_dev, cells):
    """Whether a row of Microsoft's training file belongs to GLUE's split."""
    return (tuple(cells[name] for name in _MRPC_IDS) in dev) == of_dev


def _write_mnli(split, examples, predictions, folder):
    suffix = {"matched": "-m", "mismatched": "-mm"}.get(split.partition("_")[2], "")
    path = new_file(folder, f"MNLI{suffix}.tsv")
    return (write_tsv(predicted_texts(examples, predictions), path),)


def _write_stsb(split, examples, predictions, folder):
    texts = predicted_texts(examples, predictions, ".3f")
    return (write_tsv(texts, new_file(folder, "STS-B.tsv")),)


DATASETS = (
    tsv_dataset(
        "CoLA",
        **_COLA,
        reader=_read_cola,
        metric_names=("matthews_correlation", "accuracy"),
    ),
    tsv_dataset(
        "SST-2",
        ("sentence",),
        "label",
        _BINARY,
        any_text=True,
    ),
    tsv_dataset(
        "MRPC",
        **_MRPC,
        reader=_read_mrpc,
        metric_names=("f1", "accuracy"),
    ),
    tsv_dataset(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        _BINARY,
        any_text=True,
        metric_names=("f1", "accuracy"),
    ),
    tsv_dataset(
        "STS-B",
        _SENTENCES,
        "score",
        ratings=(0.0, 5.0),
        any_text=True,
        writer=_write_stsb,
    ),
    tsv_dataset(
        "MNLI",
        _SENTENCES,
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        any_text=True,
        splits=(
            *("train", "dev_matched", "dev_mismatched"),
            *("test_matched", "test_mismatched"),
        ),
        more_tests=False,  # "test" is half a name.
        dev_splits=("dev_matched", "dev_mismatched"),
        writer=_write_mnli,
    ),
    tsv_dataset("QNLI", ("question", "sentence"), "label", _ENTAILMENT, any_text=True),
    tsv_dataset("RTE", _SENTENCES, "label", _ENTAILMENT, any_text=True),
    tsv_dataset("WNLI", _SENTENCES, "label", _BINARY, any_text=True),
)
