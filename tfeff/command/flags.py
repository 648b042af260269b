"""Flags of a settings class, and settings of a command line."""

import textwrap
from collections.abc import Sequence

from absl import flags

from tfeff.command.flag_groups import grouped
from tfeff.recipes.fields import Field, fields_of
from tfeff.recipes.settings import Settings
from tfeff.utils.checks import known_keywords
from tfeff.utils.job_output import say

WIDTH = 88  # The most characters of a line.
_CONFIG = (
    "A paper's settings by name, as `tfeff configs` lists them; flags that are given "
    "replace them."
)
# Names in Hugging Face's scripts, and the settings that a command may have for them.
_OF_OTHERS = {
    "gradient_accumulation_steps": ("accumulation_steps",),
    "lr": ("learning_rate", "learning_rates"),
    "max_grad_norm": ("global_clipnorm",),
    "max_seq_length": ("sequence_length",),
    "max_steps": ("steps",),
    "mlm_probability": ("mask_rate",),
    "model_name_or_path": ("pretrained",),
    "num_train_epochs": ("epochs",),
    "output_dir": ("run_dir",),
    "per_device_train_batch_size": ("batch_size", "batch_sizes"),
    "task_name": ("task",),
    "tokenizer_name": ("tokenizer",),
    "train_file": ("corpus", "train", "examples"),
    "validation_file": ("validation", "dev"),
}


def parse(cls: type[Settings], arguments: Sequence[str]) -> Settings:
    """The settings that a command line gives.

    Args:
        cls: the class of settings.
        arguments: the command line after the command's name.

    Raises:
        ValueError: if a flag is not known (near misses are named), required or not
            of its type, a value is out of its bounds, or arguments are left over; if
            the configuration is unknown, or of another recipe, task or preset.
        TypeError: if a value has not the type of its setting.
    """
    fields = fields_of(cls)
    arguments, behind = _split_at_dashes(arguments)
    values = flags.FlagValues()
    for field in fields:
        if not field.behind_dashes:
            _define(field, values)
    if cls.recipe:
        flags.DEFINE_string("config", None, _CONFIG, values)
    try:
        _, *left = values(["tfeff", *arguments])
    except flags.UnrecognizedFlagError as error:
        message = str(error)
        advice = _advice(cls, error.flagname)
        if advice:
            message = f"{message.partition('. Did you mean')[0]}. {advice}"
        elif "Did you mean" not in message:
            message += "."
        raise ValueError(message) from None
    except flags.Error as error:
        raise ValueError(str(error)) from None
    _check_others(fields, values)
    found = {
        field.name: _value(field, values[field.name].value)
        for field in fields
        if not field.behind_dashes and values[field.name].present
    }
    for field in fields:
        if field.behind_dashes and behind:
            found[field.name], behind = tuple(behind), []
    if behind:
        raise ValueError(f"Nothing may stand behind '--'. Received: {' '.join(behind)}")
    for field in fields:
        if field.positional and field.name not in found and left:
            found[field.name] = left.pop(0)
    if left:
        raise ValueError(
            "Arguments must begin with '--'; globs need quotes, and several values "
            f"commas. Received: {' '.join(left)}"
        )
    if cls.recipe and values["config"].present:
        found = cls.filled(values["config"].value, found)
    missing = [f for f in fields if f.required and f.name not in found]
    if missing:
        flags_and_help = (
            f"{_shown(field)} ({field.help.rstrip('.')})" for field in missing
        )
        raise ValueError(f"{', '.join(flags_and_help)} must be given.")
    settings = cls(**found)
    _tell_of_twice(fields, values)
    return settings


def _advice(cls, name):
    """What to give in place of an unknown flag, a sentence; '' if nothing is known."""
    names = {field.name for field in fields_of(cls)}
    for here in _OF_OTHERS.get(name, ()):
        if here in names:
            return f"Its name is --{here}."
    bases = (base for base in cls.__mro__[1:] if issubclass(base, Settings))
    if any(name == field.name for base in bases for field in fields_of(base)):
        return "It is a setting of other commands, which this one lacks."
    if "override" in names:
        from tfeff.encoders import Encoder

        if name in known_keywords(Encoder):
            return f"It is an argument of encoders: give --override={name}=VALUE."
    return ""


def _check_others(fields, values):
    """Raises for a flag beside the one that stands in its place."""
    for field in fields:
        other = field.in_place_of
        if other and values[field.name].value is not None and values[other].present:
            raise ValueError(
                f"--{other} must be left out beside --{field.name}, which stands in "
                "its place. Received: both"
            )


def _tell_of_twice(fields, values):
    """Tells of lists that are given twice, whose values do not add up."""
    for field in fields:
        if not field.is_tuple or field.repeated or field.behind_dashes:
            continue
        if (times := values[field.name].present) > 1:
            say(
                f"--{field.name} is given {times} times, of which the last counts: "
                f"{','.join(values[field.name].value)}. Several values need commas"
            )


def _split_at_dashes(arguments):
    """The arguments before the first `--`, and those behind it."""
    arguments = list(arguments)
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def usage(command: str, cls: type[Settings], width: int = WIDTH) -> str:
    """The text of a command's `--help`; its descriptions of flags fit `width`."""
    # The folder comes first, and the flags of others last.
    fields = sorted(
        fields_of(cls), key=lambda x: (x.behind_dashes, x.name != "run_dir")
    )
    positional = " ".join(_shown(field) for field in fields if field.positional)
    about = (cls.__doc__ or "").partition("\nArgs:")[0]
    lines = [f"usage: tfeff {command} {positional}".rstrip() + " [--flag=value ...]"]
    lines += ["", textwrap.dedent(f"    {about}").strip(), ""]
    if cls.recipe:
        lines += ["  --config=NAME", *_indented(_CONFIG, width)]
    for group, members in grouped(fields):
        lines += ["", f"{group}:"] if group else []
        for field in members:
            example = "" if field.positional else _example(field)
            lines.append(f"  {_shown(field)}{example}")
            lines += _indented(field.help + _default(field), width)
    return "\n".join(lines)


def _indented(text, width):
    indent = " " * 6
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


class _Lenient(flags.ArgumentParser):
    """Leaves a text that is no value to the settings, which say what they expect."""

    def __init__(self, parser, takes_none):
        self._parser = parser
        self._takes_none = takes_none
        self.syntactic_help = parser.syntactic_help

    def parse(self, argument):
        if self._takes_none and argument == "none":
            return None
        try:
            return self._parser.parse(argument)
        except (TypeError, ValueError):
            return argument

    def flag_type(self):
        return self._parser.flag_type()


def _define(field: Field, values: flags.FlagValues):
    of_flag = dict(
        name=field.name,
        default=None,
        help=field.help,
        flag_values=values,
        module_name="tfeff",
    )
    if field.repeated:
        flags.DEFINE_multi_string(**of_flag)
    elif field.is_tuple:
        flags.DEFINE_list(**of_flag)
    else:
        define = {
            bool: flags.DEFINE_boolean,
            int: flags.DEFINE_integer,
            float: flags.DEFINE_float,
            str: flags.DEFINE_string,
            dict: flags.DEFINE_multi_string,
        }[field.kind]
        define(**of_flag)
        flag = values[field.name]
        if field.kind in (bool, int, float):
            flag.parser = _Lenient(flag.parser, _takes_none(field))


def _takes_none(field):
    """Whether the flag's text may be `none`: a number that has to be none at times."""
    return field.optional and not field.is_tuple and field.kind in (int, float)


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
    if field.behind_dashes:
        return "--"
    return field.name.upper() if field.positional else f"--{field.name}"


def _example(field):
    if field.behind_dashes:
        return " FLAG ..."
    if field.kind is bool:
        return f", --no{field.name}"
    if field.choices:
        return f"={'|'.join(field.choices)}"
    if field.kind is dict:
        return "=NAME=VALUE"
    kind = {int: "N", float: "X", str: "TEXT"}[field.kind]
    if field.is_tuple and not field.repeated:
        return f"={kind},{kind},..."
    return f"={kind}|none" if _takes_none(field) else f"={kind}"


def _default(field):
    if field.required or field.default is None or field.default == ():
        return ""
    default = field.default
    if field.kind is dict:
        return ""
    text = ",".join(map(str, default)) if field.is_tuple else str(default)
    return f" Default: {text}." if text else ""
