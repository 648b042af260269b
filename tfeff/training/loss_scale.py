from typing import Any

import keras
from keras import ops

from tfeff.training.replicas import sum_over_replicas


def unscaled(optimizer: Any) -> Any:
    """The optimizer within one that scales the loss; any other one itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


@keras.saving.register_keras_serializable(package="tfeff")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' loss scaling, which skips a step where any replica overflows.

    Keras checks the gradients of one replica alone, before they are summed: if another
    replica overflowed, all weights would become infinite.
    """

    def check_finite(self, grads):
        overflows = ops.logical_not(super().check_finite(grads))
        return ops.equal(sum_over_replicas(ops.cast(overflows, "float32")), 0.0)

    def finalize_variable_values(self, var_list):
        # Where every step has overflowed, averages of weights are zeros still.
        if self.inner_optimizer.iterations.numpy() > 0:
            super().finalize_variable_values(var_list)
