"""Callbacks that put other weights into a model than those that it was trained to."""

from collections.abc import Iterable, Mapping
from typing import Any

import keras

from tfeff.training.keep_best import KeepBest

_CLASSES = (
    KeepBest,
    keras.callbacks.BackupAndRestore,
    keras.callbacks.SwapEMAWeights,
)


def check_leaves_weights(callbacks: Iterable[keras.callbacks.Callback]) -> None:
    """Raises where a callback puts other weights in place of the trained ones.

    Checkpoints are of the weights of their step: what a callback puts back afterwards
    would be in what a run leaves, and not in what its next start resumes from.

    Args:
        callbacks: those of a training that writes checkpoints, or keeps the best
            weights itself.
    """
    for callback in callbacks:
        check_class_leaves_weights(type(callback), vars(callback), callback)


def check_class_leaves_weights(
    cls: type, arguments: Mapping[str, Any], given: object
) -> None:
    """Raises where callbacks of a class, with these arguments, replace the weights.

    Args:
        cls: the class.
        arguments: those that it is made with, by name.
        given: what the user gave, for the message.
    """
    if issubclass(cls, _CLASSES) or arguments.get("restore_best_weights"):
        raise ValueError(
            "`callbacks` must leave the weights as they are: checkpoints and results "
            "are of the weights that were trained, and fine-tuning keeps the best ones "
            "itself. `patience` ends a training early. Received: one that puts others "
            f"in their place, {given!r}"
        )
