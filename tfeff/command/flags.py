"""Flags of a settings class, and settings of a command line."""

import textwrap
from collections.abc import Sequence

from absl import flags

from tfeff.recipes.settings import Field, Settings, fields_of


def parse(cls: type[Settings], arguments: Sequence[str]) -> Settings:
    """The settings that a command line gives.

    Args:
        cls: the class of settings.
        arguments: the command line after the command's name.

    Raises:
        ValueError: if a flag is not known (near misses are named), required or not
            of its type, a value is out of its bounds, or arguments are left over.
        TypeError: if a value has not the type of its setting.
    """
    fields = fields_of(cls)
    values = flags.FlagValues()
    for field in fields:
        _define(field, values)
    try:
        _, *left = values(["tfeff", *arguments])
    except flags.Error as error:
        raise ValueError(str(error)) from None
    found = {
        field.name: _value(field, values[field.name].value)
        for field in fields
        if values[field.name].present
    }
    for field in fields:
        if field.positional and field.name not in found and left:
            found[field.name] = left.pop(0)
    if left:
        raise ValueError(f"Arguments must begin with '--'. Received: {' '.join(left)}")
    missing = [f for f in fields if f.required and f.name not in found]
    if missing:
        flags_and_help = (
            f"{_shown(field)} ({field.help.rstrip('.')})" for field in missing
        )
        raise ValueError(f"{', '.join(flags_and_help)} must be given.")
    return cls(**found)


def usage(command: str, cls: type[Settings]) -> str:
    """The text of a command's `--help`."""
    fields = fields_of(cls)
    positional = " ".join(_shown(field) for field in fields if field.positional)
    about = (cls.__doc__ or "").partition("\nArgs:")[0]
    lines = [f"usage: tfeff {command} {positional}".rstrip() + " [--flag=value ...]"]
    lines += ["", textwrap.dedent(f"    {about}").strip(), ""]
    for field in fields:
        lines.append(f"  {_shown(field)}{'' if field.positional else _example(field)}")
        lines += textwrap.wrap(
            field.help + _default(field),
            width=88,
            initial_indent="      ",
            subsequent_indent="      ",
        )
    return "\n".join(lines)


def _define(field: Field, values: flags.FlagValues):
    define = {
        bool: flags.DEFINE_boolean,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
        str: flags.DEFINE_string,
        dict: flags.DEFINE_multi_string,
    }[field.kind]
    if field.is_tuple:
        define = flags.DEFINE_list
    define(field.name, None, field.help, flag_values=values, module_name="tfeff")


def _value(field: Field, value):
    if not field.is_tuple:
        return field.from_json(value)
    try:
        return field.from_json(value)
    except ValueError:
        what = "integers" if field.kind is int else "numbers"
        raise ValueError(
            f"--{field.name} must be {what}. Received: {','.join(value)}"
        ) from None


def _shown(field):
    return field.name.upper() if field.positional else f"--{field.name}"


def _example(field):
    if field.kind is bool:
        return f", --no{field.name}"
    if field.choices:
        return f"={'|'.join(field.choices)}"
    if field.kind is dict:
        return "=NAME=VALUE"
    kind = {int: "N", float: "X", str: "TEXT"}[field.kind]
    return f"={kind},{kind},..." if field.is_tuple else f"={kind}"


def _default(field):
    if field.required or field.default is None or field.default == ():
        return ""
    default = field.default
    if field.kind is dict:
        return ""
    text = ",".join(map(str, default)) if field.is_tuple else str(default)
    return f" Default: {text}." if text else ""
