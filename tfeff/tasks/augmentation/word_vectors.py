"""Word vectors and nearest neighbours."""

import codecs
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from tfeff.data.arrays import as_array
from tfeff.datasets.files import malformed
from tfeff.storage.arguments import READ, paths
from tfeff.utils.checks import check_integer, check_ordered
from tfeff.utils.paths import check_path
from tfeff.utils.types import Tensor


class WordVectors:
    """Words with vectors; neighbours have the largest cosine.

    Args:
        words: N different words.
        vectors: float array `[N, D]`, a row for each word.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if the numbers of words and rows differ, words repeat, or a number
            is not finite.

    Example:
    ```python
    import tfeff

    words = ["cat", "dog", "day"]
    vectors = tfeff.tasks.WordVectors(words, [[1, 0], [0.9, 0.1], [0, 1]])
    assert vectors.nearest(vectors["cat"], 1, other_than="cat") == ["dog"]
    ```
    """

    def __init__(self, words: Iterable[str], vectors: ArrayLike):
        self.words = list(check_ordered("words", words, "a list of words"))
        try:
            with np.errstate(over="ignore"):
                self.vectors = np.asarray(vectors, np.float32)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`vectors` must be an array of numbers. Received: {vectors=!r:.80}"
            ) from error
        self._row = {word: index for index, word in enumerate(self.words)}
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise ValueError(
                "`vectors` must have a row for each of `words`. Received: shape "
                f"{self.vectors.shape}, {len(self.words)} words"
            )
        if len(self._row) != len(self.words):
            raise ValueError("`words` must be different. Received: some repeat")
        finite = np.isfinite(self.vectors).all(axis=1)
        if not finite.all():
            row = int(finite.argmin())
            raise ValueError(
                "`vectors` must be finite in float32. Received: "
                f"{self.vectors[row].tolist()!s:.80} of {self.words[row]!r}"
            )
        self._directions = _directions(self.vectors)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._row

    def __getitem__(self, word: str) -> np.ndarray:
        return self.vectors[self._row[word]]

    def nearest(
        self, vector: Tensor, count: int, other_than: str | None = None
    ) -> list[str]:
        """The words nearest to a vector, nearest first; ties in the order of `words`.

        Args:
            vector: `[D]`.
            count: integer, the most words to return.
            other_than: a word to exclude.

        Raises:
            TypeError: if `vector` is no array of numbers, or `count` no integer.
            ValueError: if `vector` has not as many as the words', or they are not
                finite; if `count` is below 1.
        """
        count = check_integer("count", count)
        vector = as_array("vector", vector, "an array of numbers", np.float32)
        size = self.vectors.shape[1]
        if vector.shape != (size,) or not np.isfinite(vector).all():
            raise ValueError(
                f"`vector` must be {size} finite numbers, as many as the words' have. "
                f"Received: vector of shape {vector.shape}, {vector.tolist()!s:.80}"
            )
        cosines = self._directions @ _directions(vector[None])[0]
        found = [self.words[i] for i in _largest(cosines, count + 1)]
        return [word for word in found if word != other_than][:count]


def _directions(vectors):
    """Rows of length 1, or 0; of numbers as small or large as float32 has them."""
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0, keepdims=True))
    scaled = np.ldexp(vectors, -exponents)  # This changes no digits.
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(norms == 0, 1, norms)


def _largest(values, count):
    """Indices of the largest values, in descending order, without a full sort."""
    if count < len(values):
        least = np.partition(values, -count)[-count]
        indices = np.flatnonzero(values >= least)
    else:
        indices = np.arange(len(values))
    return indices[np.argsort(-values[indices], kind="stable")][:count]


@paths(path=READ)
def read_word_vectors(path: str | os.PathLike) -> WordVectors:
    """Reads a text file of word vectors, as GloVe's: a word and its numbers a line.

    The first line sets the number of numbers. Words may contain spaces, as a few of
    GloVe's do; if a word is repeated, its first line is used.

    Args:
        path: the file, UTF-8.

    Returns:
        The `WordVectors`.

    Raises:
        ValueError: if the file is missing or empty; if a line is not UTF-8, has too few
            numbers, or one that is malformed or not finite. The message has the number
            of the line.
        TypeError: if `path` is not a path.

    Example:
    ```python
    import tfeff

    with open("glove.txt", "w") as file:
        file.write("cat 1.0 0.0\\ndog 0.9 0.1\\nday 0.0 1.0\\n")
    vectors = tfeff.tasks.read_word_vectors("glove.txt")
    assert vectors.nearest(vectors["cat"], 1, other_than="cat") == ["dog"]
    ```

    Reference:
        Pennington et al., "GloVe: global vectors for word representation".
    """
    path = check_path("path", path)
    found: dict[str, np.ndarray] = {}
    size = None
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if not line.strip():
                    continue
                try:
                    fields = line.decode("utf-8").rstrip().split(" ")
                except UnicodeDecodeError as error:
                    raise malformed(
                        path, number, "must be UTF-8 text", str(error)
                    ) from error
                if size is None and len(fields) == 2 and all(map(str.isdigit, fields)):
                    raise malformed(
                        path,
                        number,
                        "must be a word and its numbers, as in GloVe's files, "
                        "without a line of counts before",
                        repr(" ".join(fields)),
                    )
                size = len(fields) - 1 if size is None else size
                word, vector = _parse(path, number, fields, size)
                found.setdefault(word, vector)
    except OSError as error:
        raise ValueError(f"cannot read {path!r}: {error}") from error
    if not found:
        raise ValueError(f"{path} must hold word vectors. Received: an empty file")
    return WordVectors(found, np.stack(list(found.values())))


def _parse(path, number, fields, size):
    expected = f"must be a word and {max(size, 1)} numbers, split by single spaces"
    if size < 1 or len(fields) <= size:
        received = f"{len(fields)} fields, {' '.join(fields)!r:.60}"
        raise malformed(path, number, expected, received)
    try:
        vector = np.array(fields[-size:], np.float32)
    except ValueError as error:
        raise malformed(path, number, expected, str(error)) from error
    if not np.isfinite(vector).all():
        raise malformed(path, number, expected, "a number that is not finite")
    return " ".join(fields[:-size]), vector
