"""Uses of private names of Keras' models and their training."""

import contextlib
from collections import Counter
from types import ModuleType
from typing import Any

import keras
import numpy as np

from tfeff.compat.layers import output_spec, sublayers


class TellsAllWeights:
    """Mixin of models: PyTorch knows all weights, for `parameters` and `state_dict`.

    Keras tells PyTorch of one weight of each path alone: of a generator and a
    discriminator, whose blocks have the same names, only one's. KerasHub's backbones
    hide from it what they know when they are made, and later adapters are missing.
    """

    variables: list
    trainable_weights: list
    _torch_params: Any

    def tell_weights(self):
        """Tells PyTorch of the weights that there are now."""
        super()._post_build()

    def _track_variables(self):  # Keras calls it on PyTorch alone.
        super()._track_variables()
        earlier = Counter()
        for variable in self.variables:
            path = variable.path
            name = f"{path}#{earlier[path]}" if earlier[path] else path
            self._torch_params[name] = variable.value
            earlier[path] += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all weights; Keras on PyTorch calls it each step."""
        for weight in self.trainable_weights:
            weight.value.grad = None


def report_loss_by(model: keras.Model, metric: keras.metrics.Mean) -> None:
    """Lets a compiled model report its loss by another mean than Keras' own."""
    # As Keras does it, without tracking it among the metrics of the layers.
    object.__setattr__(model, "_loss_tracker", metric)


def transforms_calls(torch: ModuleType) -> bool:
    """Whether PyTorch transforms the present call, as by `torch.func.vmap`."""
    return torch._C._are_functorch_transforms_active()


def input_structure(model: keras.Model):
    """The inputs of a functional model as it was made of them, `keras.KerasTensor`s.

    None of a model that has a `call` alone. Keras' public `input` does not tell them
    apart: of such a model it is what it was first called with.
    """
    # A Sequential model is a functional one inside, once it knows its inputs.
    return getattr(getattr(model, "_functional", None) or model, "_inputs_struct", None)


def frozen_alone(model: keras.Model) -> list[keras.Variable]:
    """The weights that were frozen while the layer that has them trains.

    Keras' public lists do not tell them apart from those that were made not to train.
    """
    return [
        weight
        for layer in sublayers(model)
        if layer.trainable
        for weight in layer._trainable_variables
        if not weight.trainable
    ]


class PutsValuesBack:
    """A mixin of models whose weights outlive an error in a first step on JAX.

    Keras' trainer on JAX takes the values of all variables out before a step, and has
    them again after one that was whole: where tracing the first one fails, the weights
    are lost.
    """

    def _purge_model_variables(self, **kinds):
        model: Any = self
        optimizer = getattr(model, "optimizer", None)
        variables = [
            *model.variables,
            *(() if optimizer is None else optimizer.variables),
            *model.metrics_variables,
        ]
        # Keras would take an attribute for weights of the model.
        vars(self)["_taken"] = [(x, x._value) for x in variables]
        super()._purge_model_variables(**kinds)

    def put_values_back(self) -> None:
        """Gives variables the values of the last whole step, or those of before."""
        if taken := vars(self).pop("_taken", None):
            model: Any = self
            model.jax_state_sync()
            model._jax_state = None
            for variable, value in taken:
                if variable._value is None:
                    variable._value = value

    def forget_values(self) -> None:
        """Frees the values of before."""
        vars(self).pop("_taken", None)


class BuiltByShapes:
    """Mixin of models: the shapes that `prepare_batch` makes of batches build them.

    Keras takes those of the data. On replicas it reads the first batch: data that can
    be read once do not give it again, and a data set that shuffles has the order of its
    second epoch then. And it takes the mean of the replicas' batches, which fails if a
    worker has one replica of several (keras-team/keras#20585). Here what the data set
    tells of a replica's batches is enough.
    """

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Keras on TensorFlow calls it.
        if self._distribute_strategy is None or self._is_whole():
            return
        if iterator is not None:
            data_batch = iterator._distributed_dataset.element_spec
        super()._maybe_symbolic_build(data_batch=data_batch)

    def _symbolic_build(self, iterator=None, data_batch=None):
        # Keras on JAX and PyTorch calls it, and what is above.
        if self._is_whole():
            return super()._symbolic_build(iterator, data_batch)
        if data_batch is None:
            _, _, data = next(iter(iterator))
            data_batch = data[0] if isinstance(data, (list, tuple)) else next(data)
        batch = keras.tree.map_structure(_symbolic, data_batch)
        try:
            prepared = output_spec(self.prepare_batch, batch)
        except Exception:
            # It may read values, or tensors that are not dense. If the batch as it is
            # builds nothing either, the first error is the one to show.
            with contextlib.suppress(Exception):
                return super()._symbolic_build(data_batch=batch)
            raise
        return super()._symbolic_build(data_batch=prepared)

    def _is_whole(self):
        """Whether nothing is left to be built."""
        compiled = (self._compile_metrics, self._compile_loss, self.optimizer)
        parts = (*self._flatten_layers(), *(x for x in compiled if x is not None))
        return all(part.built for part in parts)


def _symbolic(value):
    """The shape and dtype of a part of a batch, or of what a data set tells of it."""
    if is_none(value):
        return None
    value = np.asarray(value) if np.isscalar(value) else _of_a_replica(value)
    if getattr(value.shape, "rank", 0) is None:
        raise ValueError(
            "Batches must have a known number of axes under a strategy, and where a "
            "training goes on within an epoch, as by `tf.ensure_shape` in the data "
            f"set. Received: {value}"
        )
    dtype = keras.backend.standardize_dtype(value.dtype)
    return keras.KerasTensor(value.shape, dtype)


def has_none(batch: Any) -> bool:
    """Whether a part of a batch, or of what a data set tells of its batches, is `None`.

    A data set tells of it by types of its own, which are not public.
    """
    return any(map(is_none, keras.tree.flatten(batch)))


def is_none(value: Any) -> bool:
    """Whether one part of a batch, or of what a data set tells, is `None`."""
    return not (np.isscalar(value) or hasattr(_of_a_replica(value), "shape"))


def _of_a_replica(value):
    """The specification of one replica's part, where each replica has one."""
    return getattr(value, "_value_specs", (value,))[0]


def build_metrics(model: keras.Model, batch: Any) -> None:
    """Makes the variables of a model's metrics, which Keras makes in the first step.

    Args:
        model: a compiled model.
        batch: a batch, or what it is made of: the `element_spec` of a data set.
    """
    model._symbolic_build(data_batch=keras.tree.map_structure(_symbolic, batch))
