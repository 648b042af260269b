"""The pretrained encoder that a recipe starts from."""

from typing import Any

import tfeff
from tfeff.utils.naming import named_as


def load_pretrained(settings: Any, step: int | None = None, seed: int = 0):
    """The encoder, long enough, of a step or of the end, and its tokenizer.

    Args:
        settings: of a recipe, with what is `pretrained`.
        step: of a run's checkpoints; `None` for the end.
        seed: for the rows of an extended table.
    """
    with named_as(path="pretrained", step="pretrained"):
        return tfeff.tasks.load_pretrained(
            settings.pretrained if step is None else f"{settings.pretrained}@{step}",
            sequence_length=settings.sequence_length,
            dropout=settings.dropout,
            attention_dropout=settings.attention_dropout,
            dtype=settings.dtype,
            seed=seed,
            swap_positions=settings.swap_positions,
        )
