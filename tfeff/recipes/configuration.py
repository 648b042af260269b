"""Settings of a recipe by a name, which `--config=NAME` fills in."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfeff.datasets.aliases import ALIASES
from tfeff.utils.near_misses import near_miss

# Settings that a pretrained encoder and its tokenizer determine.
_OF_PRETRAINED = ("preset", "override", "tokenizer_kind", "vocabulary_size")


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Settings of a recipe as a paper prints them.

    Attributes:
        name: its name.
        recipe: the recipe that it is of, as the command calls it.
        source: the paper and its sections.
        settings: values by the names of settings. A `preset` among them cannot be
            replaced.
        by_task: for each task that it is for, further values; empty where the recipe
            has no tasks.
        continues: whether it goes on from a `pretrained` encoder, which must be given.
    """

    name: str
    recipe: str
    source: str
    settings: Mapping[str, object]
    by_task: Mapping[str, Mapping[str, object]] = dataclasses.field(
        default_factory=dict
    )
    continues: bool = False

    def fill(self, given: Mapping, task: object = None) -> dict:
        """These settings, with those that are given in their place.

        A `pretrained` encoder to pretrain on stands for the preset and its sizes, a
        `tokenizer` and a `cache_dir` for the tokenizer's kind.

        Args:
            given: settings by name. Arguments of encoders are added to the paper's.
            task: the task of the run.

        Raises:
            ValueError: if the task or a given preset is another one, or there is no
                encoder to go on from.
        """
        values: dict[str, Any] = dict(self.settings)
        if self.by_task:
            name = ALIASES.get(task, task) if isinstance(task, str) else ""
            if name not in self.by_task:
                raise ValueError(
                    f"`task` must be one of {list(self.by_task)} with the "
                    f"configuration {self.name!r}. Received: task={task!r}."
                    f"{near_miss(task, self.by_task)}"
                )
            values |= self.by_task[name]
        if self.continues and not given.get("pretrained"):
            raise ValueError(
                f"`pretrained` must be given with the configuration {self.name!r}. "
                f"Received: pretrained={given.get('pretrained')!r}"
            )
        preset = values.get("preset")
        if preset and given.get("pretrained"):
            values = {n: v for n, v in values.items() if n not in _OF_PRETRAINED}
        elif preset and given.get("preset", preset) != preset:
            raise ValueError(
                f"`preset` must be {preset!r} with the configuration {self.name!r}. "
                f"Received: preset={given['preset']!r}"
            )
        if given.get("tokenizer") or given.get("cache_dir"):
            values.pop("tokenizer_kind", None)
        for name, value in given.items():
            both = isinstance(value, Mapping) and isinstance(values.get(name), Mapping)
            values[name] = {**values[name], **value} if both else value
        return values
