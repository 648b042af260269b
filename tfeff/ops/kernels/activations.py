"""GELU, alone and before a product; the backward pass saves only its argument."""

import math
from collections.abc import Callable

from keras import ops

from tfeff.ops import activations as equations
from tfeff.ops.kernels.backends import custom_gradient
from tfeff.ops.kernels.barrier import barrier_one
from tfeff.utils.types import Tensor


def gelu(x: Tensor) -> Tensor:
    """Equals `tfeff.ops.gelu`, and saves nothing but `x`."""
    return _activated(x, equations.gelu)


def gelu_tanh(x: Tensor) -> Tensor:
    """Equals `tfeff.ops.gelu_tanh`, and saves nothing but `x`."""
    return _activated(x, equations.gelu_tanh)


def activated_product(x: Tensor, kernel: Tensor, activation: Callable) -> Tensor:
    """Equals `tfeff.ops.activated_product`: `g(x) W`, and saves `x` but not `g(x)`.

    The gradient of `W` needs `g(x)`, a sixth of all activations of a Transformer, which
    is cheap to recompute. The activation is `tfeff.ops.gelu` or `tfeff.ops.gelu_tanh`.
    """

    @custom_gradient
    def product(x, kernel):
        def gradient(upstream):
            gate, grad_gate = _GATES[activation](x, barrier_one(upstream))
            grad_activated = ops.einsum("btm,km->btk", upstream, kernel)
            return (
                grad_activated * (gate + x * grad_gate),
                ops.einsum("btk,btm->km", x * gate, upstream),
            )

        # Keras' product of float64 is float32 on PyTorch.
        return ops.cast(ops.matmul(activation(x), kernel), x.dtype), gradient

    # A tensor: TensorFlow takes no variables here.
    return product(x, ops.reshape(kernel, kernel.shape))


def _activated(x, activation):
    """`activation(x)`; the backward pass saves only `x`."""

    @custom_gradient
    def activate(x):
        def gradient(upstream):
            gate, grad_gate = _GATES[activation](x, barrier_one(upstream))
            return upstream * (gate + x * grad_gate)

        return activation(x), gradient

    return activate(x)


def _normal_gate(x, one):
    """`Φ(x)` and its derivative."""
    gate = 0.5 + 0.5 * ops.erf(x * (one * 0.5**0.5))
    return gate, ops.exp((-0.5 * one) * x * x) / math.sqrt(2.0 * math.pi)


def _tanh_gate(x, one):
    """`(1 + tanh(…)) / 2` and its derivative."""
    scale, cubic = one * math.sqrt(2.0 / math.pi), 0.044715
    # Beyond 10 the tanh is 1; the square of a large float16 would be infinite.
    square = ops.minimum(x * x, 100.0)
    tanh = ops.tanh(x * (scale + scale * cubic * square))
    grad_gate = 0.5 * scale * (1.0 - tanh * tanh) * (1.0 + 3.0 * cubic * square)
    return 0.5 + 0.5 * tanh, grad_gate


# The functions of each activation `g` give the gate `g(x) / x` and its derivative,
# times a factor `one`.
_GATES = {equations.gelu: _normal_gate, equations.gelu_tanh: _tanh_gate}
