"""Normalisations over the keys whose backward pass saves only rounded tensors.

Each equals the function of its name in `tfeff.ops`. Automatic differentiation would
save float32 copies of half precision.
"""

from keras import ops

from tfeff.ops import masking as equations
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.masking import at_least_float32
from tfeff.utils.types import Tensor


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Equals `tfeff.ops.masked_softmax`, and saves only the weights."""
    return custom_gradient(lambda scores: softmax_and_gradient(scores, mask))(scores)


def l2_normalized_sigmoid(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Equals `tfeff.ops.l2_normalized_sigmoid`, and saves scores and weights."""
    return custom_gradient(lambda scores: l2_sigmoid_and_gradient(scores, mask))(scores)


def softmax_and_gradient(scores, mask=None):
    """`masked_softmax`, and the function from its upstream gradient to the scores'."""
    weights = equations.masked_softmax(scores, mask)

    def gradient(upstream):
        # From the rounded weights: nothing else is saved.
        upstream = at_least_float32(upstream)
        upcast_weights = at_least_float32(weights)
        mean = ops.sum(upstream * upcast_weights, axis=-1, keepdims=True)
        return ops.cast(upcast_weights * (upstream - mean), scores.dtype)

    return weights, gradient


def l2_sigmoid_and_gradient(scores, mask=None):
    """`l2_normalized_sigmoid`, and its gradient as in `softmax_and_gradient`."""
    weights, square = equations.l2_sigmoid_and_square(scores, mask)

    def gradient(upstream):
        # From scores, rounded weights and norms: no float32 over pairs is saved.
        upstream = at_least_float32(upstream)
        upcast_weights = at_least_float32(weights)
        dot = ops.sum(upstream * upcast_weights, axis=-1, keepdims=True)
        # Below the floor the norm does not depend on the scores.
        dot = ops.where(square > equations.SMALLEST_SQUARE, dot, 0.0)
        # σ(-s) is 1 - σ(s), which would lose its digits where σ is near 1.
        derivative = upcast_weights * ops.sigmoid(-at_least_float32(scores))
        return ops.cast((upstream - upcast_weights * dot) * derivative, scores.dtype)

    return weights, gradient


# Each function gives weights, and a function from their gradient to the scores'.
WITH_GRADIENT = {
    "softmax": softmax_and_gradient,
    "sigmoid_l2": l2_sigmoid_and_gradient,
}
