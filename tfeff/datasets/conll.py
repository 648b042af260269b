"""Labelled words in the layouts of CoNLL's shared tasks: names and chunks.

A line has a word and its label, with columns between them that are not read; a blank
line ends a sentence. Labels mark phrases: `B-PER` begins one, `I-PER` goes on with it,
`O` is outside of all. The files are `folder/split.txt`, `.tsv`, `.conll` or `.iob2`, or
the same in `folder/name/`, if there is one; that of the split `dev` may be called
`valid`, `validation`, `val` or `devel` instead. Where there is no such file, as
CoNLL-2000 has none, every tenth sentence of `train` is `dev`, and a warning says so.

The metrics are those of CoNLL's official script, computed by seqeval: F1, precision and
recall of whole phrases, and the accuracy of words. Predictions are written as words and
labels, tab-separated, to `name.tsv`.

Reference:
    Tjong Kim Sang and Buchholz, "Introduction to the CoNLL-2000 shared task: Chunking",
    2000; Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 shared task",
    2003, section 2; Pan et al., "Cross-lingual name tagging and linking for 282
    languages", 2017; Derczynski et al., "Results of the WNUT2017 shared task", 2017.
"""

import functools
import itertools
import os
import re
import warnings
from collections.abc import Sequence
from typing import Any

from tfeff.data.finetuning.examples import TokenExamples, take
from tfeff.datasets.checks import check_names
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import check_existing, malformed, numbered_lines
from tfeff.datasets.phrases import (
    PHRASE_METRICS,
    check_labels,
    is_of_phrase,
    some_metrics,
)
from tfeff.datasets.submissions import check_fields, new_file, write_lines
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_bool, check_choice, check_integer
from tfeff.utils.near_misses import near_miss

_SUFFIXES = (".txt", ".tsv", ".conll", ".iob2")
_DOCUMENT = "-DOCSTART-"
# How B- and I- say what prefixes of BIOES and BILOU do.
_OTHER_SCHEMES = {"S": "B", "U": "B", "E": "I", "L": "I"}
_DEV_NAMES = ("dev", "valid", "validation", "val", "devel")
_DEV_EVERY = 10
_BLANKS = " \t"  # Other white space, such as no-break spaces, is of words.
_NUMBER = re.compile(r"\d{1,9}")
# First cells of CoNLL-U's comments, of words that are several, and of left-out ones.
_EXTRA = re.compile(r"#|\d+[-.]\d+$")


@paths(path=READ)
def read_conll(
    path: str | os.PathLike,
    label_names: tuple[str, ...],
    word_column: int = 0,
    label_column: int = -1,
    label_optional: bool = False,
) -> TokenExamples:
    """Reads sentences of labelled words.

    Columns are separated by tabs, or in files without any by runs of spaces. Lines of
    tabs and spaces alone separate sentences, and so do lines that begin with
    `-DOCSTART-`, which separate documents. Where the first column numbers the words of
    each sentence, one after another from any number, as in CoNLL-U, no words are lines
    of comments (`# text`), of what is written as one word (`1-2`, above the words 1 and
    2) and of words that are left out (`8.1`).

    Args:
        path: the file, UTF-8; `.gz` is decompressed.
        label_names: all labels, in the order of their ids.
        word_column: integer, the column of the words; -1 is the last. It is 1 where
            column 0 numbers them.
        label_column: integer, the column of the labels.
        label_optional: whether the file may have no labels: one column alone, or two,
            of which the first numbers the words of the second.

    Returns:
        The sentences; their ids are numbers from 0.

    Raises:
        ValueError: with the file and the line, if it is missing or empty, a line has
            too few columns, or not as many as the lines before, so that words and
            labels could be mistaken for others; if a label is unknown: the message
            names a near miss; or if `word_column` has the numbers of the words.
        TypeError: if an argument has another type.

    Example:
    ```python
    import tfeff

    with open("names.txt", "w") as file:
        file.write("Ada NNP B-PER\\nwrote VBD O\\n\\nyes UH O\\n")
    examples = tfeff.datasets.read_conll("names.txt", ("O", "B-PER", "I-PER"))
    assert examples.words == (("Ada", "wrote"), ("yes",))
    assert [row.tolist() for row in examples.labels] == [[1, 0], [0]]
    ```
    """
    label_names = _names(label_names)
    word_column = check_integer("word_column", word_column, -100)
    label_column = check_integer("label_column", label_column, -100)
    check_bool("label_optional", label_optional)
    path = check_existing("path", path)
    lines = list(numbered_lines(path))
    has_tabs = any("\t" in line.strip(_BLANKS) for _, line in lines)
    rows = [
        (number, [] if _is_between(line) else _cells(line, has_tabs))
        for number, line in lines
    ]
    if is_numbered := _is_numbered(rows):
        rows = [(number, cells) for number, cells in rows if not _is_extra(cells)]
    without_labels = 2 if is_numbered and word_column == 1 else 1
    labelled = not label_optional or any(
        len(cells) > without_labels for _, cells in rows
    )
    unlabelled = label_optional and set(label_names).isdisjoint(
        cells[-1] for _, cells in rows if cells
    )
    sentences: list[list[tuple[str, int]]] = [[]]
    first = None
    for number, cells in rows:
        if not cells:
            sentences.append([])
            continue
        if labelled and len(cells) < 2:
            raise malformed(path, number, "must have a word and a label", str(cells))
        first = first or (number, len(cells))
        if len(cells) != first[1]:
            expected = f"must have {first[1]} columns, as line {first[0]}"
            raise malformed(path, number, expected, str(cells))
        has_words = len(cells) > 2 or unlabelled and len(cells) == 2
        if is_numbered and has_words and word_column in (0, -len(cells)):
            raise ValueError(
                f"`word_column` must be that of the words, such as 1, for {path}, "
                "whose column 0 numbers the words of each sentence. Received: "
                f"word_column={word_column}"
            )
        word = _cell(cells, "word_column", word_column, path, number)
        label = 0
        if labelled:
            name = _cell(cells, "label_column", label_column, path, number)
            label = _index(name, label_names, path, number)
        sentences[-1].append((word, label))
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise ValueError(f"{path} must hold sentences. Received: none")
    words, labels = zip(*(zip(*sentence) for sentence in sentences))
    return TokenExamples(
        words=words,
        labels=labels if labelled else None,
        label_names=label_names,
        ids=tuple(map(str, range(len(sentences)))),
    )


def conll_dataset(
    name: str,
    types: Sequence[str] | None = None,
    *,
    label_names: Sequence[str] | None = None,
    word_column: int = 0,
    label_column: int = -1,
    **attributes: Any,
) -> Dataset:
    """A data set of labelled words: `folder/split.txt`, or `folder/name/split.txt`.

    If there is a `folder/name/`, all splits are looked for in it.

    The labels are `O`, and `B-` and `I-` of each type, or `label_names`. Of labels that
    are not of phrases, such as parts of speech, the metric is the accuracy alone. A
    split whose name begins with "test", be it that of any file, such as `test_new.txt`,
    may lack the labels. The file of `dev` may be called `valid`, `validation`, `val` or
    `devel`. Where there is none, `dev` is every tenth sentence of `train`, which is
    warned of.

    Args:
        name: the name of the data set, and of its folder if the files lie in one.
        types: the types of phrases, such as `("PER", "LOC")`; None with `label_names`.
        label_names: all labels, in the order of their ids, in place of `types`.
        word_column: integer, the column of the words.
        label_column: integer, the column of the labels.
        **attributes: further attributes of `Dataset`; they replace those that are
            set here.

    Returns:
        A `Dataset`, to be registered.

    Raises:
        TypeError, ValueError: if an argument has another type or value, or not one of
            `types` and `label_names` is given.

    Example:
    ```python
    import os
    import tfeff

    birds = tfeff.datasets.conll_dataset("Birds", ("BIRD",))
    os.makedirs("data/Birds")
    with open("data/Birds/dev.txt", "w") as file:
        file.write("great B-BIRD\\ntits I-BIRD\\nsing O\\n")
    dev = birds.read("dev", "data")
    assert birds.metrics(dev, [[1, 2, 0]])["f1"] == 1.0
    ```
    """
    if (types is None) == (label_names is None):
        raise ValueError(
            "One of `types` and `label_names` must be given. Received: "
            f"types={types!r:.80}, label_names={label_names!r:.80}"
        )
    labels = _labels(types) if label_names is None else _names(label_names)
    if len(labels) < 2:
        raise ValueError(
            f"`label_names` must name two labels at least. Received: {list(labels)}"
        )
    word_column = check_integer("word_column", word_column, -100)
    label_column = check_integer("label_column", label_column, -100)
    fitting = PHRASE_METRICS if all(map(is_of_phrase, labels)) else ("accuracy",)
    metric_names = check_names("metric_names", attributes.get("metric_names", fitting))
    if "scorer" not in attributes:
        for metric in metric_names:
            check_choice("metric_names", metric, fitting)

    def read(split, folder):
        part = split in ("train", "dev") and _find(folder, name, "dev") is None
        path = _find(folder, name, "train" if part else split)
        if path is None:
            raise ValueError(
                f"`folder` must hold {split}{' or '.join(_SUFFIXES)}, or {name} with "
                f"it. Received: {folder!r}"
            )
        examples = read_conll(
            path, labels, word_column, label_column, split.startswith("test")
        )
        if part and len(examples) < _DEV_EVERY:
            raise ValueError(
                f"`folder` must hold dev{' or '.join(_SUFFIXES)}, or at least "
                f"{_DEV_EVERY} sentences to train on, of which every tenth is set "
                f"aside. Received: {len(examples)} of them in {path}"
            )
        if not part:
            return examples
        warnings.warn(
            f"every tenth sentence of {path} is set aside as `dev`, of which there is "
            f"no file: {' or '.join(_DEV_NAMES)}, with {' or '.join(_SUFFIXES)}",
            stacklevel=1,
        )
        tenths = range(_DEV_EVERY - 1, len(examples), _DEV_EVERY)
        others = [row for row in range(len(examples)) if row not in tenths]
        return take(examples, tenths if split == "dev" else others)

    defaults: dict[str, Any] = {
        "name": name,
        "reader": read,
        "kind": TokenExamples,
        "more_tests": "reader" not in attributes,
        "label_names": labels,
        "metric_names": metric_names,
        "scorer": functools.partial(some_metrics, metric_names),
        "writer": functools.partial(_write, name),
    }
    return Dataset(**(defaults | attributes))


def _names(label_names):
    names = check_names("label_names", label_names)
    if not names:
        raise ValueError("`label_names` must name a label. Received: none")
    return names


def _labels(types):
    """The labels of phrases of the types."""
    types = check_names("types", types)
    marked = {kind for kind in types if f"I-{kind.removeprefix('B-')}" in types}
    if all(kind.startswith(("B-", "I-")) for kind in types) or "O" in types or marked:
        raise ValueError(
            "`types` must name types of phrases, at least one, such as 'PER' of the "
            f"labels 'B-PER' and 'I-PER'. Received: types={list(types)}. Other labels "
            "are given as `label_names`."
        )
    return ("O", *(f"{mark}-{kind}" for kind in types for mark in "BI"))


def _is_between(line):
    """Whether a line is between two sentences."""
    return not line.strip(_BLANKS + "\ufeff") or line.startswith(_DOCUMENT)


def _cells(line, has_tabs):
    return line.split("\t") if has_tabs else re.split(" +", line.strip(_BLANKS))


def _is_numbered(rows):
    """Whether the first cells number the words of each sentence, one after another."""
    before, is_counted = None, False
    for _, cells in rows:
        if not cells:
            before = None
        elif not _is_extra(cells):
            number = int(cells[0]) if _NUMBER.fullmatch(cells[0]) else None
            if number is None or before not in (None, number - 1):
                return False
            is_counted = is_counted or before is not None
            before = number
    return is_counted


def _is_extra(cells):
    """Whether a line of a numbered file is no word: as `# text`, 1-2 and 8.1."""
    return bool(cells) and bool(_EXTRA.match(cells[0]))


def _cell(cells, what, column, path, number):
    if not -len(cells) <= column < len(cells) or not cells[column]:
        expected = f"must have a column {column} (`{what}`)"
        raise malformed(path, number, expected, str(cells))
    return cells[column]


def _index(name, label_names, path, number):
    if name not in label_names:
        expected = f"the label must be one of {list(label_names)}"
        prefix, _, kind = name.partition("-")
        written = f"{_OTHER_SCHEMES.get(prefix)}-{kind}"
        near = near_miss(name, label_names)
        if written in label_names:
            near = (
                f" In place of {prefix}-, of another scheme, write {written[:2]} in "
                "all lines."
            )
        raise malformed(path, number, expected, f"{name!r}.{near}")
    return label_names.index(name)


def _find(folder, name, split):
    """The path of a split's file, or None."""
    own = os.path.join(folder, name)
    parent = own if os.path.isdir(own) else folder
    found = []
    for stem in _DEV_NAMES if split == "dev" else (split,):
        paths = (os.path.join(parent, f"{stem}{suffix}") for suffix in _SUFFIXES)
        found += filter(os.path.isfile, paths)
    if len(found) > 1:
        raise ValueError(f"`folder` must hold one file of {split}. Received: {found}")
    return found[0] if found else None


def _write(name, split, examples, predictions, folder):
    lines = []
    check_fields("examples", itertools.chain.from_iterable(examples.words))
    for sentence, row in zip(examples.words, check_labels(examples, predictions)):
        lines += [
            f"{word}\t{examples.label_names[label]}"
            for word, label in zip(sentence, row)
        ]
        lines.append("")
    return (write_lines(lines, new_file(folder, f"{name}.tsv")),)


DATASETS = (
    conll_dataset("CoNLL-2003", ("PER", "ORG", "LOC", "MISC")),
    conll_dataset(
        "CoNLL-2000",
        (
            *("NP", "VP", "PP", "ADVP", "SBAR", "ADJP"),
            *("PRT", "CONJP", "INTJ", "LST", "UCP"),
        ),
    ),
    conll_dataset("WikiANN", ("PER", "ORG", "LOC")),
    conll_dataset(
        "WNUT-17",
        ("corporation", "creative-work", "group", "location", "person", "product"),
    ),
)
