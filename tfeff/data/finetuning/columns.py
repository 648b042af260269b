"""Checks of the columns of examples, which users may make by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfeff.data.arrays import as_array, check_all, check_int32, check_one_axis
from tfeff.utils.checks import has_surrogate, in_place_of


def check_column(name: str, values: Any, what: str) -> tuple:
    """Returns a sequence, such as an array or a data frame's column, as a tuple."""
    items = _items(values)
    if items is None:
        advice = in_place_of(values)
        raise TypeError(
            f"`{name}` must be a sequence of {what}. Received: {name}={values!r:.80}"
            + (advice and f". {advice}")
        )
    return items


def check_texts(name: str, values: Any) -> tuple[str, ...]:
    """Returns strings as a tuple, or raises."""
    texts = check_column(name, values, "strings")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`{name}` must be a sequence of strings. "
                f"Received: {text!r:.80} at {index}"
            )
        _check_unicode(name, text, index)
    return texts


def check_rows(name: str, values: Any) -> tuple[tuple[str, ...], ...]:
    """Returns rows of strings as a tuple of tuples, or raises."""
    values = check_column(name, values, "sequences of strings")
    rows = []
    for index, value in enumerate(values):
        row = _items(value)
        if row is None or not all(isinstance(text, str) for text in row):
            raise TypeError(
                f"`{name}` must hold sequences of strings. "
                f"Received: {value!r:.80} at {index}"
            )
        for text in row:
            _check_unicode(name, text, index)
        rows.append(row)
    return tuple(rows)


def _check_unicode(name, text, index):
    if has_surrogate(text):
        raise ValueError(
            f"`{name}` must be Unicode text. Received: {text!a:.80} at {index}"
        )


def are_reordered(names: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a name that both lists of names have is of another class in each.

    Names themselves may differ, as where one has none that mean something.
    """
    shared = set(names) & set(others)
    return any(names.index(name) != others.index(name) for name in shared)


def check_label_names(values: Any) -> tuple[str, ...]:
    """Returns different strings, at least one, as a tuple, or raises."""
    # NumPy's strings, of an array, become Python's.
    names = tuple(map(str, check_texts("label_names", values)))
    if not names or len(set(names)) < len(names):
        raise ValueError(
            "`label_names` must be different names, at least one. "
            f"Received: label_names={names}"
        )
    return names


def label_column(values: Any, label_names: tuple[str, ...], of: str = "") -> Any:
    """Returns indices of the names as a new array `[N]` of int32, or raises.

    `of` is the end of the error's message: whose labels they are.
    """
    given = as_array("labels", values, "an array of integers")
    if given.size and all(isinstance(label, str) for label in given.flat):
        raise TypeError(
            "`labels` must be integers, the indices of `label_names`: "
            "[label_names.index(x) for x in labels]. "
            f"Received: labels{of} of dtype {given.dtype}"
        )
    labels = check_int32("labels", given)
    if not of and labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            "`labels` must have one axis: several labels of one text are not "
            "supported, but a classifier for each can be trained. "
            f"Received: labels of shape {labels.shape}"
        )
    check_one_axis("labels", labels, of)
    expected = f"from 0 to {len(label_names) - 1}, indices of {list(label_names)}"
    if not of and labels.size and (labels == -1).all():
        expected += "; texts to predict have no `labels`"
    known = (labels >= 0) & (labels < len(label_names))
    check_all("labels", labels, known, expected, of)
    labels.setflags(write=False)
    return labels


def rating_column(values: Any) -> np.ndarray:
    """Returns finite numbers as a new array `[N]` of float32, or raises."""
    ratings = as_array("labels", values, "numbers")
    if ratings.dtype.kind not in "iuf":
        raise TypeError(
            "`labels` must be numbers, as there are no `label_names`. "
            f"Received: labels of dtype {ratings.dtype}"
        )
    given = check_one_axis("labels", ratings)
    with np.errstate(over="ignore"):
        ratings = given.astype(np.float32)
    check_all("labels", given, np.isfinite(ratings), "finite in float32")
    ratings.setflags(write=False)
    return ratings


def check_equally_long(**columns: Any) -> None:
    """Raises unless all columns that are not None have one length."""
    lengths = {name: len(c) for name, c in columns.items() if c is not None}
    if len(set(lengths.values())) > 1:
        names = ", ".join(f"`{name}`" for name in lengths)
        raise ValueError(f"{names} must be equally long. Received: {lengths}")


def _items(values):
    """The values in their order; None where they are no column."""
    # A string is no column of its letters.
    if isinstance(values, (str, bytes)) or in_place_of(values):
        return None
    try:
        iterator = iter(values)
    except TypeError:  # Arrays without an axis, too, only say so here.
        return None
    return tuple(iterator)
