"""Settings of recipes: one dataclass gives flags, help, `config.json` and reference.

It imports no library, so that the command's help need not wait for TensorFlow.
"""

import dataclasses
import sys
import typing
from collections.abc import Mapping
from typing import TypeVar

from tfeff.recipes.configurations import find
from tfeff.recipes.fields import fields_of
from tfeff.utils.checks import check_mapping

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:
    from typing_extensions import dataclass_transform

T = TypeVar("T")
S = TypeVar("S", bound="Settings")
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
RECOMPUTED = ("block", "attention")
# The activation of BERT's pooler, and those of other published poolers.
POOLER_ACTIVATIONS = ("tanh", "gelu", "gelu_tanh", "relu", "silu")
_RAISES = """Raises:
    TypeError: if a value has another type than its setting.
    ValueError: if a value is out of the bounds of its setting, not one of its choices,
        or does not fit the other settings.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all settings. Values are checked, and tuples made of lists, when made.

    A field is a `str`, `int`, `float` or `bool`, one of those or `None`, a tuple of
    them (`tuple[float, ...]`), or arguments by name (`dict[str, object]`). A number or
    a string stands for a tuple of one.

    Attributes:
        command: the command whose settings they are; `None` of those that no folder
            keeps.
        recipe: the recipe whose named configurations fill in the settings; `None` if
            there are none.

    Raises:
        TypeError: if a value has another type than its field.
        ValueError: if it is out of the field's bounds or not one of its choices.
    """

    command: typing.ClassVar[str | None] = None
    recipe: typing.ClassVar[str | None] = None

    def __post_init__(self):
        for field in fields_of(type(self)):
            value = field.checked(getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    @classmethod
    def named(cls: type[S], name: str, **settings: object) -> S:
        """The settings of a paper, with others in their place, as `--config=NAME`.

        Args:
            name: one of those that `tfeff configs` lists for the recipe.
            **settings: further settings, and those that are to differ. Arguments of
                encoders (`override`) are added to the paper's.

        Raises:
            ValueError: if there is no such configuration; if it is of another recipe,
                task or preset.
            TypeError, ValueError: if a setting is missing or wrong.

        Example:

        >>> from tfeff.recipes import PretrainSettings
        >>> settings = PretrainSettings.named("shatter_base", run_dir="run")
        >>> settings.batch_size, settings.sequence_length, settings.steps
        (256, 512, 1000000)
        """
        return cls(**cls.filled(name, settings))

    @classmethod
    def filled(cls, name: str, given: Mapping) -> dict:
        """The values of a configuration and, before them, those that are given."""
        if cls.recipe is None:
            raise ValueError(
                f"`{cls.__name__}` has no configurations. Received: config={name!r}"
            )
        defaults = {f.name: f.default for f in fields_of(cls) if not f.required}
        return find(cls.recipe, name).fill(
            given, given.get("task", defaults.get("task"))
        )

    def config(self) -> dict:
        """The settings that a run keeps, and their command, as JSON has them."""
        kept = {
            field.name: field.to_json(getattr(self, field.name))
            for field in fields_of(type(self))
            if field.fixed
        }
        return kept if self.command is None else {"command": self.command} | kept

    @classmethod
    def upgraded(cls, config: Mapping) -> dict:
        """The configuration of an older version, as this one writes it.

        Settings that it lacks have their defaults; names that are no settings stay.
        """
        upgraded = dict(config)
        for field in fields_of(cls):
            if field.name in upgraded:
                upgraded[field.name] = field.to_json(
                    field.checked(field.from_json(upgraded[field.name]))
                )
            elif field.fixed and not field.required:
                upgraded[field.name] = field.to_json(field.default)
        return upgraded

    @classmethod
    def from_config(cls: type[S], config: Mapping, **others: object) -> S:
        """The settings of a `config.json`, which may lack some.

        Args:
            config: what `config` gave.
            **others: settings that a run does not keep.

        Raises:
            TypeError: if it is no mapping.
            ValueError: if it is of another command, or has names that are no settings.
        """
        check_mapping("config", config, "names to JSON values")
        config = dict(config)
        if (command := config.pop("command", cls.command)) != cls.command:
            raise ValueError(
                f"`config` must have settings of {cls.__name__}. Received: "
                f"command={command!r:.80}"
            )
        known = {field.name: field for field in fields_of(cls) if field.fixed}
        if unknown := sorted(set(config) - set(known)):
            raise ValueError(
                f"`config` must have settings of {cls.__name__}. Received: "
                f"{', '.join(unknown)}"
            )
        values = {name: known[name].from_json(value) for name, value in config.items()}
        return cls(**values, **others)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Makes a frozen dataclass of keywords, whose docstring lists the settings."""
    cls = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    lines = [f"    {field.name}: {field.help}" for field in fields_of(cls)]
    about = (cls.__doc__ or "").rstrip()
    cls.__doc__ = "\n".join([about, "", "Args:", *lines, "", _RAISES])
    return cls


def check_settings(settings: object, cls: type[Settings]) -> None:
    """Raises unless settings are of the recipe's own class.

    Args:
        settings: what the recipe was called with.
        cls: the class of its settings.

    Raises:
        TypeError: if they are of another class.
    """
    if type(settings) is not cls:
        raise TypeError(
            f"`settings` must be `{cls.__name__}`. Received: settings={settings!r:.80}"
        )


def of_command(config: Mapping) -> str:
    """Of which command a configuration is, for a message."""
    command = config.get("command")
    if command is None:
        return "without its `command`, as of an earlier version of tfeff"
    return f"of `tfeff {command!s:.80}`"


def changed(settings: "Settings") -> set[str]:
    """The names of settings that are not left at their defaults."""
    return {
        field.name
        for field in fields_of(type(settings))
        if getattr(settings, field.name) != field.default
    }
