"""Files of texts, pairs and triplets to learn embeddings from."""

import os
import re

from tfeff.data.finetuning.examples import SentenceExamples
from tfeff.datasets.files import check_existing, field, json_lines, lines, malformed
from tfeff.storage.arguments import READ, paths

# The columns of a file, by names that sentence-transformers' data sets have.
_COLUMNS = (("text",), ("anchor", "positive"), ("anchor", "positive", "negative"))
_PARTNER = re.compile(r"anchor|positive|negative(_\d+)?")
_KNOWN = "'text', or 'anchor' and 'positive', or these and 'negative'"


@paths(path=READ)
def read_sentences(path: str | os.PathLike) -> SentenceExamples:
    """Reads texts, pairs or triplets, one a line.

    - `.jsonl`, `.ndjson`: a JSON object a line, with the fields `text`; `anchor` and
      `positive`; or `anchor`, `positive` and `negative`. Other fields are not read,
      but one of these in another company is an error, and so is `negative_1`.
    - `.tsv`: the first line names the columns, among them those. Quotes have no
      meaning: programs that write such a file, as with Python's `csv`, must not quote.
    - any other but `.csv` and `.json`: a text a line.

    All may be compressed, with `.gz` behind. Blank lines are no examples.

    Args:
        path: the file, UTF-8.

    Returns:
        The examples.

    Raises:
        ValueError: if the file is missing or empty, is `.csv` or `.json`, or has other
            columns; with file and line, if a line is malformed, has an empty text, or
            the same text twice.

    Example:
    ```python
    import tfeff

    with open("pairs.tsv", "w") as file:
        file.write("anchor\\tpositive\\nIt rains.\\tRain falls.\\n")
    examples = tfeff.datasets.read_sentences("pairs.tsv")
    assert examples.rows == (("It rains.", "Rain falls."),)
    ```
    """
    path = check_existing("path", path)
    kind = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if kind in (".csv", ".json"):  # Lines that are no texts.
        raise ValueError(
            f"`path` must be a file of texts, or of {_KNOWN}: tab-separated, .tsv, or "
            f"JSON lines, .jsonl. Received: path={path!r}"
        )
    rows = []
    for where, row in _READERS.get(kind, _text_rows)(path):
        if not all(text.strip() for text in row):
            raise ValueError(f"{where}: must have no empty text. Received: {row!r:.80}")
        if len(set(row)) < len(row):
            raise ValueError(
                f"{where}: must have different texts: one that is its own partner is "
                f"given alone, as 'text'. Received: {row!r:.80}"
            )
        rows.append(row)
    if not rows:
        raise ValueError(f"{path} must hold texts. Received: none")
    return SentenceExamples(rows=tuple(rows))


def _text_rows(path):
    return ((f"{path}, line {number}", (line,)) for number, line in lines(path))


def _table_rows(path):
    rows = lines(path)
    number, line = next(rows)
    header = line.split("\t")
    columns = _columns(header)
    if columns is None:
        raise malformed(path, number, f"must name the columns {_KNOWN}", str(header))
    for column in columns:
        if header.count(column) > 1:
            expected = f"must name the column {column!r} once"
            raise malformed(path, number, expected, str(header))
    indices = [header.index(column) for column in columns]
    for number, line in rows:
        cells = line.split("\t")
        if len(cells) != len(header):
            expected = f"must have {len(header)} columns"
            raise malformed(path, number, expected, str(len(cells)))
        yield f"{path}, line {number}", tuple(cells[index] for index in indices)


def _json_rows(path):
    first = None
    for where, record in json_lines(path):
        columns = _columns(record)
        if columns is None:
            raise ValueError(f"{where}: must have {_KNOWN}. Received: {list(record)}")
        first = first or columns
        if columns != first:
            raise ValueError(
                f"{where}: must have {list(first)}, as the first line. "
                f"Received: {list(record)}"
            )
        yield where, tuple(field(record, column, str, where) for column in columns)


def _columns(names):
    """The columns to read; `None` if there are none, or others that mean partners."""
    found = next((c for c in reversed(_COLUMNS) if set(c) <= set(names)), ())
    unread = {name for name in names if _PARTNER.fullmatch(name)} - {*found}
    return None if unread else found or None


_READERS = {".jsonl": _json_rows, ".ndjson": _json_rows, ".tsv": _table_rows}
