"""LoRA adapters: small weights that train beside frozen ones, and their merging."""

import keras

from tfeff.compat.layers import frozen_kernel, sublayers
from tfeff.layers.checks import check_model
from tfeff.layers.dense import merged_kernel
from tfeff.utils.checks import check_integer

# Layers that can have adapters; Keras' embeddings can, too, but are not projections.
_PROJECTIONS = (keras.layers.Dense, keras.layers.EinsumDense)


def adapted_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """The layers of a model that have adapters."""
    return [x for x in sublayers(model) if getattr(x, "lora_enabled", False)]


def adapted_projections(model: keras.Model) -> list[keras.layers.Layer]:
    """The layers of a model that have adapters, all of which must be projections.

    Raises:
        ValueError: if an embedding has one, which Keras adds to its rows.
    """
    adapted = adapted_layers(model)
    for layer in adapted:
        if not isinstance(layer, _PROJECTIONS):
            raise ValueError(
                "`model` must have adapters on projections alone, as `enable_lora` of "
                "an encoder gives them. Received: an adapter on the layer "
                f"{layer.path}, a {type(layer).__name__}"
            )
    return adapted


def projections(model: keras.Model) -> list[keras.layers.Layer]:
    """The layers of a model that can have adapters."""
    return [x for x in sublayers(model) if isinstance(x, _PROJECTIONS)]


def merge_lora(model: keras.Model) -> keras.Model:
    """A copy of a model without adapters, which are part of its weights.

        W' = W + s A B        A [in, rank], B [rank, out], s = alpha / rank

    in the precision of the weights. Its outputs are those of the model, but for
    rounding. Such a model can be checkpointed, quantized and trained as a whole.

    Args:
        model: a `tfeff.encoders.Encoder`, an objective or a task.

    Returns:
        The copy, compiled as the model is, with a new optimizer; the model itself if
        it has no adapters.

    Raises:
        TypeError: if `model` is no model.
        ValueError: if a layer with an adapter is quantized, or is an embedding.

    Example:

    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> encoder.enable_lora(rank=4)
    >>> merged = merge_lora(encoder)
    >>> len(encoder.weights) - len(merged.weights)
    8

    Reference:
        Hu et al., "LoRA", 2021, section 4.1.
    """
    check_model(model)
    adapted = adapted_projections(model)
    if not adapted:
        return model
    for layer in adapted:
        if layer.quantization_mode is not None:
            raise ValueError(
                "The model must have no adapters on quantized layers to merge them: "
                "their kernels are rounded. `tfeff.tasks.save_lora` saves the adapters "
                f"alone. Received: an adapter on the layer {layer.path}, "
                f"quantization_mode={layer.quantization_mode!r}"
            )
    merged = type(model).from_config(model.get_config())
    for new, old in zip(merged.weights, own_weights(model), strict=True):
        new.assign(keras.ops.convert_to_numpy(old))
    for new, old in zip(sublayers(merged), sublayers(model), strict=True):
        if old in adapted:
            frozen_kernel(new).assign(merged_kernel(old))
    if model.compiled:
        merged.compile_from_config(model.get_compile_config())
    return merged


def own_weights(model: keras.Model) -> list[keras.Variable]:
    """All weights of a model but those of adapters, in its order."""
    adapters = {
        id(weight)
        for layer in adapted_layers(model)
        for weight in (layer.lora_kernel_a, layer.lora_kernel_b)
    }
    return [weight for weight in model.weights if id(weight) not in adapters]


class Adapters:
    """The mixin of `Encoder` that gives it adapters. It comes before KerasHub's."""

    def enable_lora(self, rank, target_layer_names=None):
        """Freezes the encoder and adds an adapter to some of its projections.

            y = x (W + A B) + b             A [in, rank], B [rank, out], B = 0 at first

        (Keras' `alpha` is the rank, so that A B has the factor 1.) Only `A` and `B`
        train, and what stands on the encoder, such as a task's head. A model must be
        compiled after this, or again.

        Args:
            rank: integer, at least 1 and at most `hidden_dim`.
            target_layer_names: the names of the projections that get adapters, such as
                `["query", "key", "value", "output"]`. `None` means `"query"` and
                `"value"`, those of them that the encoder has.

        Raises:
            TypeError: if `rank` is not an integer.
            ValueError: if `rank` is out of range; if there are adapters already, or no
                projections of these names; or if one is quantized in a mode in
                which Keras computes no adapters.

        Reference:
            Hu et al., "LoRA", 2021, sections 4.1 and 4.2.
        """
        rank = check_integer("rank", rank, 1, self.hidden_dim)
        adapted = adapted_layers(self)
        if adapted:
            raise ValueError(
                "The encoder must have no adapters yet. `tfeff.encoders.merge_lora` "
                "makes them part of the weights of a copy. "
                f"Received: an adapter on the layer {adapted[0].path}"
            )
        known = {layer.name for layer in projections(self)}
        names = target_layer_names
        if names is None:
            names = known.intersection(self.default_lora_layer_names())
        if not names or isinstance(names, str) or not known.issuperset(names):
            raise ValueError(
                "`target_layer_names` must be a list of names of projections of the "
                f"encoder, some of {sorted(known)}. Received: "
                f"target_layer_names={target_layer_names!r}"
            )
        targets = [layer for layer in projections(self) if layer.name in names]
        for layer in targets:
            if layer.quantization_mode not in (None, "int8", "int4"):
                raise ValueError(
                    "The encoder's layers must be quantized as 'int8' or 'int4', or "
                    "not at all, to get adapters: Keras computes none in another mode. "
                    f"Received: quantization_mode={layer.quantization_mode!r} in the "
                    f"layer {layer.path}"
                )
        super().enable_lora(rank, sorted(names))
        for layer in targets:
            # KerasHub's file of adapters has no biases.
            if layer.bias is not None:
                layer.bias.trainable = False
        self.tell_weights()
