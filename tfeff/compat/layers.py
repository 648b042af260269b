"""Uses of private names of Keras' layers."""

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
from keras.src.backend import (
    AutocastScope,
    compute_output_spec,
    get_autocast_scope,
    get_keras_mask,
    get_stateless_scope,
    in_symbolic_scope,
)


def sublayers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """The layer and all layers within it.

    Keras' public `layers` returns the first level alone.
    """
    return layer._flatten_layers()


def direct_sublayers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """The layers within it, but for those within these, in the order of their making.

    Keras has no public name of them but for models.
    """
    return layer._flatten_layers(include_self=False, recursive=False)


def output_spec(call: Callable, *args: Any) -> Any:
    """What `call` returns for symbolic tensors.

    A layer's own `compute_output_spec` puts errors of its call into a longer text.
    """
    return compute_output_spec(call, *args)


_SYMBOLIC_CALL = contextvars.ContextVar("symbolic_call", default=False)


def policy_of(layer: keras.layers.Layer) -> keras.dtype_policies.DTypePolicy:
    """The policy by which a layer computes, also where a map has one for it."""
    policy = layer._dtype_policy
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy[layer.path] if layer.path else policy.default_policy
    return policy


@contextlib.contextmanager
def other_policies(
    policies: Iterable[tuple[keras.layers.Layer, keras.dtype_policies.DTypePolicy]],
) -> Iterator[None]:
    """A context in which layers compute by other policies.

    Keras' public setter writes into a map of policies, which layers share.

    Args:
        policies: pairs of a layer and its policy, each layer once.
    """
    policies = list(policies)
    before = [(layer, layer._dtype_policy) for layer, _ in policies]
    try:
        for layer, policy in policies:
            layer._dtype_policy = policy
        yield
    finally:
        for layer, policy in before:
            layer._dtype_policy = policy


def keras_mask(tensor):
    """Keras' mask of a tensor, such as `Embedding(mask_zero=True)` gives it, or `None`.

    Keras hands it to a layer's argument `mask` only if it gets one tensor alone.
    """
    return get_keras_mask(tensor)


@contextlib.contextmanager
def symbolic_call() -> Iterator[None]:
    """A context in which a call of a layer with `keras.KerasTensor`s is traced."""
    token = _SYMBOLIC_CALL.set(True)
    try:
        yield
    finally:
        _SYMBOLIC_CALL.reset(token)


def rebuilds_model() -> bool:
    """Whether Keras traces the call of a layer or model of the user, to build it.

    The file of such a model has the shapes of its inputs, not their dtypes: all are
    floats when it is loaded. If the call raised, the layers after that would keep their
    initial weights.
    """
    return in_symbolic_scope() and not _SYMBOLIC_CALL.get()


def present_autocast() -> AutocastScope:
    """A context, for later, in which weights are cast as they are now."""
    scope = get_autocast_scope()
    return AutocastScope(None if scope is None else scope.dtype)


def has_given_weights(layer: keras.layers.Layer) -> bool:
    """Whether a call's weights are not the layer's own, as within `stateless_call`."""
    scope = get_stateless_scope()
    return scope is not None and any(
        scope.get_current_value(weight) is not None for weight in layer.weights
    )


class StaysFrozen:
    """Mixin of layers and models: those that are not trainable freeze what they have.

    Keras applies the `trainable=False` of a constructor, and so of a configuration, to
    weights, but not to layers that are made or tracked later.
    """

    trainable: bool

    def _post_build(self):
        super()._post_build()
        self.freeze_parts()

    def freeze_parts(self) -> None:
        """Freezes all layers within if this one is not trainable, once it is built."""
        if not self.trainable:
            # TensorFlow ignores an assignment of the value that an attribute has.
            for layer in sublayers(self):
                layer.trainable = False


class LeavesShared:
    """Mixin of layers that use layers of others: `trainable` leaves these as they are.

    Keras sets it on every layer within.
    """

    _trainable: bool
    _trainable_variables: list
    _layers: list

    def shared_layers(self) -> list[keras.layers.Layer]:
        """The layers within that belong to others."""
        raise NotImplementedError

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for variable in self._trainable_variables:
            variable.trainable = self._trainable
        shared = {id(layer) for layer in self.shared_layers()}
        for layer in self._layers:
            if id(layer) not in shared:
                layer.trainable = self._trainable


class DrawnSeed(keras.random.SeedGenerator):
    """A seed generator that begins with a seed which was drawn earlier.

    It has no variable, as it does not call the constructor of Keras' class.
    """

    def __init__(self, seed):
        self.drawn = seed
        self.count = 0

    def next(self, ordered=True):
        count, self.count = self.count, self.count + 1
        if not count:
            return self.drawn
        # Far from the seeds of other layers, and of this one's next steps.
        offset = [count * 0x9E3779B9 % 2**31, 0]
        return self.drawn + keras.ops.convert_to_tensor(offset, self.drawn.dtype)


def is_seed_state(variable: keras.Variable) -> bool:
    """Whether a variable is the state of a generator of random numbers."""
    return variable.path.endswith("seed_generator_state")


def seed_states(model: keras.Model) -> list[keras.Variable]:
    """The states of a model's random generators, which Keras does not save."""
    return [variable for variable in model.variables if is_seed_state(variable)]


def name_seed_by_layer(layer: Any) -> None:
    """Gives the state of a layer's generator a path by the name of the layer.

    Keras' has a number, of how many generators were made before, by which PyTorch's
    `state_dict` of one model would not load into another.

    Args:
        layer: a new layer with a `seed_generator`.
    """
    generator = layer.seed_generator
    state = generator.state
    state._path = state.path.replace(f"{generator.name}/", f"{layer.name}/")
    if keras.backend.backend() == "torch" and layer.built:
        layer._track_variables()  # By its new name.


def frozen_kernel(layer: keras.layers.Layer) -> keras.Variable:
    """The kernel of a layer without its adapter, which Keras' `kernel` adds."""
    return layer._kernel


def quantization_of(layer: keras.layers.Layer) -> Any:
    """How a quantized layer was quantized, for JSON; its mode before Keras 3.13."""
    config = getattr(layer, "quantization_config", None)
    if config is None:
        return layer.quantization_mode
    return keras.saving.serialize_keras_object(config)


def quantize_as(layer: keras.layers.Layer, saved: Any) -> None:
    """Quantizes a layer as `quantization_of` has it, of this or an earlier version."""
    if isinstance(saved, str):
        layer.quantize(saved)
    else:
        layer.quantize(config=keras.saving.deserialize_keras_object(saved))
