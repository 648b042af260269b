"""Trainings whose loss or weights are not finite any more."""

import math
from typing import Any

import keras
import numpy as np

from tfeff.layers.checks import check_model
from tfeff.utils.checks import check_string


class Diverged(ArithmeticError):
    """A training has diverged: its loss or its weights are NaN or infinite.

    Example: see `StopWhenDiverged`.
    """


def is_finite(model: keras.Model) -> bool:
    """Whether every weight of a model is a finite number.

    Args:
        model: a `keras.Model` that is built.

    Returns:
        False if a weight is NaN or infinite.

    Raises:
        TypeError: if `model` is no Keras model.

    Example:

    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> is_finite(model)
    True
    """
    check_model(model)
    return all(np.isfinite(weight).all() for weight in model.get_weights())


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends `fit` by an error after the first epoch that is not finite.

    Callbacks that come behind it, such as one that saves the model and deletes what
    it saved before, do not see that epoch.

    Args:
        advice: text at the end of the error's message, such as what to change.

    Raises:
        Diverged: from `fit`, if `loss` or `val_loss` of the epoch is not finite, or a
            weight at its end.

    Example:

    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 1)), np.full((8, 1), np.nan)
    >>> model.fit(x, y, verbose=0, callbacks=[StopWhenDiverged()])
    Traceback (most recent call last):
        ...
    tfeff.training.divergence.Diverged: The training has diverged in epoch 1: ...
    """

    def __init__(self, advice: str = ""):
        super().__init__()
        self._advice = check_string("advice", advice)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        losses = {k: v for k, v in (logs or {}).items() if k in ("loss", "val_loss")}
        wrong = [f"{k} is {v}" for k, v in losses.items() if not math.isfinite(v)]
        if not wrong and not is_finite(self.model):
            wrong = ["weights are not finite"]
        if wrong:
            raise Diverged(
                f"The training has diverged in epoch {epoch + 1}: {', '.join(wrong)}. "
                f"{self._advice}".strip()
            )
