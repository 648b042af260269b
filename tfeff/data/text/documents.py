"""Checks of documents, which several functions of `tfeff.data` take."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping

from tfeff.utils.checks import in_place_of

HASHES = 2**256  # The hash of a document is below it.


def check_documents(documents: object) -> None:
    """Raises unless `documents` can be iterated over more than once, in one order."""
    if isinstance(documents, (str, bytes)):
        raise TypeError(
            "`documents` must be a collection of strings, one per document. Received: "
            f"one string, documents={documents[:60]!r}. Put it into a list"
        )
    if advice := in_place_of(documents):
        raise TypeError(
            "`documents` must be a collection of strings, in an order. Received: "
            f"documents of type {type(documents).__name__}. {advice}"
        )
    if not isinstance(documents, Iterable):
        raise TypeError(
            "`documents` must be an iterable of strings. Received: "
            f"documents of type {type(documents).__name__}"
        )
    if isinstance(documents, Iterator):
        raise TypeError(
            "`documents` must be iterable more than once (they are read to train the "
            "tokenizer, to compare with a cache, and to fill it). Received: an "
            f"iterator of type {type(documents).__name__}. Put its items into a list"
        )
    of_files = isinstance(documents, (list, tuple)) and all(map(_is_file, documents))
    if of_files and documents:
        raise ValueError(
            f"`documents` must hold texts. Received: documents={documents!r:.60}, "
            "names of files. tfeff.data.text_files reads those"
        )


def _is_file(document):
    return isinstance(document, os.PathLike) or (
        isinstance(document, str) and os.path.isfile(document)
    )


def encoded(documents: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yields each document with its UTF-8 bytes; raises if it cannot be encoded."""
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            advice = (
                ". tfeff.data.hugging_face reads the column of a data set"
                if isinstance(document, Mapping)
                else ""
            )
            raise TypeError(
                "`documents` must hold strings. Received: document "
                f"{index} of type {type(document).__name__}{advice}"
            )
        try:
            yield document, document.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                "`documents` must hold text that UTF-8 can encode. Received: "
                f"document {index} with {document[error.start]!a} at character "
                f"{error.start}"
            ) from error


def hash_of(text: bytes) -> int:
    """The hash of a document in UTF-8, which samples are drawn by."""
    return int.from_bytes(hashlib.sha256(text).digest(), "big")
