"""Checks of shapes and masks that several layers share."""

from collections.abc import Iterable

import keras
from keras import ops

from tfeff.compat.layers import keras_mask, rebuilds_model
from tfeff.ops.activations import gelu_tanh
from tfeff.ops.ids import check_integers
from tfeff.utils.checks import check_integer, check_seed, shapes_agree


def check_dense(name: str, value) -> None:
    """Raises if a tensor of `value`, which may be nested, is ragged."""
    for x in keras.tree.flatten(value):
        if getattr(x, "ragged", False) or hasattr(x, "row_splits"):
            raise TypeError(
                f"`{name}` must be dense, with a padding mask for sequences of "
                f"different lengths. Received: a ragged tensor, {name}.shape="
                f"{tuple(x.shape)}"
            )


def check_has_blocks(encoder) -> None:
    """Raises unless `encoder` has blocks, as encoders of tfeff have."""
    if not hasattr(encoder, "blocks"):
        raise TypeError(
            f"`encoder` must be a `tfeff.encoders.Encoder`. Received: {encoder=!r:.80}"
        )


def check_model(model) -> None:
    """Raises unless `model` is a model of Keras."""
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"`model` must be a `keras.Model`. Received: model={model!r:.80}"
        )


def check_divides(name: str, parts: int, dim: int) -> None:
    """Raises unless `parts` divides the hidden size `dim`."""
    if dim is None:
        raise ValueError(
            "The last axis of `hidden` must have a known size. Received: None"
        )
    if dim % parts:
        raise ValueError(
            f"`{name}` must divide `hidden_dim`. "
            f"Received: {name}={parts}, hidden_dim={dim}"
        )


def check_disabled_heads(heads, num_heads: int | None = None) -> tuple[int, ...]:
    """Returns the indices of heads that are switched off, in order, or raises.

    Args:
        heads: a sequence of different integers of at least 0.
        num_heads: the number of all heads, if it is known: one must be left.
    """
    if isinstance(heads, str) or not isinstance(heads, Iterable):
        raise TypeError(
            "`disabled_heads` must be a sequence of indices of heads. "
            f"Received: disabled_heads={heads!r}"
        )
    heads = tuple(heads)
    checked = {check_integer("disabled_heads", head, 0) for head in heads}
    if len(checked) != len(heads):
        raise ValueError(
            "`disabled_heads` must be different heads. "
            f"Received: disabled_heads={heads}"
        )
    if num_heads is not None and heads:
        if max(checked) >= num_heads:
            raise ValueError(
                f"`disabled_heads` must be indices of {num_heads} heads, from 0 to "
                f"{num_heads - 1}. Received: disabled_heads={heads}"
            )
        if len(checked) == num_heads:
            raise ValueError(
                f"`disabled_heads` must leave at least one of {num_heads} heads. "
                f"Received: disabled_heads={heads}"
            )
    return tuple(sorted(checked))


def check_head_mask(name: str, head_mask, num_heads: int) -> None:
    """Raises unless `head_mask` has one factor for each head."""
    shape = tuple(ops.shape(head_mask))
    if shape != (num_heads,):
        raise ValueError(
            f"`{name}` must have shape ({num_heads},), one factor for each head. "
            f"Received: {name}.shape={shape}"
        )


def check_return_scores(layer, value) -> bool | str:
    """Returns whether a call returns scores, or `"scores"` where the layer has these.

    Keras makes tensors of NumPy's bools.
    """
    before = layer.has_softmax_scores
    if isinstance(value, str) and not (before and value == "scores"):
        kinds = "True, False or 'scores'" if before else "True or False"
        raise ValueError(
            f"`return_attention_scores` must be {kinds} for a {type(layer).__name__}. "
            f"Received: return_attention_scores={value!r}"
        )
    return value if isinstance(value, str) else bool(value)


def check_layer_seed(seed) -> int | None:
    """Returns a valid seed of Keras' generators, or `None` for one that they draw."""
    return None if seed is None else check_seed(seed)


def check_initializer(name: str, value):
    """Returns the initializer that `value` is or names, or raises."""
    return _interpreted(name, value, keras.initializers.get, "an initializer of Keras")


def check_activation(name: str, value):
    """Returns the function that `value` is or names, the identity for `None`."""
    return _interpreted(name, value, keras.activations.get, "an activation of Keras")


def check_activation_name(name: str, value):
    """Returns the function of an activation's name, a name of Keras' or `gelu_tanh`."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a name. Received: {name}={value!r:.80}")
    return gelu_tanh if value == "gelu_tanh" else check_activation(name, value)


def _interpreted(name, value, get, what):
    try:
        return get(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be {what}, or its name. Received: {name}={value!r:.80}"
        ) from error


def check_kernel_size(kernel_size) -> int:
    """Returns `kernel_size` if it is an odd integer above 0, else raises."""
    kernel_size = check_integer("kernel_size", kernel_size)
    if kernel_size % 2 == 0:
        raise ValueError(
            "`kernel_size` must be odd, with as many taps to the left as to the right. "
            f"Received: kernel_size={kernel_size}"
        )
    return kernel_size


def check_last_axis(name: str, shape, size: int) -> None:
    """Raises unless the last axis of `shape` can be of the size of a built layer."""
    if shape[-1] not in (None, size):
        raise ValueError(
            f"`{name}` must have a last axis of size {size}, as when the layer was "
            f"built. Received: {name}.shape={tuple(shape)}"
        )


def check_hidden(name: str, shape, hidden_dim: int | None = None) -> int:
    """Returns the last size of `shape`, that of a batch of sequences, or raises.

    Args:
        name: the argument's name.
        shape: the shape of the argument.
        hidden_dim: the last size of a layer that is built; `None` for any.
    """
    if len(shape) != 3:
        raise ValueError(
            f"`{name}` must have shape (batch, length, hidden_dim). "
            f"Received: {name}.shape={tuple(shape)}"
        )
    if hidden_dim is not None:
        check_last_axis(name, shape, hidden_dim)
    return shape[-1]


def check_floats(name: str, tensor) -> None:
    """Raises unless the tensor has a float dtype."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if "float" not in dtype:
        raise TypeError(
            f"`{name}` must be a float tensor. Received: {name}.dtype={dtype}"
        )


def as_floats(x, dtype: str):
    """`x`, cast to this dtype if it holds integers, which Keras does not cast."""
    return x if keras.backend.is_float_dtype(x.dtype) else ops.cast(x, dtype)


def as_tensor(name: str, value):
    """`value`, which may be nested lists of numbers, as a tensor, or raises."""
    if isinstance(value, keras.KerasTensor):
        return value
    try:
        return ops.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be a tensor, or lists of numbers of one length. "
            f"Received: {name}={value!r}"
        ) from error


def check_token_ids(name: str, ids, shape=None):
    """Returns `ids` as a tensor if they are integers `[B, T]`, else raises.

    Args:
        name: the argument's name.
        ids: a tensor, or lists of integers.
        shape: the shape that they must have; `None` for any.
    """
    ids = as_tensor(name, ids)
    if len(ids.shape) != 2:
        raise ValueError(
            f"`{name}` must have shape (batch, length). "
            f"Received: {name}.shape={tuple(ids.shape)}"
        )
    check_integers(name, ids)
    if shape is not None:
        check_same_shape(name, ids, shape)
    return ids


def check_same_shape(name: str, tensor, expected) -> None:
    """Raises unless the shape of `tensor` can be `expected`; None fits anything."""
    shape, expected = tuple(tensor.shape), tuple(expected)
    if not shapes_agree(shape, expected):
        raise ValueError(
            f"`{name}` must have shape (batch, length), that of the tokens: "
            f"{expected}. Received: {name}.shape={shape}"
        )


def check_padding_mask(padding_mask, hidden, name: str = "padding_mask"):
    """Returns the mask as a tensor, or raises unless it is one of `hidden`."""
    padding_mask = as_tensor(name, padding_mask)
    if rebuilds_model():
        padding_mask = ops.cast(padding_mask, "bool")
    dtype = keras.backend.standardize_dtype(padding_mask.dtype)
    if dtype != "bool" and "int" not in dtype:
        raise TypeError(
            f"`{name}` must be a bool or integer tensor with 1 at real tokens. "
            f"Received: {name}.dtype={dtype}"
        )
    check_same_shape(name, padding_mask, hidden.shape[:2])
    return padding_mask


def given_mask(padding_mask, hidden, mask=None):
    """`padding_mask`, else `mask`, else Keras' mask of `hidden`, checked, or `None`."""
    for name, value in (
        ("padding_mask", padding_mask),
        ("mask", mask),
        ("hidden._keras_mask", keras_mask(hidden)),
    ):
        if value is not None:
            return check_padding_mask(value, hidden, name)
    return None


def visible_keys(padding_mask, hidden, mask=None):
    """The padding mask as a bool tensor `[B, T]`, checked, or `None`.

    Args:
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens; `None`
            for `mask`, or Keras' mask of `hidden`, if it has one.
        hidden: the tensor `[B, T, D]` whose positions it describes.
        mask: the mask that the user or Keras handed to the call, such as
            `TimeDistributed` does for slices, which have none themselves; or `None`.
    """
    padding_mask = given_mask(padding_mask, hidden, mask)
    return None if padding_mask is None else ops.cast(padding_mask, "bool")
