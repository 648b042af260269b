"""Factors of the heads' outputs in calls of one encoder."""

import contextlib
import contextvars
from collections.abc import Iterator, Sequence

import keras
import numpy as np
from keras import ops

from tfeff.layers.attention import accepts
from tfeff.layers.checks import check_has_blocks, check_head_mask

# The blocks of an encoder, and the mask of each.
_ACTIVE: contextvars.ContextVar[tuple[Sequence, list] | None] = contextvars.ContextVar(
    "head_masks", default=None
)


@contextlib.contextmanager
def masked_heads(encoder: keras.Model, masks: Sequence) -> Iterator[None]:
    """Multiplies the outputs of an encoder's heads while it is called.

        Y = concat_h(m[h] X̄[h]) W^O + b^O

    where `X̄[h]` is the output of head `h` and `m` the layer's mask: 0 switches a head
    off. The encoder may be called alone or in a model, but not by the model's `fit`,
    `evaluate` or `predict`, nor by a `tf.function` that is used elsewhere, too: these
    run what they compiled before, without the masks, and what they compile here keeps
    the masks afterwards. Only this thread has the masks: replicas of
    `tf.distribute.Strategy.run` are called in others. To switch heads off for good, in
    training too, make the encoder with `disabled_heads`
    (`tfeff.encoders.disable_heads`).

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        masks: one for each layer, in order: `None`, or numbers `[N]`, as an array, a
            tensor or a list. `N` are the heads of the layer, or its parts; of mixed
            attention those of attention, then those of convolution.

    Returns:
        A context manager.

    Raises:
        TypeError: if `encoder` has no blocks.
        ValueError: if `masks` are not one for each layer or one has another size or
            leaves no head (not checked of tensors), or an attention takes no
            `head_mask`.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> inputs = {name: ones for name in ("token_ids", "segment_ids", "padding_mask")}
    >>> with tfeff.layers.masked_heads(encoder, [[0, 1], None]):
    ...     outputs = encoder(inputs)
    >>> tuple(outputs["sequence_output"].shape)
    (2, 7, 128)

    Reference:
        Michel et al., "Are sixteen heads really better than one?", section 2.3.
    """
    check_has_blocks(encoder)
    blocks = tuple(encoder.blocks)
    if not hasattr(masks, "__len__") or len(masks) != len(blocks):
        raise ValueError(
            f"`masks` must be one for each of {len(blocks)} layers. "
            f"Received: masks={masks!r:.80}"
        )
    masks = [
        None if mask is None else _checked(index, block.attention, mask)
        for index, (block, mask) in enumerate(zip(blocks, masks))
    ]
    token = _ACTIVE.set((blocks, masks))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def active_head_mask(block, layer_index: int | None):
    """The mask of a block's heads as layer `layer_index`, or `None`."""
    active = _ACTIVE.get()
    if active is None:
        return None
    for index, (other, mask) in enumerate(zip(*active)):
        if other is block and layer_index in (None, index):
            return None if mask is None else ops.convert_to_tensor(mask)
    return None  # Blocks of other encoders have no mask.


def _checked(index, attention, mask):
    """Returns the mask, as an array if it is a list, or raises."""
    name = f"masks[{index}]"
    if not accepts(attention, "head_mask"):
        raise ValueError(
            f"`{name}` must be None for an attention that takes no `head_mask`. "
            f"Received: {name} for {type(attention).__name__}"
        )
    if isinstance(mask, (list, tuple, np.ndarray)):
        try:
            mask = np.asarray(mask, "float32")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`{name}` must be numbers. Received: {name}={mask!r}"
            ) from error
        if not mask.any():
            raise ValueError(
                f"`{name}` must leave at least one head. Received: {name}={mask}"
            )
    check_head_mask(name, mask, attention.output_heads)
    return mask
