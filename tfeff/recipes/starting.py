"""The start of a recipe: a pretrained encoder, or a checkpoint of its own run."""

import math
import os
from typing import Any

import tfeff
from tfeff.storage.fetching import published_files
from tfeff.training.checkpoint_folder import checkpoint_steps
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url
from tfeff.utils.run_files import CHECKPOINTS


def has_checkpoint(run_dir: str) -> bool:
    """Whether a run has a checkpoint, from which its next start goes on."""
    if not is_url(run_dir):
        return bool(checkpoint_steps(os.path.join(run_dir, CHECKPOINTS)))
    files = published_files("run_dir", run_dir)
    return any(name.startswith(f"{CHECKPOINTS}/") for name in files)


def print_frozen(encoder: tfeff.encoders.Encoder) -> None:
    """Prints which part of a pretrained encoder is not trained, if any is."""
    frozen, total = (
        sum(math.prod(weight.shape) for weight in weights)
        for weights in (encoder.non_trainable_weights, encoder.weights)
    )
    if frozen:
        print(
            f"{frozen:,} of the {total:,} parameters of the encoder are not trained: "
            "it was saved with frozen layers"
        )


def load_for_training(settings: Any, step: int | None = None, seed: int = 0):
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
            memory_efficient=settings.memory_efficient,
        )
