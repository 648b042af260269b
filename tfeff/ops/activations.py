"""Activation functions in the precision of their argument."""

import math

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

    @ops.custom_gradient
    def activate(x):
        def below(x):
            return 0.5 * (1.0 + ops.erf(x * 0.5**0.5))

        def gradient(*args, upstream=None):
            # From the argument alone: nothing between it and the result is kept.
            upstream = args[0] if upstream is None else upstream
            density = ops.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
            return upstream * (below(x) + x * density)

        return x * below(x), gradient

    return activate(x)


def gelu_product(x, kernel):
    """`gelu(x) W`, holding `x` for the gradient but not `gelu(x)`.

    The gradient of `W` needs `gelu(x)`, which is cheaper to compute again than to keep:
    in a Transformer it is a third of all activations.

    Args:
        x: float tensor `[B, T, K]`.
        kernel: float tensor `W` `[K, M]`.

    Returns:
        Tensor `[B, T, M]`.

    Example:

    >>> y = gelu_product(ops.ones((1, 2, 3)), ops.ones((3, 4)))
    >>> round(float(y[0, 0, 0]), 6)
    2.524034
    """

    @ops.custom_gradient
    def product(x, kernel):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            # Φ written otherwise than in `gelu`, or compilers would keep the first.
            below = 0.5 - 0.5 * ops.erf(x * -(0.5**0.5))
            density = ops.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
            of_result = ops.einsum("btm,km->btk", upstream, kernel)
            return (
                of_result * (below + x * density),
                ops.einsum("btk,btm->km", x * below, upstream),
            )

        return ops.matmul(gelu(x), kernel), gradient

    return product(x, ops.convert_to_tensor(kernel))


def gelu_tanh(x):
    """GELU by tanh, `x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2`.

    Published ALBERT models were trained with it; it differs from `gelu` by up to
    5e-4.

    Args:
        x: float tensor of any shape.

    Returns:
        Tensor like `x`.

    Example:

    >>> round(float(gelu_tanh(ops.convert_to_tensor(1.0))), 6)
    0.841192

    Reference:
        Hendrycks and Gimpel, "Gaussian error linear units", section 2.
    """
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + ops.tanh(inner))
