"""All uses of private names of Keras, KerasHub and PyTorch.

`tests/test_compat.py` shows on plain Keras why each workaround is needed: if a test
there fails, its workaround can be removed. This module imports Keras alone.
"""

import contextlib
import contextvars
import weakref
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import keras
from keras.src.backend import (
    AutocastScope,
    get_autocast_scope,
    get_keras_mask,
    get_stateless_scope,
    in_symbolic_scope,
)
from keras.src.backend.common import global_state
from keras.src.saving.saving_lib import H5IOStore, get_attr_skipset


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


def saves_model() -> bool:
    """Whether Keras saves a whole model: then configurations mark shared objects."""
    configs = global_state.get_global_attribute("shared_objects/id_to_config_map")
    return configs is not None


def shared_config(layer: keras.layers.Layer) -> dict:
    """The layer's configuration, with Keras' mark of a shared object in a saved model.

    Keras sets the mark on the second configuration of an object and, later, on the
    first, of which a functional model has made a copy by then. So layers that share one
    layer also share it in a loaded model. Elsewhere Keras does not read the mark, and
    configurations of equal layers would differ by it.
    """
    config = keras.layers.serialize(layer)
    if saves_model():
        config["shared_object_id"] = id(layer)
    return config


class SavedReference:
    """A layer that another one shares weights with, for configurations of models.

    Neither layer is within the other, and only the configuration of a whole model that
    is saved names it: there the loaded one shares the weights, too.

    Args:
        layer: the layer, or `None`.
    """

    def __init__(self, layer: keras.layers.Layer | None):
        # A strong reference would make its weights those of the other layer.
        self._layer = (lambda: None) if layer is None else weakref.ref(layer)

    def config(self, name: str) -> dict:
        """The entry of a configuration, `{}` where it names no other layer."""
        layer = self._layer()
        if layer is None or not saves_model():
            return {}
        return {name: shared_config(layer)}

    @staticmethod
    def revived(kind: type, config: dict, name: str) -> dict:
        """The configuration with a layer of this kind in place of its own one."""
        value = config.get(name)
        is_one = isinstance(value, dict) and (
            value.get("registered_name") == keras.saving.get_registered_name(kind)
        )
        if not is_one:
            return config
        return {**config, name: keras.saving.deserialize_keras_object(value)}


def untracked(value):
    """A copy of nested dicts, lists, tuples and arrays, in plain containers.

    A layer keeps containers as Keras' tracked ones, and a configuration that had these
    would change the layer with it. Arrays are lists then, as are those that Keras saved
    in a configuration, which no layer reads.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        if value.get("class_name") == "__numpy__":
            return value["config"]["value"]
        return {name: untracked(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        kind = tuple if isinstance(value, tuple) else list
        return kind(untracked(below) for below in value)
    return value


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

    def decays(self, variable) -> bool:
        """Whether weight decay applies to a variable."""
        return super()._use_weight_decay(variable)

    def clip(self, gradients):
        """The clipped gradients of a replica."""
        return super()._clip_gradients(gradients)

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

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return self.sum_over_replicas(grads_and_vars)

    def _apply_weight_decay(self, variables):
        self.decay(variables)


def trained_variables(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """The variables that an optimizer was built for, in its order."""
    return optimizer._trainable_variables


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


def num_saved(archive: zipfile.ZipFile) -> int:
    """The number of variables of the optimizer in the archive of a saved model.

    Keras only warns where it is not that of the loaded one, and skips them.
    """
    store = H5IOStore("model.weights.h5", archive=archive)
    with contextlib.closing(store):
        return len(store.get("optimizer").keys())


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


def is_functional(config: dict) -> bool:
    """Whether a model's configuration is that of Keras' functional API."""
    return "input_layers" in config


def is_seed_state(variable: keras.Variable) -> bool:
    """Whether a variable is the state of a generator of random numbers."""
    return variable.path.endswith("seed_generator_state")


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


class BuiltByOneReplica:
    """Mixin of models: the first batch of any replica builds the model.

    Keras takes the mean of the replicas' first batches for their shapes, which fails
    if a worker has one replica of several (keras-team/keras#20585).
    """

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Without a strategy Keras builds nothing here: a batch would be taken for
        # nothing, which data that can be read once would not give again.
        if self._distribute_strategy is None:
            return
        for _, _, batches in iterator or ():
            data_batch = keras.tree.map_structure(
                lambda x: self.distribute_strategy.experimental_local_results(x)[0],
                next(batches),
            )
            break
        super()._maybe_symbolic_build(data_batch=data_batch)


def build_metrics(model: keras.Model, batch: Any) -> None:
    """Makes the variables of a model's metrics, which Keras makes in the first step.

    Args:
        model: a compiled model.
        batch: a batch, or what it is made of: the `element_spec` of a data set.
    """
    model._symbolic_build(data_batch=batch)


class OpenWordPiece:
    """Mixin of KerasHub's WordPiece tokenizers, with public names for their steps.

    KerasHub calls them while it sets the vocabulary, in graphs, and outside of these.
    """

    _token_to_id_map: dict[str, int]

    def make_fast_word_piece(self) -> Any:
        """tensorflow-text's tokenizer of words, which graphs use."""
        raise NotImplementedError

    def pieces_of_word(self, word: str) -> list[str]:
        """The pieces of a word, outside of graphs."""
        raise NotImplementedError

    def has_piece(self, piece: str) -> bool:
        """Whether the vocabulary has a piece."""
        return piece in self._token_to_id_map

    def set_vocabulary(self, vocabulary: Any) -> None:
        super().set_vocabulary(vocabulary)  # type: ignore[misc]
        # Earlier versions of KerasHub have no such step: they take their own.
        if vocabulary is not None and not hasattr(super(), "_set_vocabulary_tf"):
            self._set_vocabulary_tf()

    def _set_vocabulary_tf(self):
        self._fast_word_piece = self.make_fast_word_piece()

    def _tokenize_word_python(self, word):
        return self.pieces_of_word(word)


def add_special_token(tokenizer, token: str, name: str) -> None:
    """Declares a special token of a KerasHub tokenizer, as its own classes do."""
    tokenizer._add_special_token(token, name)


def find_special_tokens(tokenizer) -> None:
    """Sets the ids of a KerasHub tokenizer's special tokens by its vocabulary.

    Raises:
        ValueError: if the vocabulary lacks one.
    """
    tokenizer._update_special_token_ids()


def sentence_piece(tokenizer):
    """tensorflow-text's tokenizer within KerasHub's, which also returns offsets."""
    return tokenizer._sentence_piece


def has_vocabulary(tokenizer) -> bool:
    """Whether a SentencePiece tokenizer of KerasHub has its vocabulary out of kernels.

    They have it so since KerasHub 0.30.
    """
    return hasattr(tokenizer, "_sentence_piece_spm")


def frozen_kernel(layer: keras.layers.Layer) -> keras.Variable:
    """The kernel of a layer without its adapter, which Keras' `kernel` adds."""
    return layer._kernel


class LengthOfPreset:
    """Mixin of KerasHub's preprocessors: rows as long as a preset's encoder reads.

    KerasHub makes rows of 512 tokens of any preset that has no preprocessor of its own.
    """

    @classmethod
    def _add_missing_kwargs(cls, loader, kwargs):
        length = loader.config["config"]["max_sequence_length"]
        kwargs = {"sequence_length": length, **kwargs}
        return super()._add_missing_kwargs(loader, kwargs)


class ReadsCopies(keras.StatelessScope):
    """In a thread, the variables of a model have the values that were copied of them.

    Keras makes an optimizer to compare with whenever it saves one, which no scope
    without state allows. It would look for what it found out the last time, if it kept
    that under the same name.

    Args:
        copies: pairs of a variable and its value, an array.
    """

    def __init__(self, copies: Iterable[tuple[keras.Variable, Any]]):
        super().__init__(copies, initialize_variables=False)
        global_state.set_global_attribute(
            "saving_attr_skiplist_Optimizer", get_attr_skipset("Optimizer")
        )

    def get_current_value(self, variable: keras.Variable) -> Any:
        """The copy. Without one the value would be that of another moment."""
        value = super().get_current_value(variable)
        if value is None:
            raise ValueError(f"there is no copy of the variable {variable.path}")
        return value


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
