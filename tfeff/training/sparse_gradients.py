"""Sparse gradients of tables, as every optimizer should take them."""

import types

import keras

from tfeff.utils.types import Tensor


def dense_gradients(gradients: list[Tensor | None]) -> list[Tensor | None]:
    """The gradients of TensorFlow, of which the rows of sparse ones are summed."""
    import tensorflow as tf

    return [g if g is None else tf.convert_to_tensor(g) for g in gradients]


def sum_repeated_rows(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer take sparse gradients of TensorFlow for what they stand for.

    The gradient of a table has a row for each look-up. Keras' optimizers take the rows
    that are of the same entry one by one: Adam's second moment is then the sum of their
    squares, not the square of their sum, and norms are of the rows.
    """
    if keras.backend.backend() == "tensorflow":
        optimizer.apply = types.MethodType(_apply_dense, optimizer)


def _apply_dense(optimizer, grads, trainable_variables=None):
    return type(optimizer).apply(optimizer, dense_gradients(grads), trainable_variables)
