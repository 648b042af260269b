"""Means over the visible positions of a sequence."""

from keras import ops

from tfeff.ops.masking import at_least_float32
from tfeff.utils.types import Tensor


def visible_mean(hidden: Tensor, visible: Tensor | None) -> Tensor:
    """The mean of the vectors at visible positions, zeros where there are none.

    Sums are in float32 or better.

    Args:
        hidden: float tensor `[B, T, D]`.
        visible: bool tensor `[B, T]`, true at the positions that count, or `None` if
            all do.

    Returns:
        Tensor `[B, D]` in the dtype of `hidden`.
    """
    wide = at_least_float32(hidden)
    if visible is None:
        # Not `ops.mean`, which is NaN for an empty sequence.
        count = ops.cast(ops.maximum(ops.shape(wide)[1], 1), wide.dtype)
        return ops.cast(ops.sum(wide, axis=1) / count, hidden.dtype)
    # Not by an index: LiteRT cannot slice bools.
    visible = ops.expand_dims(visible, -1)
    # Not a product with the mask: padding may hold NaN.
    total = ops.sum(ops.where(visible, wide, 0.0), axis=1)
    count = ops.sum(ops.cast(visible, wide.dtype), axis=1)
    return ops.cast(total / ops.maximum(count, 1.0), hidden.dtype)
