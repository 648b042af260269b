"""Quantized and frozen layers of a model, as entries of its configuration.

Layers may be quantized, and parts of a model may be frozen. Each model's configuration
has this of its own layers, and those of models inside it have theirs.
"""

from collections.abc import Callable

import keras

from tfeff.compat.layers import quantization_of, quantize_as
from tfeff.encoders.adapters import adapted_layers
from tfeff.encoders.layer_names import layer_names

QUANTIZED, FROZEN = "quantized_layers", "frozen_layers"


def layer_states(model: keras.Model) -> dict:
    """The part of a model's configuration about what its layers have become.

    Args:
        model: the model.

    Returns:
        Dict of `quantized_layers`, the serialized `keras.quantizers.QuantizationConfig`
        by the layer's name, as of `layer_names`, or its mode where Keras, before 3.13,
        has no such class, and of `frozen_layers`, the names of layers that are not
        trainable in a model of which others are, even if the model itself is not, and
        whose own layers have no adapters; without those that are empty.
    """
    layers = layer_names(model)
    quantized = {
        name: quantization_of(layer)
        for name, layer in layers.items()
        if layer.quantization_mode is not None
        # A map of the policies of all layers is in the model's dtype already.
        and not isinstance(layer.dtype_policy, keras.dtype_policies.DTypePolicyMap)
    }
    found: dict = {QUANTIZED: quantized} if quantized else {}
    # Layers with adapters are saved without them, to be trained as they are.
    adapted = {id(layer) for layer in adapted_layers(model)}
    has_adapters = any(id(layer) in adapted for layer in layers.values())
    in_part = model.trainable or any(weight.trainable for weight in model.weights)
    if in_part and not has_adapters and (frozen := _frozen(layers)):
        found[FROZEN] = frozen
    return found


def make_with_states(make: Callable[..., keras.Model], config: dict) -> keras.Model:
    """A model from its configuration, without its weights.

    Args:
        make: the model's class, or a function that makes one.
        config: its arguments, with those of `layer_states` among them.
    """
    config = dict(config)
    quantized, frozen = config.pop(QUANTIZED, {}), config.pop(FROZEN, ())
    model = make(**config)
    layers = layer_names(model)
    if frozen and not model.trainable:
        for layer in layers.values():
            layer.trainable = True
    for name, layer in layers.items():
        # Tables that two encoders share may be quantized already.
        if name in quantized and layer.quantization_mode is None:
            quantize_as(layer, quantized[name])
        if name in frozen:
            layer.trainable = False
    return model


def _frozen(layers):
    """The names of frozen layers, without those below them."""
    names = sorted(n for n, x in layers.items() if x.weights and not x.trainable)
    tops: list[str] = []
    for name in names:
        if not any(name.startswith(f"{top}/") for top in tops):
            tops.append(name)
    return tops
