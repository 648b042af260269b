"""Decides when a training has stopped getting better."""

import math
from collections.abc import Iterable, Mapping, Sequence

import keras

from tfeff.utils.checks import check_integer


def since_lowest(losses: Sequence[float]) -> int:
    """The number of losses after the lowest one, the first of equal ones.

    NaN is never the lowest. If all losses are NaN, the number is that of all losses.

    Example:

    >>> since_lowest([3.0, 2.0, 2.5, 2.0])
    2
    """
    count, lowest = 0, math.inf
    for loss in losses:
        count += 1
        if loss < lowest:
            count, lowest = 0, loss
    return count


def check_patience(patience: int | None, validation_data: object) -> int | None:
    """Returns `patience` if it is `None`, or an integer with validation data.

    Raises:
        TypeError: if it is no integer.
        ValueError: if it is below 1, or there is no validation data.
    """
    if patience is None:
        return None
    patience = check_integer("patience", patience)
    if validation_data is None:
        raise ValueError(
            "`patience` must be None without `validation_data`. "
            f"Received: patience={patience}"
        )
    return patience


def earlier_losses(
    rows: Iterable[Mapping[str, str]], patience: int | None
) -> list[float]:
    """The `val_loss` of each earlier epoch; an empty list if `patience` is `None`.

    Raises:
        ValueError: if an epoch has no `val_loss`.
    """
    if patience is None:
        return []
    losses = [row.get("val_loss") for row in rows]
    if not all(losses):
        raise ValueError(
            "`patience` must be None for a run that had epochs without "
            f"`validation_data`. Received: patience={patience}"
        )
    return [float(loss) for loss in losses if loss]


class StopAtPlateau(keras.callbacks.Callback):
    """Ends `fit` where the validation loss has not fallen for some epochs.

    Place it behind callbacks that may end the training for other reasons: after their
    stop it does nothing.

    Args:
        patience: integer, epochs without a new lowest `val_loss` after which `fit`
            ends; `None` disables this.
        losses: the `val_loss` of the epochs before.

    Attributes:
        has_ended: whether it has ended `fit`.
    """

    def __init__(self, patience: int | None, losses: Sequence[float]):
        super().__init__()
        self._patience = patience
        self._losses = list(losses)
        self.has_ended = False

    @property
    def is_over(self) -> bool:
        """Whether the loss has levelled off, now or at an earlier start."""
        return (
            self._patience is not None and since_lowest(self._losses) >= self._patience
        )

    @property
    def epochs(self) -> int:
        """The number of epochs seen, those of earlier starts included."""
        return len(self._losses)

    def on_epoch_end(self, epoch, logs=None):
        if self._patience is None:
            return
        self._losses.append(logs["val_loss"])
        if self.is_over and not self.model.stop_training:
            self.model.stop_training = self.has_ended = True


class StopEarly(StopAtPlateau):
    """Ends a run at its plateau.

    It adds the number of epochs since the lowest loss to the metrics of each epoch, as
    `validations_since_lowest`.
    """

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self._patience is not None:
            logs["validations_since_lowest"] = since_lowest(self._losses)
