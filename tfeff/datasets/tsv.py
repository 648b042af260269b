"""Examples in tab-separated files, one for each split, as in GLUE."""

import itertools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfeff.data.finetuning.examples import TextExamples
from tfeff.datasets.checks import check_names, check_range
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import (
    AS_BY_PANDAS,
    check_existing,
    first_file,
    malformed,
    numbered_lines,
)
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_bool, check_callable
from tfeff.utils.near_misses import closest, near_miss

ANY_RATING = (-math.inf, math.inf)


def tsv_dataset(
    name: str,
    texts: Sequence[str],
    label: str,
    label_names: tuple[str, ...] | None = None,
    ratings: tuple[float, float] = ANY_RATING,
    any_text: bool = False,
    **attributes: Any,
) -> Dataset:
    """A data set whose splits are the files `folder/name/split.tsv`.

    A split whose name begins with "test", be it that of any file, such as
    `test_new.tsv`, may lack the labels. Predictions are written
    to `name.tsv`, ratings clipped to their range. Quotes have no meaning, as in GLUE:
    what writes a file must not quote. Blank texts are errors, and so are those that
    look quoted, as `read_tsv` says.

    Args:
        name: the name of the data set and of its folder.
        texts: the names of the columns of one text or two.
        label: the name of the label's column.
        label_names: all labels, in the order of their ids; None for ratings.
        ratings: the least and the highest rating.
        any_text: whether texts may be blank and look quoted.
        **attributes: further attributes of `Dataset`; they replace those that are
            set here.

    Returns:
        A `Dataset`, to be registered.

    Raises:
        TypeError, ValueError: if names or ratings have another type or value.

    Example: see `register`.
    """
    columns = dict(texts=texts, label=label, label_names=label_names, ratings=ratings)
    columns = _checked(**columns)
    check_bool("any_text", any_text)

    def read(split, folder, skip_malformed=False):
        return read_tsv(
            first_file(folder, os.path.join(name, f"{split}.tsv")),
            **columns,
            label_optional=split.startswith("test"),
            skip_malformed=skip_malformed,
            any_text=any_text,
        )

    rated = label_names is None
    defaults: dict[str, Any] = {
        "name": name,
        "reader": read,
        "options": ("skip_malformed",),
        "more_tests": "reader" not in attributes,
        "label_names": label_names,
        "metric_names": ("pearson", "spearman") if rated else ("accuracy",),
        "ratings": None if columns["ratings"] == ANY_RATING else columns["ratings"],
    }
    return Dataset(**(defaults | attributes))


@paths(path=READ)
def read_tsv(
    path: str | os.PathLike,
    texts: Sequence[str],
    label: str,
    label_names: tuple[str, ...] | None = None,
    ratings: tuple[float, float] = ANY_RATING,
    header: tuple[str, ...] | None = None,
    keep: Callable[[dict[str, str]], bool] | None = None,
    label_optional: bool = False,
    skip_malformed: bool = False,
    any_text: bool = False,
) -> TextExamples:
    """Reads texts and labels from a tab-separated file. Quotes have no meaning.

    Args:
        path: the file, UTF-8, a line for each example. Blank lines count for nothing,
            but are errors among texts alone, where they might be examples.
        texts: the names of the columns of one text or two.
        label: the name of the label's column.
        label_names: all labels, in the order of their ids; None for ratings.
        ratings: the least and the highest rating.
        header: the names of all columns, if they are not in the file's first line.
        keep: a function that gets a line's cells by column and returns whether the
            line is an example; by default all are.
        label_optional: whether the label's column may be missing.
        skip_malformed: skip lines with too few or too many columns, or with a text that
            is blank or looks quoted, and list them in `skipped`. By default they are
            errors. Ids that are numbers from 0 count the lines that are left.
        any_text: whether texts may be blank, and look quoted: with quotes around them,
            and each of those within twice, as programs for tables write them. By
            default they are malformed.

    Returns:
        The texts, labels and ids: the column `index` or `id`, or numbers from 0.

    Raises:
        ValueError: if the file is missing or empty, lacks a column or names one of
            those twice, or has a malformed line or an unknown label; the message has
            the file and the line.

    Example:
    ```python
    import tfeff

    with open("weather.tsv", "w") as file:
        file.write("report\\tsky\\nIt rains.\\twet\\nIt shines.\\tdry\\n")
    examples = tfeff.datasets.read_tsv(
        "weather.tsv", texts=("report",), label="sky", label_names=("dry", "wet")
    )
    assert examples.first == ("It rains.", "It shines.")
    assert examples.labels.tolist() == [1, 0]
    ```
    """
    label_optional = check_bool("label_optional", label_optional)
    check_bool("skip_malformed", skip_malformed)
    check_bool("any_text", any_text)
    columns = _checked(texts, label, label_names, ratings)
    texts, label_names = columns["texts"], columns["label_names"]
    if keep is not None:
        check_callable("keep", keep)
    needed = {*texts} if label_optional else {*texts, label}
    path = check_existing("path", path)
    rows = _without_blank_ends(numbered_lines(path))
    first_line = 1
    if header is None:
        first_line, line = next(rows)
        names = line.split("\t")
    else:
        names = list(check_names("header", header))
        if not needed <= set(names):
            raise ValueError(f"`header` must name {sorted(needed)}. Received: {names}")
    labelled = label in names or not label_optional
    others = (name for name in names if name not in texts)
    if not labelled and (near := closest(label, others, cutoff=1.0)):
        expected = f"must name the column {label!r}, or none like it"
        raise malformed(path, first_line, expected, f"{near!r}")
    hint = f" Without the column {label!r} the file is read, too." * label_optional
    id_column = next((name for name in ("index", "id") if name in names), None)
    for column in (*texts, *[label] * labelled, *[id_column] * (id_column is not None)):
        if names.count(column) != 1:
            expected = f"must name the column {column!r}{' once' * (column in names)}"
            near = "" if column in names else near_miss(column, names)
            if f'"{column}"' in names:
                near = f" Write it without quotes, {AS_BY_PANDAS}."
            if len(names) == 1 and "," in names[0]:
                near = " Columns must be separated by tabs."
            raise malformed(path, first_line, expected, f"{names}.{near}")
    text_indices = [names.index(column) for column in texts]
    label_index = names.index(label) if labelled else -1
    id_index = None if id_column is None else names.index(id_column)

    found, labels, skipped = [], [], []
    ids: list[str] = []
    for number, line in rows:
        if _is_blank((number, line)):
            if len(names) == 1:  # An example, whose number its prediction needs.
                raise malformed(path, number, "must hold a text", "a blank line")
            continue
        cells = line.split("\t")
        problem = None
        if len(cells) != len(names):
            problem = f"must have {len(names)} columns", str(len(cells))
        elif keep is not None and not keep(dict(zip(names, cells))):
            continue
        elif not any_text:
            problem = _problem({names[index]: cells[index] for index in text_indices})
        if problem is not None:
            error = malformed(path, number, *problem)
            if not skip_malformed:
                raise error
            skipped.append(str(error))
            continue
        if labelled:
            labels.append(_label(cells[label_index], path, number, hint, **columns))
        ids.append(str(len(ids)) if id_index is None else cells[id_index])
        found.append([cells[index] for index in text_indices])
    if not found:
        raise ValueError(f"{path} must hold examples. Received: none")
    first, *second = zip(*found)
    kind = np.float32 if label_names is None else np.int32
    return TextExamples(
        first=first,
        second=second[0] if second else None,
        labels=np.array(labels, kind) if labelled else None,
        label_names=label_names,
        ids=tuple(ids),
        skipped=tuple(skipped),
    )


def _without_blank_ends(numbered):
    """The lines from the first to the last that is not blank."""
    found = list(itertools.dropwhile(_is_blank, numbered))
    while _is_blank(found[-1]):
        del found[-1]
    return iter(found)


def _is_blank(numbered):
    """Whether a line is blank, which a row of blank cells is not."""
    _, line = numbered
    return not line.strip() and "\t" not in line


def _problem(row):
    """The requirement that a text of a row misses, and the text; `None` if none."""
    for column, text in row.items():
        if not text.strip():
            return f"must hold a text in the column {column!r}", repr(text)
        inner = text[1:-1]
        is_within = text.startswith('"') and text.endswith('"') and '""' in inner
        if is_within and '"' not in inner.replace('""', ""):
            expected = (
                "must hold a text without quotes around it, which have no meaning in a "
                f"TSV file: write it {AS_BY_PANDAS}, or give `any_text` if they are "
                "the text's own"
            )
            return expected, repr(text)
    return None


def _label(text, path, number, hint, label_names, ratings, **_):
    if label_names is not None:
        if text not in label_names:
            expected = f"the label must be one of {list(label_names)}"
            near = near_miss(text, label_names)
            raise malformed(path, number, expected, f"{text!r}.{near}{hint}")
        return label_names.index(text)
    least, highest = ratings
    try:
        rating = math.nan if "_" in text else float(text)
    except ValueError:
        rating = math.nan
    # Numbers beyond float32's range become infinite there.
    if not (np.isfinite(np.float32(rating)) and least <= rating <= highest):
        expected = "the label must be a number"
        if ratings != ANY_RATING:
            expected += f" from {least:g} to {highest:g}"
        raise malformed(
            path, number, expected, f"{text!r}.{hint}" if hint else repr(text)
        )
    return rating


def _checked(texts, label, label_names, ratings):
    """The arguments of `read_tsv` for texts and labels, checked."""
    texts = check_names("texts", texts)
    if len(texts) not in (1, 2):
        raise ValueError(f"`texts` must be one column or two. Received: {texts}")
    if not isinstance(label, str) or not label:
        raise TypeError(f"`label` must be a column. Received: label={label!r:.80}")
    if label in texts:
        raise ValueError(
            "`label` must be another column than `texts`. Received: "
            f"label={label!r}, texts={texts}"
        )
    if label_names is not None:
        label_names = check_names("label_names", label_names)
        if len(label_names) < 2:
            raise ValueError(
                f"`label_names` must be two at least. Received: {label_names=!r:.80}"
            )
    numbers = check_range("ratings", ratings)
    if label_names is not None and numbers != ANY_RATING:
        raise ValueError(
            "`ratings` must be left out with `label_names`. "
            f"Received: ratings={ratings!r:.80}, label_names={label_names}"
        )
    return {
        "texts": texts,
        "label": label,
        "label_names": label_names,
        "ratings": numbers,
    }
