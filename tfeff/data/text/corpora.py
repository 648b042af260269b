"""Corpora of text files and TensorFlow Datasets, and their split into two."""

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from tfeff.data.text.corpus import (
    Corpus,
    Part,
    absolute,
    matching_files,
    parts_of,
    read_lines,
)
from tfeff.data.text.documents import check_documents, encoded
from tfeff.data.text.records import JSON_LINES, PARQUET
from tfeff.utils.checks import check_number

# Names of files whose lines are no text.
_NO_TEXT = (*JSON_LINES, PARQUET, ".csv", ".tsv")


def text_files(patterns: str | os.PathLike | Sequence[str | os.PathLike]) -> Corpus:
    """Documents from UTF-8 text files.

    Blank lines separate documents; line breaks within a document are kept. Carriage
    returns end lines in a file that has no line feed. Files whose names end in `.gz`
    are decompressed. They are read in the order of the patterns, those of one pattern
    in the order of their names, each file once and line by line, so that a corpus may
    be larger than memory.

    Args:
        patterns: a path or a glob (`**` descends into folders), or a list of them. URLs
            such as `"s3://bucket/corpus/*.txt"` are read as streams, without a copy.

    Returns:
        A re-iterable of `str`.

    Raises:
        ValueError: if no file matches a pattern, or a file cannot be read, is empty, or
            by its name a table, Parquet or JSON, whose lines are no text; when the
            documents are read, if a file is not UTF-8 (the message names the file and
            the byte), or is UTF-16 without a mark, has blank lines alone, or is a
            damaged `.gz`.

    Example:
    ```python
    import tfeff

    with open("note.txt", "w") as file:
        file.write("A first document.\\n\\nA second one,\\nof two lines.\\n")
    documents = tfeff.data.text_files("*.txt")
    assert list(documents) == ["A first document.", "A second one,\\nof two lines."]
    ```
    """
    paths = matching_files(patterns)
    for path in paths:
        if path.lower().removesuffix(".gz").endswith(_NO_TEXT):
            raise ValueError(
                "`patterns` must match text files. JSON Lines (.jsonl) and Parquet "
                "files (.parquet) are read by `tfeff.data.json_lines` and `parquet`, "
                "and by the commands where names and globs end so, such as "
                "'corpus/*.txt,corpus/*.jsonl', with the text in `text_field`; "
                "labelled texts by `tfeff.datasets.tsv_dataset`. Give a file whose "
                "lines are text the ending .txt. "
                f"Received: {path}, whose lines are no text"
            )
    return Corpus(
        Part(path, functools.partial(_read, absolute(path), path), absolute(path))
        for path in paths
    )


def _read(absolute_path: str, path: str) -> Iterator[str]:
    lines, offset, found = [], 0, False
    for raw in read_lines(absolute_path, path):
        try:
            line = raw.decode("utf-8").rstrip()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The file {path} must be UTF-8 text. Received: byte "
                f"0x{error.object[error.start]:02x} at offset "
                f"{offset + error.start} ({error.reason})"
            ) from error
        if b"\0" in raw and 3 * raw.count(b"\0") > len(raw):
            raise ValueError(
                f"The file {path} must be UTF-8 text. Received: a line with "
                f"{raw.count(0)} zeros among {len(raw)} bytes at offset {offset}, as "
                "of UTF-16"
            )
        if offset == 0:
            line = line.removeprefix("\ufeff")  # a byte-order mark
        offset += len(raw)
        if line:
            lines.append(line)
        elif lines:
            found = True
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
    elif not found:
        raise ValueError(f"The file {path} must hold text. Received: blank lines only")


def tfds(
    name: str,
    split: str = "train",
    feature: str = "text",
    data_dir: str | None = None,
) -> Corpus:
    """Documents from TensorFlow Datasets, one per example.

    The data set is downloaded and prepared if it is not yet in `data_dir`; otherwise no
    network is needed. The order is that of the files.

    Args:
        name: the data set's name, with its configuration: `"wiki40b/en"`.
        split: a split or a slice of one: `"train"`, `"train[:10%]"`.
        feature: the name of the feature that holds the text.
        data_dir: the folder of data sets; by default TensorFlow Datasets' own.

    Returns:
        A re-iterable of `str`.

    Raises:
        ImportError: if `tensorflow-datasets` is not installed.
        ValueError: if the data set, the split or the feature does not exist, the
            feature is not text, or the data set cannot be downloaded.

    Example:
    ```python
    documents = tfeff.data.tfds("imdb_reviews", split="train[:1%]")  # downloads
    ```
    """
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise ImportError(
            "`tfds` needs TensorFlow Datasets: pip install tensorflow-datasets"
        ) from error
    if data_dir is not None:
        data_dir = absolute(os.path.expanduser(data_dir))
    try:
        builder = tensorflow_datasets.builder(name, data_dir=data_dir)
    except Exception as error:  # Errors of many libraries.
        raise ValueError(
            "`name` must be a data set of TensorFlow Datasets. Received: "
            f"{name=}: {error}"
        ) from error
    text_type = tensorflow_datasets.features.Text
    texts = [k for k, v in builder.info.features.items() if isinstance(v, text_type)]
    if feature not in texts:
        raise ValueError(
            f"`feature` must be one of the text features {texts} of {name}. "
            f"Received: feature={feature!r}"
        )
    try:
        builder.download_and_prepare()
    except Exception as error:  # As above.
        raise ValueError(
            f"`name` must be a data set that can be prepared. Received: {name=}, of "
            f"which a download or its files fail: {type(error).__name__}: {error}"
        ) from error
    try:
        builder.as_dataset(split=split)
    except Exception as error:  # As above.
        raise ValueError(
            f"`split` must be one of {sorted(builder.info.splits)} or a slice of one. "
            f"Received: {split=}: {error}"
        ) from error
    read = functools.partial(_read_tfds, name, split, feature, data_dir)
    return Corpus([Part(f"tfds:{name}", read)])


def _read_tfds(
    name: str, split: str, feature: str, data_dir: str | None
) -> Iterator[str]:
    import tensorflow_datasets

    # Other features are not decoded: an image would cost far more than its caption.
    dataset = tensorflow_datasets.builder(name, data_dir=data_dir).as_dataset(
        split=split,
        shuffle_files=False,
        decoders=tensorflow_datasets.decode.PartialDecoding({feature: True}),
    )
    for example in dataset.as_numpy_iterator():
        yield example[feature].decode("utf-8")


def split(
    documents: Iterable[str], validation_fraction: float
) -> tuple[Corpus, Corpus]:
    """Splits documents into training and validation, by a hash of their text.

    A document is for validation if SHA-256 of its text, read as a number in
    [0, 1), is below `validation_fraction`. So the split does not depend on the
    order, equal documents are in the same part, and documents that are added later do
    not move others.

    Args:
        documents: the documents, which are read for each reading of a part.
        validation_fraction: the expected share of validation documents, in (0, 1).

    Returns:
        The pair (training, validation) of re-iterables of `str`.

    Raises:
        ValueError: if `validation_fraction` is not in (0, 1); when a part is read, if a
            document has half a character (a lone surrogate).
        TypeError: if `documents` cannot be read more than once, or the fraction is no
            number; when a part is read, if a document is no string.

    Example:
    ```python
    import tfeff

    documents = [f"Document {i}." for i in range(1000)]
    training, validation = tfeff.data.split(documents, 0.1)
    assert sorted([*training, *validation]) == sorted(documents)
    ```
    """
    check_documents(documents)
    validation_fraction = check_number(
        "validation_fraction", validation_fraction, above=0, below=1
    )
    limit = int(validation_fraction * 2**64)

    def side(validation: bool) -> Corpus:
        return Corpus(
            part._replace(read=functools.partial(_side, part.read, limit, validation))
            for part in parts_of(documents)
        )

    return side(False), side(True)


def _side(
    read: Callable[[], Iterator[str]], limit: int, validation: bool
) -> Iterator[str]:
    return (d for d, text in encoded(read()) if (_hash(text) < limit) == validation)


def _hash(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
