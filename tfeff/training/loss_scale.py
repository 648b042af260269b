from typing import Any

import keras
from keras import ops

from tfeff.training.replicas import sum_over_replicas


def unscaled(optimizer: Any) -> Any:
    """The optimizer within one that scales the loss; any other one itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


@keras.saving.register_keras_serializable(package="tfeff")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' loss scaling, where all replicas must have finite gradients.

    Keras looks at the gradients of one replica, as if they were summed already. They
    are summed after that: where another replica overflows, all weights would become
    infinite.
    """

    def check_finite(self, grads):
        overflows = ops.logical_not(super().check_finite(grads))
        return ops.equal(sum_over_replicas(ops.cast(overflows, "float32")), 0.0)
