"""Moving averages of weights, which an optimizer with `use_ema` keeps.

`fit` of Keras puts them in place of the weights at its end. Until then the weights
themselves are saved and evaluated.
"""

import keras

from tfeff.training.loss_scale import unscaled


def check_no_averages(name: str, optimizer: keras.optimizers.Optimizer | None) -> None:
    """Raises if the optimizer, the argument `name`, keeps moving averages."""
    inner = unscaled(optimizer)
    if inner is not None and inner.use_ema:
        raise ValueError(
            f"`{name}` must have no moving averages of weights (`use_ema`): Keras puts "
            "them in place of the weights when `fit` ends, and not before. "
            "Received: an optimizer with use_ema=True"
        )


def take_averages(model: keras.Model) -> None:
    """Puts the averages in place of the weights, if there are any, as `fit` does."""
    model.optimizer.finalize_variable_values(model.trainable_weights)
