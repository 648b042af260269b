"""Metrics that are means over all targets seen, whatever the batches' widths.

Keras' own metrics average over all axes but the first, and weigh a batch by the sum of
its rows' mean weights: a target counts less in a wider batch.
"""

import keras
from keras import ops

from tfeff.training.losses import cross_entropies
from tfeff.training.target_weights import target_weights


class OverTargets:
    """Mixin of metrics: flattens targets `[...]` and outputs `[..., C]`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        weights = target_weights(sample_weight, y_true)
        return super().update_state(
            ops.reshape(y_true, (-1, 1)),
            ops.reshape(y_pred, (-1, ops.shape(y_pred)[-1])),
            ops.reshape(weights, (-1,)),
        )


@keras.saving.register_keras_serializable(package="tfeff")
class SparseCrossEntropy(keras.metrics.SparseCategoricalCrossentropy):
    """`keras.metrics.SparseCategoricalCrossentropy` of logits, over all targets."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        losses = cross_entropies(y_true, y_pred)
        weights = target_weights(sample_weight, y_true)
        keras.metrics.Mean.update_state(
            self, ops.reshape(losses, (-1,)), ops.reshape(weights, (-1,))
        )


@keras.saving.register_keras_serializable(package="tfeff")
class SparseAccuracy(OverTargets, keras.metrics.SparseCategoricalAccuracy):
    """`keras.metrics.SparseCategoricalAccuracy` over all targets."""


def update_mean(metric: keras.metrics.Mean, values, weights) -> None:
    """Updates a mean over targets by values of any shape, and weights of that shape."""
    metric.update_state(ops.reshape(values, (-1,)), ops.reshape(weights, (-1,)))
