"""The registry of the attentions of an encoder."""

import functools
import inspect
import operator
from collections.abc import Callable

import keras

from tfeff import layers
from tfeff.layers.initializer import bert_initializer
from tfeff.layers.relative_attention import METHODS
from tfeff.utils.checks import check_callable, check_choice, check_string
from tfeff.utils.definitions import (
    UNREGISTERED,
    as_dict,
    check_complete,
    parameters_of,
    refusal,
)

_REGISTRY: dict[str, Callable] = {}
_OWN: set[str] = set()


def register_attention(name: str, make: Callable | None = None) -> Callable:
    """Registers an attention for `Encoder` under a name.

    `make` is a layer class, or any callable that returns an attention layer. The
    encoder calls it for each layer with those of its settings that its signature
    names: `num_heads` (also as `num_parts`), `hidden_dim`, `layer_index`, `num_layers`,
    `max_sequence_length`, `earlier` (the tuple of the attentions of the layers before),
    `dropout` (the encoder's `attention_dropout`), `kernel_initializer`, `dtype` and
    `name`; and with the user's arguments, which override these. `**kwargs` of a class
    stands for the arguments of its base classes, which are `dtype` and `name` for a
    Keras layer; `**kwargs` of a function for `dropout`, `kernel_initializer`, `dtype`
    and `name`.

    An encoder calls the layer with `padding_mask`, and with `segment_ids` and
    `layer_index` if its `call` names them: the layer's index in the stack, or the
    user's, in every layer that has this attention.

    It is usable as a decorator. Keras should be able to serialise a registered class.
    Encoders are saved with the name alone: the attention must be registered before one
    is loaded. A cell that is run again replaces what it had registered (a class or
    function of the same module and name) for encoders that are made from then on.

    Args:
        name: the name for `Encoder(attention=name)`.
        make: the class or callable; if left out, a decorator is returned.

    Returns:
        `make`, or the decorator.

    Raises:
        TypeError: if `name` is no string, or `make` cannot be called or is a layer.
        ValueError: if an attention of tfeff, or another one, has the name.

    Example:

    >>> import tfeff
    >>> @tfeff.encoders.register_attention("wide")
    ... def wide(num_heads, **kwargs):
    ...     return tfeff.layers.SelfAttention(2 * num_heads, **kwargs)
    >>> encoder = tfeff.encoders.build(
    ...     "bert_tiny", vocabulary_size=100, attention="wide"
    ... )
    >>> encoder.blocks[0].attention.num_heads
    4
    """
    check_string("name", name)
    if make is None:
        return lambda decorated: register_attention(name, decorated)
    check_callable("make", make)
    if isinstance(make, keras.layers.Layer):
        raise TypeError(
            "`make` must make a layer for each block of an encoder: give the class. "
            f"Received: make={make!r:.80}, a layer"
        )
    if advice := refusal(_REGISTRY, _OWN, name, make):
        raise ValueError(
            "`name` must be the name of no other attention. Received: name="
            f"{name!r}, which is registered for {_REGISTRY[name]!r}. {advice}"
        )
    _REGISTRY[name] = make
    return make


def attentions() -> list[str]:
    """The names of the registered attentions, sorted.

    Returns:
        Names that an encoder takes as `attention`.

    Example:

    >>> "one_head" in attentions()
    True
    """
    return sorted(_REGISTRY)


def make_attention(spec: str | dict, settings: dict) -> keras.layers.Layer:
    """One attention layer from its specification and the encoder's settings.

    Args:
        spec: a registered name, or a dict with `"name"` and further arguments of
            the attention.
        settings: the encoder's settings, by argument name.

    Raises:
        ValueError: if the name is not registered, or an argument is not one of the
            attention's.
        TypeError: if `spec` is neither a name nor a dict.
    """
    if not isinstance(spec, (str, dict)):
        raise TypeError(
            "`attention` must be a registered name or a dict with a 'name'. "
            f"Received: attention={spec!r}"
        )
    arguments = as_dict(spec)
    name = arguments.pop("name", None)
    make = _REGISTRY[check_choice("attention", name, attentions(), UNREGISTERED)]
    accepted = _arguments_of(make)
    unknown = sorted(set(arguments) - accepted)
    if unknown:
        raise ValueError(
            f"`attention` {name!r} must have arguments among {sorted(accepted)}. "
            f"Received: {', '.join(unknown)}"
        )
    offered = {key: value for key, value in settings.items() if key in accepted}
    given = {**offered, **arguments}
    check_complete("attention", spec, make, given)
    return make(**given)


def layer_specs(attention: str | dict | list, num_layers: int) -> list:
    """The specification of each layer's attention."""
    if not isinstance(attention, (list, tuple)):
        return [attention] * num_layers
    if len(attention) != num_layers:
        raise ValueError(
            "`attention` as a list must have one entry for each layer. "
            f"Received: {len(attention)} entries, num_layers={num_layers}"
        )
    return list(attention)


def own_layer_index(spec: str | dict) -> int | None:
    """The index that an attention's specification gives instead of the layer's."""
    return spec.get("layer_index") if isinstance(spec, dict) else None


def _arguments_of(make: Callable) -> set[str]:
    """The names of all arguments, including those of a layer's `**kwargs`."""
    steps = list(parameters_of(make, keras.layers.Layer))
    accepted = {
        p.name
        for parameters in steps
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    if steps and all(p.kind is not p.VAR_KEYWORD for p in steps[-1]):
        return accepted
    if inspect.isclass(make):
        return accepted | {"dtype", "name"}
    return accepted | {"dropout", "kernel_initializer", "dtype", "name"}


def _relative(
    num_heads,
    method,
    max_sequence_length,
    earlier=(),
    max_distance=None,
    shared_heads=False,
    num_buckets=32,
    sinusoid="interleaved",
    relative_segments=False,
    query_bias=True,
    query_block_size="auto",
    disabled_heads=(),
    **kwargs,
):
    """`RelativeAttention` with the defaults of an encoder.

    Tables of Shaw and Huang are not clipped below the encoder's length. All layers with
    the method `"bias"` share one table, as in T5.
    """
    check_choice("method", method, METHODS)
    if max_distance is None and not METHODS[method].fixed_distance:
        max_distance = max(1, max_sequence_length - 1)
    make = functools.partial(
        layers.RelativeAttention,
        num_heads,
        method,
        max_distance,
        shared_heads,
        num_buckets,
        sinusoid,
        relative_segments,
        query_bias=query_bias,
        query_block_size=query_block_size,
        disabled_heads=disabled_heads,
        **kwargs,
    )
    if method != "bias":
        return make()
    table = layers.RelativeEmbedding(
        max_distance or METHODS[method].distance,
        (num_heads,),
        index="t5",
        num_buckets=num_buckets,
        embeddings_initializer=bert_initializer(),
        dtype=kwargs["dtype"],
        name="relative",
    )
    # Not by `get_config()`: while Keras saves or loads, it marks an initializer that is
    # used again, so that configs of equal layers differ.
    specification = operator.attrgetter(
        "max_distance", "num_buckets", "shape", "dtype_policy"
    )
    for layer in earlier:
        if (
            isinstance(layer, layers.RelativeAttention)
            and layer.method == "bias"
            and layer.shares_embedding
            and specification(layer.relative_embedding) == specification(table)
        ):
            return make(relative_embedding=layer.relative_embedding)
    return make(relative_embedding=table)


register_attention("self", layers.SelfAttention)
register_attention("partitioned", layers.PartitionedAttention)
register_attention("one_head", layers.OneHeadAttention)
register_attention("relative", _relative)
register_attention("blockwise", layers.BlockwiseAttention)
register_attention("sparse", layers.SparseAttention)
register_attention("mixed", layers.MixedAttention)
register_attention("lightweight_conv", layers.LightweightConv1D)
register_attention("dynamic_conv", layers.DynamicConv1D)
register_attention("span_dynamic_conv", layers.SpanDynamicConv1D)
_OWN.update(_REGISTRY)
