"""Doubles a model's depth by copying its layers, for progressive stacking."""

import keras
import numpy as np

from tfeff.compat.layers import is_seed_state, sublayers
from tfeff.compat.optimizers import rate_of, slots, trained_variables
from tfeff.compat.saving import is_functional
from tfeff.encoders import Encoder
from tfeff.encoders.layer_states import FROZEN, layer_states
from tfeff.training.loss_scale import unscaled
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import AdamW
from tfeff.training.schedules import ResumedSchedule
from tfeff.utils.checks import check_choice

OPTIMIZERS = ("copy", "reset")
# A large odd stride, so that derived seeds do not collide.
_SEED_STEP = 0x9E3779B9


def double_depth(
    model: DistributedModel | Encoder,
    optimizer: str | keras.optimizers.Optimizer = "copy",
) -> DistributedModel | Encoder:
    """Doubles the depth: layer `i` of `L` becomes layers `i` and `i + L`, copied.

        blocks (b_0, …, b_{L-1})  →  (b_0, …, b_{L-1}, b_0, …, b_{L-1})

    Every weight of a new block equals its source bit for bit; embedding, heads and
    tables that all layers share are kept. What depends on the layer's index follows the
    new one: a partition becomes that of the new layer and depth. With
    `sharing_group_size`, whole groups are copied; a list of attentions is repeated. All
    encoders of a model grow, also the generator of replaced tokens.

    The result depends on the given model alone: dropout of a kept block goes on as it
    would have, and that of a copy gets seeds that follow from its source's.

    Args:
        model: an encoder, or a model of tfeff around one, such as an objective.
            It is left as it is. Call in the scope of its strategy.
        optimizer: for a compiled model, `"copy"`: the moments of block `i` go with it
            to `i + L`, and the number of steps, and with it the rate, goes on;
            `"reset"`: the same optimizer with new moments, whose rate goes on, too; or
            another optimizer.

    Returns:
        A new model of the same class, compiled in the same way.

    Raises:
        TypeError: if `model` is not such a model, or `optimizer` is of another type.
        ValueError: if `optimizer` is unknown; if all layers share all weights, so
            that there is nothing to copy; if an encoder is frozen, like the teacher of
            a distillation; or if there are adapters or quantized weights.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = tfeff.objectives.MaskedLM(encoder)
    >>> double_depth(model).encoder.num_layers == 2 * encoder.num_layers
    True

    Reference:
        Gong et al., "Efficient training of BERT by progressively stacking", Figure 3
        and algorithm 1.
    """
    encoders = check_grows(model)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        if not isinstance(optimizer, str):
            raise TypeError(
                "`optimizer` must be 'copy', 'reset' or a Keras optimizer. "
                f"Received: optimizer={optimizer!r:.80}"
            )
        check_choice("optimizer", optimizer, OPTIMIZERS)
    grown = type(model).from_config(_deeper(model.get_config()))
    sources = _copy_weights(model, encoders, grown, _encoders(grown))
    if getattr(model, "compiled", False):
        compilation = dict(model.get_compile_config())
        if not isinstance(optimizer, str):
            compilation["optimizer"] = keras.saving.serialize_keras_object(optimizer)
            scales = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
            compilation["auto_scale_loss"] = scales
        grown.compile_from_config(compilation)
        if grown.optimizer is None:
            return grown
        if not grown.optimizer.built:
            grown.optimizer.build(grown.trainable_variables)
        if optimizer == "copy" and model.optimizer.built:
            _copy_optimizer(model.optimizer, grown.optimizer, sources)
        old = unscaled(model.optimizer if isinstance(optimizer, str) else optimizer)
        new = unscaled(grown.optimizer)
        if optimizer == "reset":
            _resume_schedule(old, new)
        if isinstance(new, AdamW):
            new.exclude_copies(old, model.trainable_variables, sources)
    return grown


def check_grows(model: keras.Model) -> list[Encoder]:
    """The encoders of a model that `double_depth` takes; raises of another model."""
    encoders = _encoders(model)
    _check(model, encoders)
    return encoders


def _encoders(model):
    if not isinstance(model, (Encoder, DistributedModel)):
        raise TypeError(
            "`model` must be an encoder, or a model of tfeff around one. "
            f"Received: model={model!r:.80}"
        )
    return [part for part in sublayers(model) if isinstance(part, Encoder)]


def _check(model, encoders):
    # A model of Keras' functional API would be made again from its graph of layers.
    if not encoders or is_functional(model.get_config()):
        raise TypeError(
            "`model` must be an encoder, or a model that is made from its encoder. "
            f"Received: model={model!r}"
        )
    for encoder in encoders:
        if encoder.sharing == "all" and encoder.sharing_group_size is None:
            raise ValueError(
                "`model` must have weights of its own in each layer, or in groups of "
                "layers (`sharing_group_size`): with one set of weights for all, depth "
                "is no more than a number, and there is nothing to copy. "
                f"Received: encoder.sharing={encoder.sharing!r}"
            )
        frozen = layer_states(encoder).get(FROZEN)
        if frozen or not encoder.trainable:
            parts = ", ".join(frozen or [f"the encoder {encoder.name!r}"])
            raise ValueError(
                "`model` must be trained as a whole: what is frozen cannot grow. "
                f"Received: trainable=False of {parts}"
            )


def _deeper(value):
    """A configuration in which every encoder has twice the depth."""
    if isinstance(value, (list, tuple)):
        return type(value)(_deeper(item) for item in value)
    if not isinstance(value, dict):
        return value
    value = {name: _deeper(item) for name, item in value.items()}
    if {"num_layers", "attention", "sharing"} <= set(value):
        value["num_layers"] *= 2
        attention = keras.saving.deserialize_keras_object(value["attention"])
        if isinstance(attention, (list, tuple)):
            value["attention"] = [*attention, *attention]
    return value


def _copy_weights(model, encoders, grown, grown_encoders):
    """Assigns every weight and seed; returns the source of each, by its identity."""
    sources = {}

    def copy(old, new, shift=0):
        if [v.shape for v in old] != [v.shape for v in new]:
            raise ValueError(
                "`model` must have the weights that its configuration says, of shapes "
                "that do not depend on depth, without adapters or quantization"
            )
        for source, variable in zip(old, new):
            if id(variable) in sources:  # One that several layers share.
                continue
            sources[id(variable)] = source
            value = keras.ops.convert_to_numpy(source.value)
            if shift and is_seed_state(source):
                value = value.copy()
                value[0] += np.array(shift * _SEED_STEP).astype(value.dtype)
            variable.assign(value)

    for old, new in zip(encoders, grown_encoders, strict=True):
        copy(old.embedding.variables, new.embedding.variables)
        for index, block in enumerate(new.blocks):
            depth = old.num_layers
            source = old.blocks[index % depth]
            copy(source.variables, block.variables, depth * (index // depth))
    copy(_outside(model, encoders), _outside(grown, grown_encoders))
    return sources


def _outside(model, encoders):
    """The variables of a model that are not its encoders'."""
    inside = {id(v) for encoder in encoders for v in encoder.variables}
    return [v for v in model.variables if id(v) not in inside]


def _copy_optimizer(old, new, sources):
    """Assigns the state of an optimizer: slots by their weights, the rest in order."""
    new_slots, old_slots = slots(unscaled(new)), slots(unscaled(old))
    indices = {id(v): i for i, v in enumerate(trained_variables(unscaled(old)))}
    for name, variables in new_slots.items():
        for weight, slot in zip(trained_variables(unscaled(new)), variables):
            index = indices.get(id(sources[id(weight)]))
            if slot is not None and index is not None:
                slot.assign(old_slots[name][index])
    for source, variable in zip(_others(old, old_slots), _others(new, new_slots)):
        variable.assign(source)


def _resume_schedule(old, new):
    """Gives an optimizer, as new, the rates behind the steps of the old one."""
    schedule = rate_of(old)
    if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        steps = int(keras.ops.convert_to_numpy(old.iterations))
        new.learning_rate = ResumedSchedule(schedule, steps)


def _others(optimizer, slots_by_name):
    taken = {id(v) for variables in slots_by_name.values() for v in variables}
    return [v for v in optimizer.variables if id(v) not in taken]
