"""Partitions of unity of the user, by name."""

import inspect
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from tfeff.ops.kernels.backends import eagerly
from tfeff.ops.partition import EPSILONS
from tfeff.utils.checks import check_callable, check_choice, check_integer, check_string
from tfeff.utils.definitions import UNREGISTERED, as_dict, check_complete, refusal

# The settings of a layer that functions get if their signatures name them.
_SETTINGS = "num_parts", "layer_index", "num_layers", "dtype"
_VARIADIC = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
# Distances at which functions are checked: all up to the first number, and powers of 2.
_NEAR = 1024
_POWERS = [2**n for n in range(11, 21)]
# The error that sums in float32 may have.
_TOLERANCE = 1e-5


class _Registered(NamedTuple):
    functions: Callable
    reach: Callable | int | None


_REGISTRY: dict[str, _Registered] = {}


def register_partition(
    name: str,
    functions: Callable | None = None,
    reach: Callable | int | None = None,
) -> Callable:
    """Registers functions of a partition of unity under a name.

    `PartitionOfUnityMask`, `PartitionedAttention` and `OneHeadAttention` then take the
    name as `partition`, or a dict with it as `"name"` and with further arguments of
    `functions`. `functions` gets a float tensor of relative positions `x = j - i`,
    of any shape `[...]`, and those of `num_parts`, `layer_index`, `num_layers` and
    `dtype` (the layer's compute dtype) that its signature names. It returns `f_h(x)`, a
    tensor `[num_parts, ...]`, by operations of Keras.

    A partition is checked where a layer is made with it, for every layer of the stack:
    `f_h(x) ≥ 0` and `Σ_h f_h(x) = 1`.

    It is usable as a decorator. A saved layer has the name alone: the functions must be
    registered before it is loaded. A cell that is run again replaces what it had
    registered (functions of the same module and name, with the same reach) for layers
    that are made from then on.

    Args:
        name: the name for `partition`.
        functions: the callable; if left out, a decorator is returned.
        reach: integer, the distance beyond which one part on either side is 1 to the
            rounding of the dtype, the same parts in every layer; or a callable that
            returns it from those arguments that its signature names. Long sequences
            then cost less. `None` if there is no such distance, or none is known.

    Returns:
        `functions`, or the decorator.

    Raises:
        ValueError: if another partition has the name, or `reach` is below 0.
        TypeError: if `name` is not a string, `functions` is not callable, or `reach` is
            neither an integer, a callable nor None.

    Example:

    >>> import tfeff
    >>> @tfeff.layers.register_partition("sides", reach=0)
    ... def sides(relative_positions):
    ...     right = keras.ops.sigmoid(50.0 * relative_positions)
    ...     return keras.ops.stack([right, 1.0 - right])
    >>> mask = tfeff.layers.PartitionOfUnityMask(num_parts=2, partition="sides")
    >>> tuple(mask(keras.ops.zeros((1, 5, 16))).shape)
    (2, 5, 5)

    Reference:
        Tian et al., "Shatter", section 3.1, for what a partition of unity is.
    """
    check_string("name", name)
    if functions is None:
        return lambda decorated: register_partition(name, decorated, reach)
    check_callable("functions", functions)
    if reach is not None and not callable(reach):
        reach = check_integer("reach", reach, minimum=0)
    registered = _Registered(functions, reach)
    if advice := refusal(_REGISTRY, (), name, registered):
        raise ValueError(
            "`name` must be the name of no other partition. "
            f"Received: name={name!r}, which is registered for "
            f"{_REGISTRY[name].functions!r}. {advice}"
        )
    _REGISTRY[name] = registered
    return functions


def partitions() -> list[str]:
    """The names of the registered partitions, sorted.

    Returns:
        Names that layers take as `partition`.

    Example:

    >>> partitions() == sorted(partitions())
    True
    """
    return sorted(_REGISTRY)


class RegisteredPartition:
    """A registered partition with its arguments, checked.

    Args:
        spec: a registered name, or a dict with `"name"` and further arguments.
        num_parts, num_layers: as those of `PartitionOfUnityMask`.
        dtype: the dtype in which weights are multiplied with the partition.

    Attributes:
        outer_parts: the parts of far keys to the left and to the right; `None` without
            a reach.

    Raises:
        ValueError: if the name is not registered, an argument is not one of the
            functions', or the functions are no partition of unity.
        TypeError: if `spec` is neither a name nor a dict.
    """

    def __init__(self, spec: str | dict, num_parts: int, num_layers: int, dtype: str):
        if not isinstance(spec, (str, dict)):
            raise TypeError(
                "`partition` must be a registered name, a dict with a 'name', or None. "
                f"Received: partition={spec!r:.80}"
            )
        arguments = as_dict(spec)
        name = arguments.pop("name", None)
        self._name = check_choice("partition", name, _REGISTRY, UNREGISTERED)
        self._made = _REGISTRY[self._name]
        _check_arguments(self._made.functions, spec, self._name, arguments)
        self._dtype = keras.backend.standardize_dtype(dtype)
        self._given = {
            **arguments,
            "num_parts": num_parts,
            "num_layers": num_layers,
            "dtype": self._dtype,
        }
        # All layers of a stack have the same partition: it is checked once.
        key = self._made, json.dumps(self._given, sort_keys=True, default=_as_key)
        if key not in _CHECKED:
            with eagerly():
                _CHECKED[key] = self._checked()
        self.outer_parts = _CHECKED[key]

    def functions(self, relative_positions, layer_index: int):
        """`f_h(x)` at float positions `x` of any shape, `[n, ...]`."""
        given = {**self._given, "layer_index": layer_index}
        return _call(self._made.functions, given, relative_positions)

    def reach(self, layer_index: int, dtype: str) -> int | None:
        """The declared distance, or `None`.

        Args:
            layer_index: the layer.
            dtype: the dtype in which weights are multiplied with the partition.
        """
        reach = self._made.reach
        if not callable(reach):
            return reach
        given = {**self._given, "layer_index": layer_index, "dtype": dtype}
        reach = _call(reach, given)
        return check_integer("reach", reach, minimum=0)

    def _checked(self):
        """The outer parts, or raises unless this is a partition in every layer."""
        outer = set()
        for layer_index in range(self._given["num_layers"]):
            near = np.arange(_NEAR + 1)
            values = self._values([*near, *_POWERS], layer_index)
            if not (values >= 0).all():
                self._refuse(layer_index, f"its smallest value is {values.min():g}")
            error = np.abs(values.sum(axis=1) - 1).max()
            if not error <= _TOLERANCE:
                self._refuse(layer_index, f"its sum is off 1 by {error:g}")
            reach = self.reach(layer_index, self._dtype)
            if reach is not None:
                far = [reach + 1, reach + 2, *(x for x in _POWERS if x > reach)]
                outer.add(self._outer(self._values(far, layer_index), layer_index))
        if len(outer) > 1:
            raise ValueError(
                "`partition` must have the same outer parts in every layer. "
                f"Received: {self._name!r}, whose parts beyond its reach are {outer}"
            )
        return outer.pop() if outer else None

    def _values(self, distances, layer_index):
        """`f_h` at the distances to the left, then to the right, `[2, n, ...]`."""
        distances = np.asarray(distances)
        x = ops.convert_to_tensor(
            np.stack([-distances, distances]),
            keras.backend.result_type(self._dtype, "float32"),
        )
        values = ops.convert_to_numpy(self.functions(x, layer_index))
        expected = self._given["num_parts"], 2, len(distances)
        if values.shape != expected:
            raise ValueError(
                "`partition` must give a tensor of shape (`num_parts`, ...) for "
                f"relative positions (...). Received: {self._name!r}, which gives "
                f"{values.shape} instead of {expected}"
            )
        return np.moveaxis(values.astype("float64"), 0, 1)

    def _outer(self, values, layer_index):
        """The part of either side that is 1 at all given distances."""
        rounding = max(EPSILONS[self._dtype], EPSILONS["float32"])
        if self._dtype == "float64":
            rounding = EPSILONS["float64"]
        parts = tuple(int(side[:, 0].argmax()) for side in values)
        error = max(abs(1 - side[part]).max() for side, part in zip(values, parts))
        if error > rounding:
            reach = self.reach(layer_index, self._dtype)
            raise ValueError(
                "`reach` must be the distance beyond which one part on either side is "
                f"1. Received: reach={reach} of the partition {self._name!r}, which in "
                f"layer {layer_index} is off by {error:g}"
            )
        return parts

    def _refuse(self, layer_index, reason):
        raise ValueError(
            "`partition` must be a partition of unity: functions that are not negative "
            f"and add up to 1. Received: {self._name!r}, of which in layer "
            f"{layer_index} of {self._given['num_layers']} {reason}"
        )


# The outer parts of the partitions that were checked.
_CHECKED: dict[tuple, Any] = {}


def _as_key(value):
    """A key of a value that JSON lacks; of an array by its whole content."""
    if not hasattr(value, "__array__"):
        return repr(value)
    array = np.asarray(value)
    return [str(array.dtype), array.shape, array.tolist()]


def _check_arguments(functions, spec, name, arguments):
    """Raises unless the functions take all arguments and need no others."""
    parameters = list(inspect.signature(functions).parameters.values())
    positions, parameters = {p.name for p in parameters[:1]}, parameters[1:]
    own = {p.name: p for p in parameters if p.name not in _SETTINGS}
    accepted = [n for n, p in own.items() if p.kind not in _VARIADIC]
    variadic = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = sorted(set(arguments) - set(accepted))
    if variadic:
        unknown = sorted(set(arguments) & set(_SETTINGS))
    if unknown:
        raise ValueError(
            f"`partition` {name!r} must have arguments among {accepted}. "
            f"Received: {', '.join(unknown)}"
        )
    check_complete("partition", spec, functions, {*positions, *_SETTINGS, *arguments})


def _call(function, given, *positional):
    """Calls a function with those of the given arguments that its signature names."""
    parameters = inspect.signature(function).parameters.values()
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        names = {p.name for p in list(parameters)[len(positional) :]}
        given = {name: value for name, value in given.items() if name in names}
    return function(*positional, **given)
