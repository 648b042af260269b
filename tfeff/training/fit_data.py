"""Checks of the data that `fit`, `evaluate` and `predict` get."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from tfeff.compat.models import is_none
from tfeff.ops.ids import check_known
from tfeff.training.losses import (
    GlobalMean,
    GlobalMeanBinaryCrossentropy,
    GlobalMeanCrossentropy,
)
from tfeff.utils.checks import check_mapping, check_weight
from tfeff.utils.definitions import has_own

_ENDLESS = -1  # TensorFlow's `INFINITE_CARDINALITY`.
_FEATURES = "tfeff.data.text_features(x, tokenizer, 128).dataset(16)"


def check_batches(
    model: keras.Model,
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    names: Sequence[str] = ("x", "y", "sample_weight"),
) -> None:
    """Raises for what batches are made of, which Keras cannot name.

    Args:
        model: the model that is given `x`. One that reads strings may get texts.
        x, y, sample_weight: the arguments of `fit`.
        names: what the caller has called them.

    Raises:
        TypeError: if `x` are features, examples or a cache, `x` or `y` texts, or one of
            all lists of numbers.
        ValueError: if ids in an array `y` are no classes, or numbers in `y` or
            `sample_weight` not finite.
    """
    if way := getattr(x, "batches_by", None):
        raise TypeError(
            f"`{names[0]}` must be batches, such as {way}. "
            f"Received: {names[0]} of type {type(x).__name__}"
        )
    for name, value in zip(names, (x, y, sample_weight)):
        _check_array(name, value)
        for key, part in value.items() if isinstance(value, dict) else ():
            _check_array(f"{name}[{key!r}]", part)
    _check_labels(model, names[1], _in_memory(y))
    weights = _in_memory(sample_weight)
    if weights is not None and weights.dtype.kind == "f":
        check_known(names[2], weights, "finite", np.isfinite)
    inputs = getattr(model, "inputs", None) or ()
    if not inputs or any(part.dtype == "string" for part in inputs):
        return
    for name, value, way in (
        (names[0], x, f"{_FEATURES}, where x are `TextExamples`"),
        (names[1], y, "indices of the names"),
    ):
        if _is_text(value):
            raise TypeError(
                f"`{name}` must be numbers, such as {way}. Received: texts as {name}"
            )
        dtype = getattr(value, "dtype", None)
        # A column of a data frame may have a type of its own.
        is_own = hasattr(value, "to_numpy") and not isinstance(dtype, np.dtype | None)
        if is_own or getattr(dtype, "kind", "") == "O":
            way = 'to_numpy("int32")' if is_own else 'astype("int32")'
            raise TypeError(
                f"`{name}` must be numbers of a type of NumPy, such as {name}.{way}. "
                f"Received: {name} of the type {dtype}"
            )


def _in_memory(value):
    """An array, a data frame or its column, or a tensor, as NumPy's; `None` of others.

    A tensor of a program that is compiled has no values.
    """
    if not (hasattr(value, "__array__") and hasattr(value, "shape")):
        return None
    try:
        return np.asarray(value)
    except (NotImplementedError, TypeError, ValueError):
        return None


def _check_array(name, value):
    """Raises for a list of numbers: Keras takes lists for several arrays."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if first is not value and isinstance(first, numbers.Number):
        raise TypeError(
            f"`{name}` must be an array, such as np.array({name}). "
            f"Received: a {type(value).__name__} of {len(value)}"
        )


def _check_labels(model: keras.Model, name: str, y: np.ndarray | None) -> None:
    """Raises for labels in memory that are not finite, or no classes.

    A compiled program cannot: it ends in an error of TensorFlow, or in NaN.
    """
    if y is None or not y.size or not model.reads_labels:
        return
    # A model of one's own may read other labels than are given.
    if has_own(model, "prepare_batch") or has_own(model, "compute_loss"):
        return
    outputs, loss = model.labelled()
    if isinstance(loss, GlobalMean) and y.dtype.kind == "f":
        check_known(name, y, "finite", np.isfinite)
    of_classes = isinstance(loss, GlobalMeanCrossentropy) and len(outputs) == 1
    if y.dtype.kind not in "iu" or not of_classes:
        return
    num_classes = outputs[0].shape[-1]
    expected = f"ids of classes, from 0 to {num_classes - 1}"
    check_known(name, y, expected, lambda ids: (ids >= 0) & (ids < num_classes))


def check_class_weight(
    model: keras.Model, class_weight: Any, x: Any, y: Any, sample_weight: Any = None
) -> None:
    """Raises where Keras cannot apply class weights.

    It knows those of rows, not of tokens, and none beside weights of examples.
    """
    if class_weight is None:
        return
    outputs, loss = model.labelled()
    ranks = [len(output.shape) for output in outputs]
    spec = getattr(x, "element_spec", None)
    is_weighted = sample_weight is not None
    if isinstance(spec, tuple) and len(spec) > 1:
        y, weights = spec[1], keras.tree.flatten(spec[2:])
        is_weighted = not all(map(is_none, weights))
    if isinstance(y, Mapping) or len(outputs) > 1:
        raise ValueError(
            "`class_weight` must be None for targets by name or of several outputs. "
            "Give each its weight in `sample_weight`. "
            f"Received: class_weight={class_weight!r}"
        )
    shape: Any = getattr(y, "shape", ())
    # A global mean takes one number a target.
    several = isinstance(loss, GlobalMean) and len(shape) > 1 and shape[1] != 1
    if several or max(ranks, default=0) > 2:
        raise ValueError(
            "`class_weight` must be None for labels of tokens, of which Keras "
            "makes one weight a row. Give each label its weight in "
            "`sample_weight`, the third part of a data set's batches. "
            f"Received: class_weight={class_weight!r}"
        )
    known = (GlobalMeanCrossentropy, GlobalMeanBinaryCrossentropy)
    is_ours = isinstance(loss, GlobalMean) and not isinstance(loss, known)
    if is_ours and ranks and max(ranks) < 2:
        raise ValueError(
            "`class_weight` must be None for a model without classes, such as one of "
            f"ratings. Received: class_weight={class_weight!r}"
        )
    if is_weighted:
        raise ValueError(
            "`class_weight` must be None for batches that have weights already, as "
            "those of features do. Give each class its weight there: "
            "`dataset.map(lambda x, y, w: (x, y, w * tf.gather(weights, y)))`. "
            f"Received: class_weight={class_weight!r}"
        )
    num_classes = None
    if isinstance(loss, GlobalMeanCrossentropy) and outputs:
        num_classes = outputs[0].shape[-1]
    _check_weights_of_classes(num_classes, class_weight, spec is not None)


def _check_weights_of_classes(num_classes, class_weight, is_dataset):
    """Raises for keys that are no classes, which Keras leaves unread, and for lists.

    Of arrays, a class without a weight has 1. Of data sets, Keras wants all of them.
    """
    what = "weights by the ids of classes"
    check_mapping("class_weight", class_weight, what)
    for label, weight in class_weight.items():
        is_id = isinstance(label, numbers.Real) and float(label).is_integer()
        if not is_id or num_classes is not None and not 0 <= label < num_classes:
            raise ValueError(
                f"`class_weight` must have {what}, which are integers"
                f"{'' if num_classes is None else f' from 0 to {num_classes - 1}'}. "
                f"Received: class_weight={class_weight!r}"
            )
        # NumPy and the backends have scalars with a shape.
        is_scalar = getattr(weight, "shape", None) == ()
        number = float(weight) if is_scalar else weight
        check_weight(f"class_weight[{label}]", number)
    if is_dataset and num_classes is not None and len(class_weight) < num_classes:
        raise ValueError(
            f"`class_weight` must have a weight for each of the {num_classes} classes "
            f"where `x` is a data set. Received: class_weight={class_weight!r}"
        )


def check_ends(data: Any, steps: str, given: Mapping) -> None:
    """Raises if a data set has no end and no number of steps is given.

    Args:
        data: the data set, or arrays.
        steps: the argument for the number of steps.
        given: the arguments of the method by their names.
    """
    if given.get(steps) is None and _size(data) == _ENDLESS:
        raise ValueError(
            f"`{steps}` must be given for a data set without an end. Those of features "
            f"end with `repeat=False`. Received: {steps}=None"
        )


def num_updates(x: Any, given: Mapping) -> int | None:
    """How many updates `fit` makes at most; `None` if it is not known.

    Args:
        x: the data set, or arrays.
        given: the arguments of `fit` by their names.
    """
    epochs = given.get("epochs", 1) - given.get("initial_epoch", 0)
    steps = given.get("steps_per_epoch")
    if steps is None and (size := _size(x)) is not None and size > 0:
        steps = size
    if steps is None:
        return None
    # An epoch that is resumed has made its first steps before.
    callbacks = keras.tree.flatten(given.get("callbacks") or ())
    return epochs * steps - sum(getattr(c, "steps_before", 0) for c in callbacks)


def _size(data):
    """The number of batches, negative if a data set has none; `None` of others."""
    size = getattr(data, "cardinality", None)
    # Data sets that are distributed have it as an attribute.
    size = size() if callable(size) else size
    return None if size is None else int(size)


def _is_text(value):
    """Whether an array, or a list, is of strings."""
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if keras.ops.is_tensor(value):  # Its values may be on another device.
        return value.dtype == "string"
    array = _in_memory(value)
    if array is not None and array.dtype == object and array.size:
        value = array.flat[0]
    is_text = array is not None and array.dtype.kind in "US"
    return is_text or isinstance(value, (str, bytes))
