"""GELU in two forms, alone and before a product: the equations.

`tfeff.ops.kernels` has equal versions that save less for the backward pass.
"""

import math
from collections.abc import Callable

from keras import ops

from tfeff.utils.types import Tensor


def gelu(x: Tensor) -> Tensor:
    """The exact GELU, `x Φ(x) = x (1 + erf(x / sqrt(2))) / 2`.

    Args:
        x: float tensor of any shape.

    Returns:
        Tensor like `x`.

    Example:

    >>> from keras import ops
    >>> round(float(gelu(ops.convert_to_tensor(1.0))), 6)
    0.841345

    Reference:
        Hendrycks and Gimpel, "Gaussian error linear units".
    """
    # LiteRT's converter knows this form of the equation as its GELU.
    return 0.5 * x * (1.0 + ops.erf(x * 0.5**0.5))


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by tanh, `x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2`.

    Published ALBERT models were trained with it; it differs from `gelu` by up to
    5e-4.

    Args:
        x: float tensor of any shape.

    Returns:
        Tensor like `x`.

    Example:

    >>> from keras import ops
    >>> round(float(gelu_tanh(ops.convert_to_tensor(1.0))), 6)
    0.841192

    Reference:
        Hendrycks and Gimpel, "Gaussian error linear units", section 2.
    """
    # Beyond 10 the tanh is 1; the square of a large float16 would be infinite.
    square = ops.minimum(x * x, 100.0)
    tanh = ops.tanh(math.sqrt(2.0 / math.pi) * x * (1.0 + 0.044715 * square))
    return x * (0.5 + 0.5 * tanh)


def activated_product(x: Tensor, kernel: Tensor, activation: Callable) -> Tensor:
    """The product of an activation's output and a kernel: `g(x) W`.

    Args:
        x: float tensor `[B, T, K]`.
        kernel: float tensor `W` `[K, M]`.
        activation: function `g` of a tensor of any shape.

    Returns:
        Tensor `[B, T, M]`.

    Example:

    >>> from keras import ops
    >>> y = activated_product(ops.ones((1, 2, 3)), ops.ones((3, 4)), gelu)
    >>> round(float(y[0, 0, 0]), 6)
    2.524034
    """
    return ops.matmul(activation(x), kernel)
