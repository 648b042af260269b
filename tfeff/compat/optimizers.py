"""Uses of private names of Keras' optimizers."""

from typing import Any

import keras


class OpenAdamW(keras.optimizers.AdamW):
    """Keras' AdamW with public names for the overridden steps of an update.

    Keras' optimizers exclude variables from weight decay only by name
    (`exclude_from_weight_decay`, before `build`), decay all by one rate, and clip the
    gradients of each replica (keras-team/keras#19246 describes their loop).
    """

    def variable_key(self, variable) -> str:
        """A unique key of the variable."""
        return self._var_key(variable)

    def second_moment(self, variable) -> keras.Variable:
        """Adam's mean of the square of a variable's gradient."""
        return self._velocities[self._get_variable_index(variable)]

    def original(self, variable) -> keras.Variable:
        """The weight that a variable is, or of which it is a replica's copy.

        Of another variable than those of `build` it is the variable itself.
        """
        index = self._trainable_variables_indices.get(self._var_key(variable))
        return variable if index is None else self._trainable_variables[index]

    def decays(self, variable) -> bool:
        """Whether weight decay applies to a variable."""
        return super()._use_weight_decay(variable)

    def clip(self, gradients):
        """The clipped gradients of a replica."""
        return super()._clip_gradients(gradients)

    def overwriting(self, value):
        """A new value that comes in place of a variable's gradient, of a replica."""
        return value

    def sum_over_replicas(self, gradients_and_variables):
        """Pairs of the global batch's gradient and its variable, on TensorFlow."""
        return super()._all_reduce_sum_gradients(gradients_and_variables)

    def decay(self, variables):
        """Applies the weight decay to the variables."""
        super()._apply_weight_decay(variables)

    def _use_weight_decay(self, variable):
        return self.decays(variable)

    def _clip_gradients(self, grads):
        return self.clip(grads)

    def _overwrite_variables_directly_with_gradients(self, grads, vars):
        values = [
            self.overwriting(g) if self._overwrite_variable_with_gradient(v) else g
            for g, v in zip(grads, vars, strict=True)
        ]
        return super()._overwrite_variables_directly_with_gradients(values, vars)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return self.sum_over_replicas(grads_and_vars)

    def _apply_weight_decay(self, variables):
        self.decay(variables)


def trained_variables(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """The variables that an optimizer was built for, in its order."""
    return optimizer._trainable_variables


def rate_of(optimizer: keras.optimizers.Optimizer) -> Any:
    """The learning rate that an optimizer was given: a schedule, or a variable.

    Keras' public `learning_rate` is the number of the present step.
    """
    return optimizer._learning_rate


def slots(optimizer: keras.optimizers.Optimizer) -> dict[str, list]:
    """The optimizer's lists with one variable for each weight, by attribute.

    Keras has no public name for them.
    """
    size = len(optimizer._trainable_variables)
    return {
        name: value
        for name, value in vars(optimizer).items()
        if name not in ("_variables", "_trainable_variables")
        and isinstance(value, list)
        and len(value) == size
        and all(v is None or isinstance(v, keras.Variable) for v in value)
    }
