"""Corpora of records, one field of which is the text: JSON Lines, Parquet, datasets."""

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tfeff.data.text.corpus import (
    Corpus,
    Part,
    absolute,
    matching_files,
    read_lines,
)
from tfeff.storage.streams import open_stream
from tfeff.utils.checks import check_string, has_surrogate
from tfeff.utils.near_misses import near_miss
from tfeff.utils.reading import raise_unreadable

# How the names of files end that have records.
JSON_LINES = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
_ROWS = 1024  # of a Parquet file that are in memory at once


def json_lines(
    patterns: str | os.PathLike | Sequence[str | os.PathLike], field: str = "text"
) -> Corpus:
    """Documents from JSON Lines: one object a line, one document an object.

    Files whose names end in `.gz` are decompressed. They are read line by line, in the
    order of `tfeff.data.text_files`. Blank lines, and texts that are empty or white
    space alone, are no documents.

    Args:
        patterns: a path or a glob (`**` descends into folders), or a list of them.
        field: the name of the field that holds the text.

    Returns:
        A re-iterable of `str`.

    Raises:
        TypeError: if `field` is no string.
        ValueError: if no file matches a pattern, or a file cannot be read or is empty;
            with the file and the line, at once for the first line of a file and
            otherwise when the documents are read, if a line is no JSON object in UTF-8,
            or lacks the field, or the field is no string or has half a character.

    Example:
    ```python
    import tfeff

    with open("news.jsonl", "w") as file:
        file.write('{"id": 1, "text": "A first document."}\\n{"text": "Another."}\\n')
    documents = tfeff.data.json_lines("*.jsonl")
    assert list(documents) == ["A first document.", "Another."]
    ```
    """
    check_string("field", field)
    paths = matching_files(patterns)
    for path in paths:
        number, record = next(_json_objects(path, path), (0, None))
        if record is None:
            raise ValueError(
                f"`patterns` must match files that hold text. Received: {path} has "
                "blank lines only"
            )
        _field(record, field, path, number)
    return Corpus(_file_part(path, _read_json_lines, field) for path in paths)


def parquet(
    patterns: str | os.PathLike | Sequence[str | os.PathLike], column: str = "text"
) -> Corpus:
    """Documents from Parquet files, one a row.

    A file is read in batches of rows, and no other column is read. Checksums of pages
    are compared where the file has them. Texts that are empty or white space alone are
    no documents. Needs `pip install 'tfeff[parquet]'`.

    Args:
        patterns: as of `tfeff.data.text_files`.
        column: the name of the column that holds the text.

    Returns:
        A re-iterable of `str`.

    Raises:
        ImportError: if `pyarrow` is not installed.
        TypeError: if `column` is no string.
        ValueError: if no file matches a pattern; if a file is no Parquet file, or has
            no such column of strings: the message names those that it has; when the
            documents are read, if a row has no text.

    Example:
    ```python
    import pyarrow
    import pyarrow.parquet
    import tfeff

    table = pyarrow.table({"id": [1, 2], "text": ["A first document.", "Another."]})
    pyarrow.parquet.write_table(table, "news.parquet")
    documents = tfeff.data.parquet("*.parquet")
    assert list(documents) == ["A first document.", "Another."]
    ```
    """
    check_string("column", column)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "`parquet` needs PyArrow: pip install 'tfeff[parquet]'"
        ) from error
    paths = matching_files(patterns)
    for path in paths:
        try:
            with open_stream(path) as file:
                schema = pyarrow.parquet.read_schema(file)
        except pyarrow.ArrowException as error:
            raise ValueError(
                f"`patterns` must match Parquet files. Received: {path}: {error}"
            ) from error
        strings = [f.name for f in schema if _holds_strings(f.type)]
        _check_column(column, strings, schema.names, path)
    return Corpus(_file_part(path, _read_parquet, column) for path in paths)


def hugging_face(dataset: Any, column: str = "text") -> Corpus:
    """Documents from a split of a Hugging Face data set, one an example.

    Args:
        dataset: a `datasets.Dataset`, or a `datasets.IterableDataset`, which is
            streamed anew for each reading. Its order must not change from one reading
            to the next.
        column: the name of the column that holds the text.

    Returns:
        A re-iterable of `str`. Texts that are empty or white space alone are left out.

    Raises:
        TypeError: if `dataset` is no such object; of a `datasets.DatasetDict` the
            message names the splits. If `column` is no string.
        ValueError: if it has no such column: the message names those that it has; when
            the documents are read, if an example has no text.

    Example:
    ```python
    import datasets  # pip install datasets
    import tfeff

    dataset = datasets.load_dataset("wikitext", "wikitext-103-v1", split="train")
    documents = tfeff.data.hugging_face(dataset)
    ```
    """
    check_string("column", column)
    if isinstance(dataset, Mapping):
        raise TypeError(
            "`dataset` must be one split of a data set. Received: splits "
            f"{list(dataset)}. Take one, such as dataset[{next(iter(dataset), '')!r}]"
        )
    if not hasattr(dataset, "select_columns"):
        raise TypeError(
            "`dataset` must be a `datasets.Dataset` or `datasets.IterableDataset`. "
            f"Received: dataset of type {type(dataset).__name__}"
        )
    # A stream may not know its columns before the first example.
    names = dataset.column_names
    names = list(next(iter(dataset), {})) if names is None else names
    _check_column(column, names, names, "the data set")
    return Corpus([_part("the data set", _read_examples, dataset, column)])


def _file_part(path: str, read: Callable[..., Iterator[str]], field: str) -> Part:
    file = absolute(path)
    return _part(path, read, file, path, field)._replace(file=file)


def _part(name: str, read: Callable[..., Iterator[str]], *arguments: Any) -> Part:
    return Part(name, functools.partial(_texts, read, *arguments))


def _texts(read: Callable[..., Iterator[str]], *arguments: Any) -> Iterator[str]:
    return (text for text in read(*arguments) if text.strip())


def _read_json_lines(absolute_path: str, path: str, field: str) -> Iterator[str]:
    for number, record in _json_objects(absolute_path, path):
        yield _field(record, field, path, number)


def _json_objects(absolute_path: str, path: str) -> Iterator[tuple[int, dict]]:
    """The objects, each with the number of its line."""
    for number, line in enumerate(read_lines(absolute_path, path), 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # a byte-order mark
        if line := line.strip():
            yield number, _json_object(line, f"Line {number} of {path}")


def _json_object(line: bytes, place: str) -> dict:
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{place} must be a JSON object in UTF-8, as in JSON Lines each line is. "
            f"Received: {line[:60]!r}: {error}"
        ) from error
    if not isinstance(record, dict):
        raise ValueError(
            f"{place} must be a JSON object, as in JSON Lines each line is. Received: "
            f"{line.decode()[:60]!r}"
        )
    return record


def _field(record: dict, field: str, path: str, number: int) -> str:
    if field not in record:
        raise ValueError(
            f"Line {number} of {path} must have the field that `field` names. It has "
            f"{list(record)}. Received: field={field!r}.{near_miss(field, record)}"
        )
    return _string(record[field], f"The field {field!r} in line {number} of {path}")


def _read_parquet(absolute_path: str, path: str, column: str) -> Iterator[str]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with (
            open_stream(absolute_path) as stream,
            pyarrow.parquet.ParquetFile(
                stream, page_checksum_verification=True
            ) as file,
        ):
            for batch in file.iter_batches(_ROWS, columns=[column]):
                for value in _values(batch.column(0)):
                    number += 1
                    yield _string(value, f"Row {number} of {path}")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Row {number + 1} of {path} must be Unicode text. Received: bytes that "
            f"are not UTF-8, {error.object!r:.80}"
        ) from error
    except (pyarrow.ArrowException, OSError) as error:
        raise_unreadable(error, path)
        raise ValueError(
            f"The file {path} is damaged behind row {number}: {error}"
        ) from error


def _values(column):
    """The values of a column of Arrow, up to one that is no text."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return (scalar.as_py() for scalar in column)


def _read_examples(dataset, column: str) -> Iterator[str]:
    # Other columns are not decoded: an image would cost far more than its caption.
    for number, example in enumerate(dataset.select_columns([column]), 1):
        yield _string(example[column], f"Column {column!r} of example {number}")


def _string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a string. Received: {value!r:.80}")
    if has_surrogate(value):
        raise ValueError(f"{what} must be Unicode text. Received: {value!a:.80}")
    return value


def _holds_strings(kind) -> bool:
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return any(
        test(kind)
        for test in (
            pyarrow.types.is_string,
            pyarrow.types.is_large_string,
            pyarrow.types.is_string_view,
        )
    )


def _check_column(column, strings, all_names, where) -> None:
    if column not in strings:
        kind = "" if column not in all_names else ", which holds no strings"
        raise ValueError(
            f"`column` must be one of the columns of text {strings} of {where}. "
            f"Received: column={column!r}{kind}.{near_miss(column, strings)}"
        )
