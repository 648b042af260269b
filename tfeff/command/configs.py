"""`tfeff configs`."""

import json
from collections.abc import Mapping

from tfeff.recipes.configurations import CONFIGURATIONS, Configuration, known
from tfeff.recipes.settings import Settings, setting, settings
from tfeff.utils.checks import check_choice


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
    """What a configuration stands for, as flags."""
    lines = [
        f"{configuration.source}",
        f"tfeff {configuration.recipe}",
        *(f"    {_flag(*item)}" for item in configuration.settings.items()),
    ]
    for task, values in configuration.by_task.items():
        flags = [f"--task={task}", *(_flag(*item) for item in values.items())]
        lines.append(f"    {' '.join(flags)}")
    return "\n".join(lines)


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
