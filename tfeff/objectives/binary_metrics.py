"""Keras' metrics of binary classification, computed from logits `[..., 1]`."""

import keras
from keras import ops

from tfeff.training.target_metrics import OverTargets


class _OfLogits:
    """Gives the sigmoid of the logits to a metric that expects probabilities."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        probabilities = ops.sigmoid(ops.cast(y_pred, "float32"))
        return super().update_state(y_true, probabilities, sample_weight)


@keras.saving.register_keras_serializable(package="tfeff")
class CrossEntropy(OverTargets, keras.metrics.BinaryCrossentropy):
    """`keras.metrics.BinaryCrossentropy` of single targets."""


@keras.saving.register_keras_serializable(package="tfeff")
class Accuracy(_OfLogits, OverTargets, keras.metrics.BinaryAccuracy):
    """`keras.metrics.BinaryAccuracy` of logits."""


@keras.saving.register_keras_serializable(package="tfeff")
class Precision(_OfLogits, keras.metrics.Precision):
    """`keras.metrics.Precision` of logits."""


@keras.saving.register_keras_serializable(package="tfeff")
class Recall(_OfLogits, keras.metrics.Recall):
    """`keras.metrics.Recall` of logits."""


@keras.saving.register_keras_serializable(package="tfeff")
class AUC(_OfLogits, keras.metrics.AUC):
    """`keras.metrics.AUC` of logits, at 200 thresholds of the probability.

    It is an approximation: close to 0.001 for a trained detector, but with an error of
    several hundredths where all probabilities lie close together, as before training.
    """


def binary_metrics(loss: str) -> list[keras.metrics.Metric]:
    """Cross-entropy (named `loss`), accuracy, precision, recall and AUC."""
    return [
        CrossEntropy(from_logits=True, name=loss),
        Accuracy(name="accuracy"),
        Precision(name="precision"),
        Recall(name="recall"),
        AUC(name="auc"),
    ]
