"""Layers of models that read several sequences an example."""

import keras
from keras import ops

from tfeff.encoders.encoder import INPUTS, Encoder
from tfeff.tasks.task import logits_dtype


def grouped_inputs() -> tuple[dict, dict]:
    """Inputs `[B, C, T]` of C sequences an example, and as an encoder's `[B·C, T]`."""
    inputs = {
        name: keras.Input((None, None), dtype="int32", name=name) for name in INPUTS
    }
    ungroup = Ungroup(name="ungroup")
    return inputs, {name: ungroup(tensor) for name, tensor in inputs.items()}


@keras.saving.register_keras_serializable(package="tfeff")
class Ungroup(keras.layers.Layer):
    """Reshapes `[B, C, T]` to `[B·C, T]`."""

    def call(self, inputs):
        # -1 would be undetermined for an empty batch.
        batch, choices, length = ops.shape(inputs)
        return ops.reshape(inputs, (batch * choices, length))

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, inputs.shape[-1]), inputs.dtype)


@keras.saving.register_keras_serializable(package="tfeff")
class Group(keras.layers.Layer):
    """Reshapes `[B·C, …]` to `[B, C, …]`, with B and C of a second input."""

    def call(self, inputs):
        x, like = inputs
        return ops.reshape(x, (*ops.shape(like)[:2], *x.shape[1:]))

    def compute_output_shape(self, input_shape):
        x, like = input_shape
        return (*like[:2], *x[1:])


def group_of(encoder: Encoder) -> Group:
    """The layer for outputs of an encoder, in the dtype of a head's."""
    return Group(name="group", dtype=logits_dtype(encoder))
