"""Normalisations over the keys that hold for any mask.

A masked key gets weight 0, and a row whose keys are all masked gets zeros:
the row then attends to nothing, instead of to an average of the padding.
"""

import functools

import keras
from keras import ops

from tfeff.utils.types import Tensor

# The score of masked keys: not -inf, since a row of that would give NaN. In float32
# sums of two, and losses of weight 0, are finite, too.
MASKED = -1e30
# The smallest square of a norm that rows are divided by.
SMALLEST_SQUARE = 1e-12


def at_least_float32(scores):
    """Casts half precision up: sums over hundreds of keys need the digits."""
    return ops.cast(
        scores,
        keras.backend.result_type(
            keras.backend.standardize_dtype(scores.dtype), "float32"
        ),
    )


def all_true(*masks):
    """Where all masks are true; `None` is true everywhere."""
    given = [mask for mask in masks if mask is not None]
    return functools.reduce(ops.logical_and, given) if given else None


def masked_scores(scores, mask):
    """Scores in float32 or better, with `MASKED` at the masked keys."""
    scores = at_least_float32(scores)
    return scores if mask is None else ops.where(mask, scores, MASKED)


def softmax(scores):
    """Softmax over the last axis, without Keras' warning where it has one key."""
    if scores.shape[-1] == 1:
        return scores - scores + 1.0  # NaN stays NaN, and the gradient is 0.
    return ops.softmax(scores, axis=-1)


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, restricted to the visible keys.

    `A[..., j] = mask[j] exp(s[..., j]) / Σ_m mask[m] exp(s[..., m])`, and 0 in
    rows where nothing is visible. Computed in float32 or better.

    Args:
        scores: float tensor `[..., T, S]`.
        mask: bool tensor broadcastable to `scores`, true where a key is visible,
            or `None` when all are.

    Returns:
        Tensor like `scores`, in its dtype.

    Example:

    >>> from keras import ops
    >>> weights = masked_softmax(
    ...     ops.zeros((1, 2, 4)), ops.convert_to_tensor([[[True, True, False, False]]])
    ... )
    >>> ops.convert_to_numpy(weights[0, 0]).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    weights = softmax(masked_scores(scores, mask))
    if mask is not None:
        weights = ops.where(mask, weights, 0.0)
    return ops.cast(weights, scores.dtype)


def l2_normalized_sigmoid(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Sigmoid over the last axis, scaled to unit Euclidean length.

    `A[..., j] = σ(s[..., j]) / sqrt(Σ_m σ(s[..., m])²)`, sums over visible keys
    only; masked keys, and rows where nothing is visible, get 0. Computed in
    float32 or better. It favours many positions where softmax favours few.

    Args:
        scores: float tensor `[..., T, S]`.
        mask: bool tensor broadcastable to `scores`, true where a key is visible,
            or `None` when all are.

    Returns:
        Tensor like `scores`, in its dtype.

    Example:

    >>> from keras import ops
    >>> weights = l2_normalized_sigmoid(ops.zeros((1, 4)))
    >>> ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.5, 0.5, 0.5]]

    Reference:
        Tian et al., "Shatter", section 3.2, equation 6.
    """
    weights, _ = l2_sigmoid_and_square(scores, mask)
    return weights


def l2_sigmoid_and_square(scores, mask):
    """`l2_normalized_sigmoid`, and the sums `Σ_m σ(s[..., m])²` over visible keys."""
    sigmoid = ops.sigmoid(at_least_float32(scores))
    if mask is not None:
        sigmoid = ops.where(mask, sigmoid, 0.0)
    square = ops.sum(ops.square(sigmoid), axis=-1, keepdims=True)
    # The floor keeps a row without visible keys at 0 / 1e-6, not 0 / 0.
    norm = ops.sqrt(ops.maximum(square, SMALLEST_SQUARE))
    return ops.cast(sigmoid / norm, scores.dtype), square


def zeros_outside(x, inside):
    """`x` `[B, T, ...]` with zeros where `inside` `[B, T]`, if given, is false."""
    if inside is None:
        return x
    inside = ops.expand_dims(inside, tuple(range(2, len(x.shape))))
    return ops.where(inside, x, ops.zeros((), x.dtype))
