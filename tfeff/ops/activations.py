"""Activation functions in the precision of their argument."""

from keras import ops


def gelu(x):
    """The exact GELU, `x Φ(x) = x (1 + erf(x / sqrt(2))) / 2`.

    Args:
        x: float tensor of any shape.

    Returns:
        Tensor like `x`.

    Example:

    >>> round(float(gelu(ops.convert_to_tensor(1.0))), 6)
    0.841345

    Reference:
        Hendrycks and Gimpel, "Gaussian error linear units".
    """
    return 0.5 * x * (1.0 + ops.erf(x * 0.5**0.5))
