"""Files of predictions in the formats of benchmarks. No file is overwritten."""

import json
import os
import re
from collections.abc import Iterable, Mapping

import numpy as np

from tfeff.data.finetuning.examples import ChoiceExamples, TextExamples
from tfeff.storage.arguments import WRITE, paths
from tfeff.utils.checks import check_mapping
from tfeff.utils.files import write_text
from tfeff.utils.paths import check_new_path, check_path


@paths(path=WRITE)
def write_tsv(values: Mapping[str, str | float], path: str | os.PathLike) -> str:
    """Writes a header and a line with id and value for each id: GLUE's format.

    Args:
        values: the value for each example's id.
        path: the file.

    Returns:
        The path.

    Raises:
        ValueError: if the file exists, there are no values, or an id or a value has a
            tab or a line break.

    Example:
    ```python
    import tfeff

    path = tfeff.datasets.write_tsv({"0": "entailment"}, "RTE.tsv")
    with open(path) as file:
        assert file.read() == "index\\tprediction\\n0\\tentailment\\n"
    ```
    """
    _check_values(values)
    check_fields("values", (*values, *values.values()))
    path = check_new_path("path", path)
    rows = (f"{id}\t{value}" for id, value in values.items())
    return write_lines(["index\tprediction", *rows], path)


@paths(path=WRITE)
def write_json(values: Mapping[str, str | float], path: str | os.PathLike) -> str:
    """Writes one JSON object with a value for each id: the format of SQuAD and MRQA.

    Args:
        values: the value for each question's id.
        path: the file.

    Returns:
        The path.

    Raises:
        ValueError: if the file exists, or there are no values.

    Example:
    ```python
    import json
    import tfeff

    path = tfeff.datasets.write_json({"q1": "Ada"}, "predictions.json")
    with open(path) as file:
        assert json.load(file) == {"q1": "Ada"}
    ```
    """
    _check_values(values)
    try:
        text = json.dumps(dict(values), allow_nan=False, default=_python)
    except ValueError as error:  # NaN is not JSON.
        raise ValueError(f"`values` must be finite. Received: {error}") from error
    return write_lines([text], check_new_path("path", path))


def write_json_lines(records: Iterable[Mapping], path: str) -> str:
    """Writes one JSON object a line: the format of SuperGLUE."""
    return write_lines([json.dumps(r, default=_python) for r in records], path)


def write_lines(lines: Iterable[str], path: str) -> str:
    """Writes the lines to a file, atomically; creates the folders above it."""
    text = "".join(f"{line}\n" for line in lines)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_text(path, text, newline="\n")
    return path


def check_fields(name: str, fields: Iterable[object]) -> None:
    """Raises where a field of a line would end it, or itself."""
    for field in fields:
        if isinstance(field, str) and re.search(r"[\t\n\r]", field):
            raise ValueError(
                f"`{name}` must have no tabs and no line breaks, which part the fields "
                f"of a file. Received: {field!r}"
            )


def new_file(folder: str | os.PathLike, name: str) -> str:
    """The path of a new file in the folder; raises if it exists."""
    path = os.path.abspath(os.path.join(check_path("folder", folder), name))
    if os.path.lexists(path):
        raise ValueError(
            f"`folder` must not hold {name!r} yet. Received: folder={folder!r}"
        )
    return path


def predicted_texts(
    examples: TextExamples | ChoiceExamples,
    predictions: np.ndarray,
    rating_format: str | None = None,
) -> dict[str, str]:
    """The prediction for each id: a label's name, or a rating.

    A rating has the digits by which float32 tells it from all others, where no format
    says how many.
    """
    check_fields("examples", examples.ids)
    names = examples.label_names
    if names is not None:
        texts = [names[prediction] for prediction in predictions]
    elif rating_format is not None:
        texts = [format(rating, rating_format) for rating in predictions]
    else:
        texts = [str(np.float32(rating)).removesuffix(".0") for rating in predictions]
    return dict(zip(examples.ids, texts))


def _check_values(values):
    check_mapping("values", values, "ids to predictions")
    if not values:
        raise ValueError("`values` must not be empty. Received: none")


def _python(value):
    """A NumPy scalar as a Python number."""
    if not isinstance(value, np.generic):
        raise TypeError(f"Numbers and text can be written. Received: {value!r}")
    return value.item()
