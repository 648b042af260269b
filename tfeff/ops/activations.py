"""GELU in two forms, in the precision of the argument, alone and before a product."""

import math

from keras import ops

from tfeff.ops.kernels.barrier import barrier_one


def gelu(x):
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
    return _activated(x, gelu)


def gelu_tanh(x):
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
    return _activated(x, gelu_tanh)


def activated_product(x, kernel, activation):
    """`g(x) W`, holding `x` for the gradient but not `g(x)`.

    The gradient of `W` needs `g(x)`, which is cheaper to compute again than to keep: in
    a Transformer it is a sixth of all activations.

    Args:
        x: float tensor `[B, T, K]`.
        kernel: float tensor `W` `[K, M]`.
        activation: `gelu` or `gelu_tanh`.

    Returns:
        Tensor `[B, T, M]`.

    Example:

    >>> from keras import ops
    >>> y = activated_product(ops.ones((1, 2, 3)), ops.ones((3, 4)), gelu)
    >>> round(float(y[0, 0, 0]), 6)
    2.524034
    """

    @ops.custom_gradient
    def product(x, kernel):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            share, slope = SHARES[activation](x, barrier_one(upstream))
            of_activated = ops.einsum("btm,km->btk", upstream, kernel)
            return (
                of_activated * (share + x * slope),
                ops.einsum("btk,btm->km", x * share, upstream),
            )

        return ops.matmul(x * SHARES[activation](x)[0], kernel), gradient

    # A tensor: TensorFlow takes no variables here.
    return product(x, ops.reshape(kernel, kernel.shape))


def _activated(x, activation):
    """`activation(x)`, holding nothing but `x` for the gradient."""

    @ops.custom_gradient
    def activate(x):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            share, slope = SHARES[activation](x, barrier_one(upstream))
            return upstream * (share + x * slope)

        return x * SHARES[activation](x)[0], gradient

    return activate(x)


def _normal_share(x, one=1.0):
    """`Φ(x)` and its derivative."""
    share = 0.5 + 0.5 * ops.erf(x * (one * 0.5**0.5))
    return share, ops.exp((-0.5 * one) * x * x) / math.sqrt(2.0 * math.pi)


def _tanh_share(x, one=1.0):
    """`(1 + tanh(…)) / 2` and its derivative."""
    scale, cubic = one * math.sqrt(2.0 / math.pi), 0.044715
    # Beyond 10 the tanh is 1; the square of a large float16 would be infinite.
    square = ops.minimum(x * x, 100.0)
    tanh = ops.tanh(x * (scale + scale * cubic * square))
    slope = 0.5 * scale * (1.0 - tanh * tanh) * (1.0 + 3.0 * cubic * square)
    return 0.5 + 0.5 * tanh, slope


# By activation `g`: `g(x) / x` and its derivative, not before a factor `one` is known.
SHARES = {gelu: _normal_share, gelu_tanh: _tanh_share}
