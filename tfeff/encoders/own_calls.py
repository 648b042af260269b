"""Models of users' classes that have a `call` of their own."""

from typing import Any

import keras

from tfeff.utils.definitions import has_own


def has_own_call(model: keras.Model) -> bool:
    """Whether a user's class has a `call` of its own, around or in place of tfeff's."""
    return has_own(model, "call")


def symbolic_outputs(model: keras.Model) -> Any:
    """What a model makes of its own inputs, `keras.KerasTensor`s.

    Args:
        model: a functional model of tfeff, or of a user's class below it. Keras'
            `output` would leave out what the class's own `call` does.
    """
    return model(model.input) if has_own_call(model) else model.output
