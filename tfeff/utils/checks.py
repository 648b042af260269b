"""Checks of arguments. An error names the argument, what was expected and received."""

import inspect
import json
import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfeff.utils.near_misses import near_miss

# Any types to type checkers, which cannot compare values of the abstract ones.
_INTEGRAL: type[Any] = numbers.Integral
_REAL: type[Any] = numbers.Real
# TensorFlow holds the sizes of a tensor's axes in 32 bits in many places.
MAX_SIZE = 2**31 - 1
MAX_COUNT = 2**63 - 1  # Of bytes and of examples, which are no axis of a tensor.
_LEAST_FLOAT32, _MOST_FLOAT32 = 2.0**-126, (2 - 2.0**-23) * 2.0**127
# Endings of the names of metrics of which the lowest value is the best.
_LOWER = ("error", "loss", "mae", "mse", "rmse", "perplexity")
_NEGATIVE = ("neg_", "negative_")
MAX_SEED = 2**32 - 1  # NumPy takes no larger one.


def check_integer(
    name: str, value: Any, minimum: int = 1, maximum: int | None = None
) -> int:
    """Returns `value` if it is an integer in `[minimum, maximum]`, else raises.

    Without a maximum it is the size of an axis, or as small.
    """
    kind = f"an integer of at least {minimum}"
    if maximum is None and is_integer(value) and value > MAX_SIZE:
        maximum = MAX_SIZE
    if maximum is not None:
        kind += f" and at most {maximum}"
    if not is_integer(value):
        raise TypeError(f"`{name}` must be {kind}. Received: {name}={value!r:.80}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"`{name}` must be {kind}. Received: {name}={value!r:.80}")
    return int(value)


def check_seed(seed: Any) -> int:
    """Returns an argument `seed` if NumPy takes it, else raises."""
    return check_integer("seed", seed, 0, MAX_SEED)


def check_bool(name: str, value: Any) -> bool:
    """Returns `value` if it is a bool of Python or NumPy, else raises."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(
            f"`{name}` must be True or False. Received: {name}={value!r:.80}"
        )
    return bool(value)


def differences(one: Mapping, other: Mapping) -> list[tuple[str, Any, Any]]:
    """The names whose values differ between two mappings, each with both values.

    A name that is missing has the value `None`.
    """
    pairs = ((name, one.get(name), other.get(name)) for name in sorted({*one, *other}))
    return [(name, *values) for name, *values in pairs if values[0] != values[1]]


def shapes_agree(one: Sequence, other: Sequence) -> bool:
    """Whether two shapes can be of the same tensor; `None` is a size not known."""
    return len(one) == len(other) and all(
        None in sizes or sizes[0] == sizes[1] for sizes in zip(one, other)
    )


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, which a boolean is not."""
    return isinstance(value, _INTEGRAL) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, which a boolean is not."""
    return isinstance(value, _REAL) and not isinstance(value, bool)


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
) -> float:
    """Returns `value` as a float if it is a finite number in the bounds, else raises.

    It must be a number of float32, too, which makes it neither 0 nor infinite.
    """
    bounds = [
        (text, bound, holds)
        for text, bound, holds in (
            ("of at least", minimum, operator.ge),
            ("above", above, operator.gt),
            ("of at most", maximum, operator.le),
            ("below", below, operator.lt),
        )
        if bound is not None
    ]
    expected = " and ".join(f"{text} {bound:g}" for text, bound, _ in bounds)
    message = (
        f"`{name}` must be {f'a finite number {expected}'.rstrip()}. "
        f"Received: {name}={value!r:.80}"
    )
    if not is_number(value):
        raise TypeError(message)
    try:
        number = float(value)
    except OverflowError:  # An integer.
        number = math.inf
    if not math.isfinite(number) or not all(
        holds(number, bound) for _, bound, holds in bounds
    ):
        raise ValueError(message)
    return check_float32(name, number)


def check_float32(name: str, value: float) -> float:
    """Returns a finite `value` that float32 does not make 0 or infinite, else raises.

    Numbers below the smallest normal one count as 0, since processors may take them so.
    """
    if value and not _LEAST_FLOAT32 <= abs(value) <= _MOST_FLOAT32:
        raise ValueError(
            f"`{name}` must be a number of float32, whose sizes are from "
            f"{_LEAST_FLOAT32:.2g} to {_MOST_FLOAT32:.2g}. Received: {name}={value!r}"
        )
    return value


def check_rate(name: str, value: Any) -> float:
    """Returns `value` if it is a probability below 1, else raises."""
    return check_number(name, value, minimum=0, below=1)


def check_positive(name: str, value: Any) -> float:
    """Returns `value` if it is a finite number above 0 in float32, else raises."""
    return check_number(name, value, above=0)


def check_weight(name: str, value: Any) -> float:
    """Returns `value` if it is a finite number of at least 0, else raises.

    One that float32 makes 0 changes nothing, as 0.
    """
    if is_number(value) and 0 < value < _LEAST_FLOAT32:
        return float(value)
    return check_number(name, value, minimum=0)


def check_string(name: str, value: Any) -> str:
    """Returns `value` if it is a string of Unicode text, else raises."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string. Received: {name}={value!r:.80}")
    if has_surrogate(value):
        raise ValueError(
            f"`{name}` must be Unicode text. Received: {name}={value!a:.80}"
        )
    return value


def has_surrogate(text: str) -> bool:
    """Whether a string has half a character, which no encoding can write."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def check_callable(name: str, value: Any) -> Any:
    """Returns `value` if it can be called, else raises."""
    if not callable(value):
        raise TypeError(f"`{name}` must be callable. Received: {name}={value!r:.80}")
    return value


def check_choice(
    name: str, value: Any, choices: Iterable[str], advice: str = ""
) -> str:
    """Returns `value` if it is among `choices`, else raises, with a suggestion."""
    choices = list(choices)
    # An array would be compared to each of the choices, element by element.
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"`{name}` must be one of {choices}. "
            f"Received: {name}={value!r:.80}.{near_miss(value, choices)}{advice}"
        )
    return value


def check_iterable(name: str, value: Any, what: str) -> Iterable:
    """Returns `value` if it can be iterated over and is no string, else raises."""
    is_iterable = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    # An array without an axis has the method, which raises.
    if not is_iterable or getattr(value, "shape", None) == ():
        raise TypeError(f"`{name}` must be {what}. Received: {name}={value!r:.80}")
    return value


def check_finite_batches(batches: Any) -> Iterable:
    """Returns `batches` if they can be iterated over and end, else raises."""
    check_iterable("batches", batches, "batches of inputs")
    if getattr(batches, "cardinality", int)() == -1:  # An infinite tf.data.Dataset.
        raise ValueError(
            "`batches` must be finitely many, such as `batches.take(8)`. "
            "Received: an infinite data set"
        )
    return batches


def check_ordered(name: str, value: Any, what: str) -> Iterable:
    """Returns `value` if its items have an order, else raises."""
    if isinstance(value, (set, frozenset)):
        raise TypeError(
            f"`{name}` must be {what}, in an order. Received: {name}={value!r:.80}. "
            f"{in_place_of(value)}"
        )
    return check_iterable(name, value, what)


def in_place_of(values: Any) -> str:
    """The advice for a mapping, a set or a data frame; '' for any other value.

    All can be iterated over, but give keys, or items in an order that means nothing.
    """
    if isinstance(values, Mapping):
        return "Give one of its values, such as x['train'] of a mapping x"
    if isinstance(values, (set, frozenset)):
        return "Give a list: the order of a set is another in each process"
    if hasattr(values, "columns") and len(getattr(values, "shape", ())) == 2:
        return "Give one of its columns, such as df['text'] of a data frame df"
    return ""


def check_mapping(name: str, value: Any, what: str) -> Mapping:
    """Returns `value` if it is a mapping, else raises."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"`{name}` must be a mapping of {what}. Received: {name}={value!r:.80}"
        )
    return value


def check_json(name: str, value: Any) -> dict[str, Any]:
    """Returns a mapping as JSON reads it again; names the first value that is none."""
    made: dict[str, Any] = {}
    for key, part in check_mapping(name, value, "names to JSON values").items():
        try:
            made |= json.loads(json.dumps({key: part}))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`{name}` must be a mapping of names to JSON values. Received: "
                f"{name} with {key!r}: {part!r}; {error}"
            ) from error
    return made


def known_keywords(cls: type) -> set[str]:
    """The keywords of a class of models: its own, and those of all Keras models."""
    own = inspect.signature(cls).parameters
    return {*own, "name", "trainable"} - {"args", "kwargs"}


def check_keywords(owner: str, keywords: Mapping, known: Iterable[str]) -> None:
    """Raises unless all keywords are known arguments: Keras' models ignore others."""
    known = list(known)
    for name, value in keywords.items():
        if name not in known:
            raise TypeError(
                f"`{name}` must be left out: it is no argument of `{owner}`. "
                f"Received: {name}={value!r:.80}.{near_miss(name, known)}"
            )


def shortened(value: object, most: int = 1000) -> str:
    """A value in a message, without the middle of what a file has of any length."""
    text = str(value)
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def check_best_metric(name: str, metric: str) -> str:
    """Returns a metric that the best model has the highest value of, or raises.

    Args:
        name: the argument, for errors.
        metric: the metric's name.
    """
    check_string(name, metric)
    if metric.lower().startswith(_NEGATIVE) or not metric.lower().endswith(_LOWER):
        return metric
    raise ValueError(
        f"`{name}` must choose the best model by a metric whose highest value is the "
        "best. Of an error give the negative, by a name that begins with 'negative_'. "
        f"Received: {metric!r}"
    )


def check_scores(name: str, values: Any, way: str = "{'f1': 0.5}") -> dict[str, float]:
    """Returns what the user's function `name` gave as numbers by name, or raises."""
    message = (
        f"`{name}` must return a mapping of numbers by name, such as {way}. "
        f"Received: {values!r:.80}"
    )
    if not isinstance(values, Mapping):
        raise TypeError(message)
    scores = {}
    for key, value in values.items():
        if isinstance(value, (str, bytes)):
            raise TypeError(message)
        try:
            scores[key] = float(value)
        except (OverflowError, TypeError, ValueError) as error:
            raise TypeError(message) from error
    return scores
