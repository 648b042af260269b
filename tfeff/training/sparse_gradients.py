"""Sparse gradients of tables, as every optimizer should take them."""

import types

import keras

from tfeff.training.optimizers import AdamW


def sum_repeated_rows(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer take sparse gradients of TensorFlow for what they stand for.

    The gradient of a table has a row for each look-up. Keras' optimizers take the rows
    that are of the same entry one by one: Adam's second moment is then the sum of their
    squares, not the square of their sum, and norms are of the rows.
    """
    is_of_keras = not isinstance(optimizer, AdamW)  # It sums them itself.
    if keras.backend.backend() == "tensorflow" and is_of_keras:
        optimizer.apply = types.MethodType(_apply_dense, optimizer)


def _apply_dense(optimizer, grads, trainable_variables=None):
    import tensorflow as tf

    dense = [g if g is None else tf.convert_to_tensor(g) for g in grads]
    return type(optimizer).apply(optimizer, dense, trainable_variables)
