"""Files of predictions, as the benchmarks want them. A file is never overwritten."""

import collections
import json
import os
from collections.abc import Mapping, Sequence

import numpy as np

from tfeff.datasets.checks import check_list, check_triples, check_values
from tfeff.datasets.glue import GLUE_TASKS, HIGHEST_RATING
from tfeff.datasets.superglue import SUPERGLUE_TASKS
from tfeff.utils.checks import check_choice, check_mapping, check_path
from tfeff.utils.files import atomic_file, check_new_path


def write_glue(
    task: str,
    split: str,
    ids: Sequence[str],
    predictions: np.ndarray,
    folder: str | os.PathLike,
) -> str:
    """Writes predictions for a GLUE task: `CoLA.tsv`, `MNLI-m.tsv`, `MNLI-mm.tsv` ….

    Args:
        task: the name of one of the nine tasks.
        split: of which part they are, as for `tfeff.datasets.read_glue`.
        ids: `[N]`, of the examples.
        predictions: `[N]`, classes; for STS-B ratings, written within 0 to 5.
        folder: where the file shall be; it is made if it does not exist.

    Returns:
        The path of the file.

    Raises:
        ValueError: if the file exists, there is no such task or split, the lengths
            differ, an id comes twice, or a prediction is not a class of the task or a
            finite number.

    Example:
    ```python
    import tfeff

    path = tfeff.datasets.write_glue("RTE", "test", ["0", "1"], [1, 0], "submission")
    with open(path) as file:
        assert file.read().split("\\n")[1] == "0\\tnot_entailment"
    ```

    Reference:
        Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural
        Language Understanding", 2019, section 3.
    """
    known = GLUE_TASKS[check_choice("task", task, GLUE_TASKS)]
    check_choice("split", split, known.splits)
    suffix = {"matched": "-m", "mismatched": "-mm"}.get(split.partition("_")[2], "")
    predictions = _checked(ids, predictions, known.label_names)
    if known.label_names is None:
        texts = [f"{rating:.3f}" for rating in predictions.clip(0, HIGHEST_RATING)]
    else:
        texts = [known.label_names[label] for label in predictions]
    rows = ["index\tprediction", *(f"{i}\t{text}" for i, text in zip(ids, texts))]
    return _write_in(folder, f"{task}{suffix}.tsv", rows)


def write_superglue(
    task: str,
    ids: Sequence[int] | Sequence[tuple[int, int, int]],
    predictions: np.ndarray,
    folder: str | os.PathLike,
) -> str:
    """Writes predictions for SuperGLUE: `BoolQ.jsonl` or `MultiRC.jsonl`.

    Args:
        task: `"BoolQ"` or `"MultiRC"`.
        ids: `[N]`, of the examples, as from `tfeff.datasets.read_superglue`.
        predictions: `[N]`, classes, 0 or 1.
        folder: where the file shall be; it is made if it does not exist.

    Returns:
        The path of the file.

    Raises:
        ValueError: if the file exists, there is no such task, the lengths differ, an
            id comes twice, or a prediction is not a class.

    Example:
    ```python
    import tfeff

    path = tfeff.datasets.write_superglue("BoolQ", [0], [1], "submission")
    with open(path) as file:
        assert file.read() == '{"idx": 0, "label": "true"}\\n'
    ```

    Reference:
        Wang et al., "SuperGLUE: A Stickier Benchmark for General-Purpose Language
        Understanding Systems", 2019, section 3.
    """
    names = SUPERGLUE_TASKS[check_choice("task", task, SUPERGLUE_TASKS)]
    predictions = _checked(ids, predictions, names)
    if task == "BoolQ":
        records = [{"idx": i, "label": names[p]} for i, p in zip(ids, predictions)]
    else:
        records = _multirc(ids, predictions)
    rows = [json.dumps(record, default=_python) for record in records]
    return _write_in(folder, f"{task}.jsonl", rows)


def write_json(values: Mapping[str, str | float], path: str | os.PathLike) -> str:
    """Writes a value for each id: what SQuAD and MRQA want.

    That is the texts of the answers, and for SQuAD 2.0, in another file, how likely
    each question has none. RACE has no layout of its own: write the letters so.

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
    check_mapping("values", values, "names to what is predicted")
    if not values:
        raise ValueError("`values` must not be empty. Received: none")
    try:
        text = json.dumps(dict(values), allow_nan=False, default=_python)
    except ValueError as error:  # NaN is not JSON.
        raise ValueError(f"`values` must be finite. Received: {error}") from error
    return _write(check_new_path("path", path), [text])


def _python(value):
    """A number of NumPy as one of Python."""
    if not isinstance(value, np.generic):
        raise TypeError(f"Numbers and text can be written. Received: {value!r}")
    return value.item()


def _checked(ids, predictions, names):
    predictions = check_values("predictions", predictions, names)
    ids = check_list("ids", ids)
    if len(ids) == 0 or len(ids) != len(predictions):
        raise ValueError(
            "`ids` and `predictions` must be equally many, at least 1. Received: "
            f"{len(ids)} and {len(predictions)}"
        )
    id, count = collections.Counter(map(str, ids)).most_common(1)[0]
    if count > 1:
        raise ValueError(f"`ids` must differ. Received: {id!r} {count} times")
    return predictions


def _multirc(ids, predictions):
    passages = collections.defaultdict(lambda: collections.defaultdict(list))
    triples = check_triples("ids", ids)
    for (passage, question, answer), label in zip(triples, predictions):
        record = {"idx": answer, "label": int(label)}
        passages[passage][question].append(record)
    for passage, questions in passages.items():
        records = [{"idx": q, "answers": answers} for q, answers in questions.items()]
        yield {"idx": passage, "passage": {"questions": records}}


def _write(path, rows):
    text = "".join(f"{row}\n" for row in rows)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with (
        atomic_file(path) as new,
        open(new, "w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)
    return path


def _write_in(folder, name, rows):
    path = os.path.abspath(os.path.join(check_path("folder", folder), name))
    if os.path.lexists(path):
        raise ValueError(
            f"`folder` must not hold {name!r} yet. Received: folder={folder!r}"
        )
    return _write(path, rows)
