"""A field of settings: its description, its checks, and its value as JSON.

It imports no library, so that the command's help need not wait for TensorFlow.
"""

import contextlib
import dataclasses
import inspect
import json
import numbers
import os
import re
import types
import typing
from collections.abc import Sequence

from tfeff.utils.checks import (
    MAX_COUNT,
    check_choice,
    check_integer,
    check_mapping,
    check_number,
)
from tfeff.utils.paths import check_path, is_url


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """The description of a field that `setting` makes.

    Attributes:
        help: one sentence about it; it says what the default does where that is `None`.
        choices: all values that a string may have.
        minimum, maximum: inclusive bounds of a number, or of each number of a tuple.
        above, below: exclusive bounds of a float.
        fixed: whether a run keeps it: part of `config.json`, and not to be changed
            where the run resumes.
        by_content: whether it names data of which the run notes digests: the same data
            may be at another place when the run resumes.
        positional: whether the command line takes it without the flag's name.
        repeated: whether the command line has the flag once for each item of a tuple,
            which may then hold commas.
        behind_dashes: whether the command line gives the items of a tuple as they are,
            behind ` -- ` at its end.
        in_place_of: the setting that is not read where this one is given. A command
            line that has both is refused.
    """

    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    fixed: bool = True
    by_content: bool = False
    positional: bool = False
    repeated: bool = False
    behind_dashes: bool = False
    in_place_of: str | None = None


def setting(
    help: str,
    default: object = dataclasses.MISSING,
    *,
    choices: Sequence[str] = (),
    **options: typing.Any,
) -> typing.Any:
    """A field of a `@settings` class.

    Args:
        default: its value where none is given; without one, a value is required.
        help, choices, **options: its `Options`.
    """
    metadata = {"options": Options(help=help, choices=tuple(choices), **options)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Field(Options):
    """A field of a settings class, with its options.

    Attributes:
        name: its name.
        kind: `str`, `int`, `float`, `bool` or `dict`; of a tuple, that of its items.
        is_tuple: whether it is a tuple of those.
        optional: whether it may be `None`.
        default: its value where none is given; `dataclasses.MISSING` if there is none.
    """

    name: str
    kind: type
    is_tuple: bool
    optional: bool
    default: object

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING

    def checked(self, value):
        """The value in the field's type; raises unless it is one that it may have."""
        if value is None and self.optional:
            return None
        if self.kind is dict:
            check_mapping(self.name, value, "arguments to JSON values")
            return types.MappingProxyType(self._checked_json(dict(value)))
        if not self.is_tuple:
            return self._checked_one(value)
        if hasattr(value, "tolist"):  # An array, or a column of a data frame.
            value = value.tolist()
        if self._is_one(value):
            value = (value,)
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise TypeError(
                f"`{self.name}` must be a list of `{self.kind.__name__}`. "
                f"Received: {self.name}={value!r:.80}"
            )
        if not len(value) and self.default != ():
            raise ValueError(
                f"`{self.name}` must be a list of at least one. "
                f"Received: {self.name}={value!r:.80}"
            )
        return tuple(self._checked_one(item) for item in value)

    def _checked_json(self, value):
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            is_json = False
        else:
            is_json = all(isinstance(name, str) for name in value)
        if not is_json:
            raise TypeError(
                f"`{self.name}` must be a mapping of arguments to JSON values: "
                "strings, Python's numbers, bools, None, lists and dicts of these. "
                f"Received: {self.name}={value!r:.80}"
            )
        return value

    def _is_one(self, value):
        """Whether a number or a string stands for a tuple of one."""
        if self.kind is str:
            return isinstance(value, (str, os.PathLike))
        return self.kind in (int, float) and isinstance(value, numbers.Real)

    def _checked_one(self, value):
        if self.kind is bool:
            if not isinstance(value, bool):
                raise TypeError(
                    f"`{self.name}` must be a bool. Received: {self.name}={value!r:.80}"
                )
            return value
        if self.kind is str:
            if self.choices:
                return check_choice(self.name, value, self.choices)
            is_empty = value == "" and self.default != ""
            if is_empty or not isinstance(value, (str, os.PathLike)):
                raise TypeError(
                    f"`{self.name}` must be a string that is not empty. "
                    f"Received: {self.name}={value!r:.80}"
                )
            is_path = value != "" and not is_url(value)
            return check_path(self.name, value) if is_path else value
        if self.kind is int:
            minimum = -MAX_COUNT - 1 if self.minimum is None else self.minimum
            return check_integer(self.name, value, minimum, self.maximum)
        return check_number(
            self.name,
            value,
            minimum=self.minimum,
            above=self.above,
            maximum=self.maximum,
            below=self.below,
        )

    def to_json(self, value):
        """A value as `config.json` has it."""
        if self.kind is dict and value is not None:
            return [f"{name}={_text(item)}" for name, item in sorted(value.items())]
        return list(value) if isinstance(value, tuple) else value

    def from_json(self, value):
        """A value that `to_json` gave, or that is given at the command line.

        Lists of numbers may have them as text, or be one number.

        Raises:
            TypeError, ValueError: if it is neither; `checked` finds the rest.
        """
        if self.kind is dict and isinstance(value, (list, tuple)):
            return dict(parse_argument(self.name, text) for text in value)
        if self.is_tuple and isinstance(value, (list, tuple)):
            return [self._number(item) for item in value]
        return value

    def _number(self, item):
        """The number of a text; other items as they are."""
        if self.kind is str or not isinstance(item, str):
            return item
        try:
            return self.kind(item)
        except ValueError:
            raise ValueError(
                f"`{self.name}` must be a list of `{self.kind.__name__}`. "
                f"Received: {item!r}"
            ) from None


def fields_of(cls: type) -> list[Field]:
    """The fields of a settings class: its own, then those of each base."""
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    names = dict.fromkeys(n for c in cls.__mro__ for n in inspect.get_annotations(c))
    return [
        Field(
            name=name,
            default=_default(fields[name]),
            **_kind(hints[name]),
            **vars(fields[name].metadata["options"]),
        )
        for name in names
        if name in fields
    ]


def parse_argument(name: str, text: str) -> tuple[str, object]:
    """`"num_layers=4"` as `("num_layers", 4)`; what is not JSON is a string.

    Args:
        name: the setting that the text is of, for the error.
        text: `NAME=VALUE`.

    Raises:
        ValueError: if there is no `=`, or several ones with a comma between.
    """
    argument, equals, value = str(text).partition("=")
    if not equals:
        raise ValueError(f"`{name}` must be NAME=VALUE. Received: {text!r}")
    try:
        return argument, json.loads(value)
    except ValueError:
        if re.search(r",\s*\w+=", value):
            raise ValueError(
                f"`{name}` must be one NAME=VALUE, given once for each name. A text "
                f"with a comma and = has double quotes of its own. Received: {text!r}"
            ) from None
        return argument, value


def _text(value):
    """A value as `parse_argument` reads it; strings without quotes where they can."""
    with contextlib.suppress(ValueError):
        if parse_argument("", f"x={value}")[1] == value:
            return str(value)
    return json.dumps(value)


def _default(field):
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return field.default_factory()


def _kind(hint):
    optional = isinstance(hint, types.UnionType)
    if optional:
        (hint,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
    is_tuple = typing.get_origin(hint) is tuple
    if is_tuple:
        hint = typing.get_args(hint)[0]
    kind = typing.get_origin(hint) or hint
    return {"kind": kind, "is_tuple": is_tuple, "optional": optional}
