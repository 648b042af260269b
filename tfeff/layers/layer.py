"""Base class: masks, output shapes and input checks."""

from typing import Any

import keras

from tfeff.compat.layers import StaysFrozen, symbolic_call
from tfeff.layers.checks import check_dense
from tfeff.utils.definitions import check_config
from tfeff.utils.types import Config, Shape, Tensor


class Layer(StaysFrozen, keras.layers.Layer):
    """Base class of layers whose output has the shape of their first input.

    Those with another shape override `compute_output_shape`.
    """

    # Whether the output has the positions, and so the mask, of the input.
    keeps_positions = True
    # The last size of the input of a layer that is built.
    input_dim: int | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "mask" in self.call_signature_parameters[len(args) :]:
            # Otherwise Keras would make its mask of a symbolic input one more input of
            # the layer, and no part of a model could begin with that input.
            kwargs.setdefault("mask", None)
        named = zip(self.call_signature_parameters, args)
        for name, value in (*named, *kwargs.items()):
            check_dense(name, value)
        return super().__call__(*args, **kwargs)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """Keras' mask of the output: that of the input, if it has its positions."""
        return previous_mask if self.keeps_positions else None

    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Shape:
        """The shape of the output by the shapes of the call's tensors, in order."""
        return tuple((*args, *kwargs.values())[0])

    def get_config(self) -> Config:
        """The arguments of `keras.layers.Layer`; subclasses add their own.

        A class without this method gets Keras' own, which refuses a policy as `dtype`.
        """
        check_config(self)
        return super().get_config()

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Tensor:
        # Keras would take the shape above: no call would check its inputs, or return
        # scores.
        with symbolic_call():
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
