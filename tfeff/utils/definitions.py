"""Registries by name, where a definition that is run again replaces its earlier self.

A cell of a notebook that is run again makes new objects of the same definitions.
"""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import numpy as np

_TFEFF = __name__.partition(".")[0]
# The end of an error message about a name that is not in a registry.
UNREGISTERED = (
    " One of your own must be registered before a model with it is loaded, in commands "
    "by --import=MODULE."
)


def refusal(
    registry: Mapping[str, Any], own: Container[str], name: str, value: Any
) -> str | None:
    """The advice if a value may not be registered under a name; `None` if it may.

    Args:
        registry: the values by their names.
        own: the names that tfeff itself registered, whose values are never replaced.
        name: the name for the value.
        value: what is to be registered.
    """
    if name in own:
        same = name in registry and registry[name] == value
        return None if same else "It is a name of tfeff's own: give another one"
    if name not in registry or same_definition(registry[name], value):
        return None
    return "Give another name, or start Python again to define the name anew"


def as_dict(spec: str | Mapping) -> dict:
    """A name, or a name with further arguments, as a new dict with a `"name"`."""
    return {"name": spec} if isinstance(spec, str) else dict(spec)


def parameters_of(make: Callable, base: type) -> Iterator[list[inspect.Parameter]]:
    """The parameters of a function, or of a class and of those that it passes more to.

    Args:
        make: the function or class; `**kwargs` of a class go to its bases.
        base: the base at which they end, whose own are left out.

    Yields:
        The parameters of each constructor without `self`, from the class to its bases.
        `**kwargs` among the last ones go to `base`.
    """
    for step in inspect.getmro(make) if inspect.isclass(make) else (make,):
        if step in (base, object):
            return
        function: Any = vars(step).get("__init__") if inspect.isclass(step) else step
        if function is None:
            continue
        parameters = list(inspect.signature(function).parameters.values())
        parameters = parameters[inspect.isclass(step) :]
        yield parameters
        if all(p.kind is not p.VAR_KEYWORD for p in parameters):
            return


def check_complete(
    argument: str, spec: str | dict, function: Any, given: Container[str]
) -> None:
    """Raises unless a registered function is given all arguments that it must have.

    Args:
        argument: the argument whose value names the function.
        spec: that value, the name or a dict with it and further arguments.
        function: the function.
        given: the names of what it is given.
    """
    missing = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in given
    ]
    if missing:
        name = as_dict(spec)["name"]
        raise ValueError(
            f"`{argument}` {name!r} must have the arguments {missing}, as in "
            f"{{'name': {name!r}, {missing[0]!r}: …}}. Received: {argument}={spec!r}"
        )


def check_config(instance: Any) -> None:
    """Raises where a user's class takes arguments, and inherits its `get_config`.

    A loaded instance would have their defaults.

    Raises:
        NotImplementedError: as Keras raises it of classes without any `get_config`.
    """
    kinds = inspect.getmro(type(instance))
    inherits = next(i for i, kind in enumerate(kinds) if "get_config" in vars(kind))
    if not _is_of_tfeff(kinds[inherits]):  # A user's, which may have all of them.
        return
    own = [kind for kind in kinds[:inherits] if not _is_of_tfeff(kind)]
    if lost := sorted(_arguments(own) - _arguments(kinds[inherits:])):
        raise NotImplementedError(
            f"{type(instance).__name__} must override `get_config`, which must have "
            f"its {'argument' if len(lost) == 1 else 'arguments'} {', '.join(lost)}: "
            "what is loaded would have another value"
        )


def has_own(instance: Any, method: str) -> bool:
    """Whether a user's class has a method of its own in place of tfeff's."""
    kinds = inspect.getmro(type(instance))
    return not _is_of_tfeff(next(kind for kind in kinds if method in vars(kind)))


def _is_of_tfeff(kind):
    return kind.__module__.partition(".")[0] == _TFEFF


def _arguments(kinds):
    """The names that constructors of classes take."""
    return {
        parameter.name
        for kind in kinds
        if "__init__" in vars(kind)
        for parameter in inspect.signature(kind.__init__).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def same_definition(one: Any, other: Any) -> bool:
    """Whether two values are one definition, as those of a cell that is run twice are.

    Classes and functions of a module are known by their names: the cell may have been
    edited. Functions that have none of their own, such as lambdas and functions in
    functions, must have the same code and see the same values; records, partial
    functions and objects that do not say what makes them equal have the same parts.
    """
    try:
        return _same(one, other)
    except (RecursionError, TypeError, ValueError):  # Values that cannot be compared.
        return False


def _same(one, other):
    if one is other:
        return True
    if not _same(type(one), type(other)):
        return False
    if isinstance(one, (type, types.FunctionType)):
        if _name(one) != _name(other):
            return False
        if "<" not in one.__qualname__:  # As in `<lambda>`, `outer.<locals>.inner`.
            return True
        return isinstance(one, types.FunctionType) and _same(_seen(one), _seen(other))
    if isinstance(one, functools.partial):
        parts = [(x.func, x.args, x.keywords) for x in (one, other)]
        return _same(*parts)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return _same(tuple(one.items()), tuple(other.items()))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, types.CodeType):
        return _instructions(one) == _instructions(other)
    if isinstance(one, types.MethodType):
        return _same(*((x.__func__, x.__self__) for x in (one, other)))
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return _same(*({x: getattr(y, x) for x in names} for y in (one, other)))
    if type(one).__eq__ is object.__eq__ and hasattr(one, "__dict__"):
        # What `copy` makes another one of, with slots and the state of its bases.
        return _same(*(x.__reduce_ex__(2) for x in (one, other)))
    return bool(one == other)


def _instructions(code):
    """A code object without the places of its lines in a file."""
    constants = tuple(
        _instructions(x) if isinstance(x, types.CodeType) else x for x in code.co_consts
    )
    return code.replace(
        co_consts=constants, co_filename="", co_firstlineno=1, co_linetable=b""
    )


def _name(value):
    return value.__module__, value.__qualname__


def _seen(function):
    """The parts of a function that its results depend on, but for its module."""
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells
