"""Quantized and frozen layers of a model, as entries of its configuration.

Layers may be quantized, and parts of a model may be frozen. Each model's configuration
has this of its own layers, and those of models inside it have theirs.
"""

from collections.abc import Callable, Iterator

import keras

from tfeff.compat import sublayers
from tfeff.encoders.adapters import adapted_layers

QUANTIZED, FROZEN = "quantized_layers", "frozen_layers"


def layer_states(model: keras.Model) -> dict:
    """The part of a model's configuration about what its layers have become.

    Args:
        model: a model of tfeff.

    Returns:
        Dict of `quantized_layers`, the serialized `keras.quantizers.QuantizationConfig`
        by the layer's path, and of `frozen_layers`, the paths of layers that are not
        trainable in a model of which others are, even if the model itself is not, and
        whose own layers have no adapters; without those that are empty.
    """
    quantized = {
        layer.path: keras.saving.serialize_keras_object(layer.quantization_config)
        for layer in _own_layers(model)
        if layer.quantization_mode is not None
        # A map of the policies of all layers is in the model's dtype already.
        and not isinstance(layer.dtype_policy, keras.dtype_policies.DTypePolicyMap)
    }
    found: dict = {QUANTIZED: quantized} if quantized else {}
    # Layers with adapters are saved without them, to be trained as they are.
    adapted = {id(layer) for layer in adapted_layers(model)}
    has_adapters = any(id(layer) in adapted for layer in _own_layers(model))
    in_part = model.trainable or any(weight.trainable for weight in model.weights)
    if in_part and not has_adapters and (frozen := _frozen(model)):
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
    if frozen and not model.trainable:
        for layer in _own_layers(model):
            layer.trainable = True
    for layer in _own_layers(model):
        # Tables that two encoders share may be quantized already.
        if layer.path in quantized and layer.quantization_mode is None:
            layer.quantize(
                config=keras.saving.deserialize_keras_object(quantized[layer.path])
            )
        if layer.path in frozen:
            layer.trainable = False
    return model


def _frozen(model):
    """The paths of frozen layers, without those below them."""
    # Keras gives no path to a layer whose owner builds its parts.
    layers = (x for x in _own_layers(model) if x.path and x.weights)
    paths = sorted(layer.path for layer in layers if not layer.trainable)
    tops: list[str] = []
    for path in paths:
        if not any(path.startswith(f"{top}/") for top in tops):
            tops.append(path)
    return tops


def _own_layers(model) -> Iterator[keras.layers.Layer]:
    """The layers of a model that are not in a model inside it."""
    _, *layers = sublayers(model)
    parts = [layer for layer in layers if isinstance(layer, keras.Model)]
    inside = {id(layer) for part in parts for layer in sublayers(part)}
    for layer in layers:
        if id(layer) not in inside:
            yield layer
