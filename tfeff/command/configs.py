"""`tfeff configs`."""

import importlib
import json
from collections.abc import Mapping

from tfeff.recipes.configurations import CONFIGURATIONS, Configuration, known
from tfeff.recipes.fields import fields_of, setting
from tfeff.recipes.pretrain_settings import RATE
from tfeff.recipes.settings import Settings, settings
from tfeff.utils.checks import check_choice

# The settings that decide a training most.
_OF_PRETRAINING = ("sequence_length", "batch_size", "steps", "learning_rate")
_OF_FINE_TUNING = ("batch_sizes", "epochs", "learning_rates")


@settings
class ConfigsSettings(Settings):
    """Prints the papers' settings that `--config=NAME` fills in.

    Without a name a table of all; with one its settings, as flags of its command. Names
    are those that `--config` takes, where `_pretrain` at the end may be left out.
    `tfeff stack` takes those of `tfeff pretrain`.
    """

    name: str = setting("One of them; default: all.", "", positional=True)


def print_configs(settings: ConfigsSettings) -> None:
    """Prints the table, or the flags of one."""
    if not settings.name:
        print(table())
        return
    found = known(settings.name)
    if found is None:
        found = CONFIGURATIONS[check_choice("name", settings.name, CONFIGURATIONS)]
    print(flags_of(found))


def table() -> str:
    """All configurations, in Markdown."""
    lines = ["| configuration | command | tasks | paper |", "|---|---|---|---|"]
    for found in CONFIGURATIONS.values():
        tasks = ", ".join(found.by_task) or "–"
        lines.append(
            f"| `{found.name}` | `tfeff {found.recipe}` | {tasks} | {found.source} |"
        )
    return "\n".join(lines)


def flags_of(configuration: Configuration) -> str:
    """The flags that a configuration stands for."""
    lines = [
        f"{configuration.source}",
        f"tfeff {configuration.recipe}",
        *(f"    {_flag(*item)}" for item in configuration.settings.items()),
    ]
    for task, values in configuration.by_task.items():
        flags = [f"--task={task}", *(_flag(*item) for item in values.items())]
        lines.append(f"    {' '.join(flags)}")
    if left := _left_open(configuration):
        lines.append(f"Left open there, with the command's default: {left}")
    return "\n".join(lines)


def _left_open(configuration):
    """The defaults of what decides a training and a configuration does not say."""
    module = importlib.import_module(f"tfeff.recipes.{configuration.recipe}_settings")
    cls = getattr(module, f"{configuration.recipe.capitalize()}Settings")
    given = {*configuration.settings}.union(*configuration.by_task.values())
    values = {field.name: field.default for field in fields_of(cls)}
    names = _OF_FINE_TUNING
    if configuration.recipe == "pretrain":
        names = _OF_PRETRAINING
        values["learning_rate"] = RATE
    return " ".join(_flag(name, values[name]) for name in names if name not in given)


def _flag(name, value):
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    if isinstance(value, Mapping):
        return " ".join(
            f"--{name}='{argument}={json.dumps(item)}'"
            for argument, item in value.items()
        )
    values = value if isinstance(value, tuple) else (value,)
    return f"--{name}={','.join('none' if v is None else str(v) for v in values)}"
