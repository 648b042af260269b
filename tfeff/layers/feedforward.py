from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.checks import (
    check_activation,
    check_divides,
    check_hidden,
    check_initializer,
)
from tfeff.layers.dense import Dense
from tfeff.layers.grouped_dense import GroupedDense
from tfeff.layers.initializer import own_initializer
from tfeff.layers.layer import Layer
from tfeff.ops import kernels
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Activation, Config, Initializer, Shape, Tensor

# Keras' own GELU is exact to float32 only, in every dtype.
_ACTIVATIONS = {"gelu": functional.gelu, "gelu_tanh": functional.gelu_tanh}


@keras.saving.register_keras_serializable(package="tfeff")
class FeedForward(Layer):
    """The position-wise feed-forward network of an encoder block.

        Y = g(X W_1 + b_1) W_2 + b_2

    `W_1` is `[D, intermediate_dim]`, `W_2` back to `[intermediate_dim, D]`, and
    `g` by default the exact GELU, `x Φ(x)`. With `num_groups`, both matrices are
    block-diagonal (`GroupedDense`).

    Args:
        intermediate_dim: integer, the inner width.
        activation: activation function `g`, by a name of Keras' or callable;
            `"gelu"` is the exact one, `"gelu_tanh"` its approximation by tanh.
        num_groups: integer, number of blocks of both matrices; 1 means dense.
        kernel_initializer: initializer of both kernels.
        bias_initializer: initializer of both biases.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.

    Returns:
        Float tensor `[B, T, D]`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if `intermediate_dim` is below 1, `num_groups` does not divide it or
            the hidden size, or `hidden` has another shape.

    Example:

    >>> tuple(FeedForward(intermediate_dim=32)(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 8)

    Reference:
        Vaswani et al., "Attention is all you need", section 3.3; Devlin et al.,
        "BERT", for the GELU; Jiang et al., "ConvBERT", section 3.3, for groups.
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "gelu",
        num_groups: int = 1,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = check_integer("intermediate_dim", intermediate_dim)
        self.activation = (
            _ACTIVATIONS[activation]
            if isinstance(activation, str) and activation in _ACTIVATIONS
            else check_activation("activation", activation)
        )
        self.num_groups = check_integer("num_groups", num_groups)
        if intermediate_dim % num_groups:
            raise ValueError(
                "`num_groups` must divide `intermediate_dim`. Received: "
                f"num_groups={num_groups}, intermediate_dim={intermediate_dim}"
            )
        self.kernel_initializer = check_initializer(
            "kernel_initializer", kernel_initializer
        )
        self.bias_initializer = check_initializer("bias_initializer", bias_initializer)

    def build(self, hidden_shape: Shape) -> None:
        check_hidden("hidden", hidden_shape)
        check_divides("num_groups", self.num_groups, hidden_shape[-1])
        self.intermediate_dense = self._dense(
            hidden_shape[-1], self.intermediate_dim, "intermediate"
        )
        self.output_dense = self._dense(
            self.intermediate_dim, hidden_shape[-1], "output"
        )

    def _dense(self, input_dim, units, name):
        groups = {} if self.num_groups == 1 else {"num_groups": self.num_groups}
        dense = (GroupedDense if groups else Dense)(
            units,
            **groups,
            kernel_initializer=own_initializer(self.kernel_initializer),
            bias_initializer=own_initializer(self.bias_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_dim))
        return dense

    def call(self, hidden: Tensor) -> Tensor:
        check_hidden("hidden", hidden.shape, self.output_dense.units)
        inner = self.intermediate_dense(hidden)
        if self.activation not in _ACTIVATIONS.values():
            return self.output_dense(self.activation(inner))
        if self.num_groups > 1 or self.output_dense.quantization_mode is not None:
            # A kernel has the name of its equation.
            return self.output_dense(getattr(kernels, self.activation.__name__)(inner))
        bias = ops.convert_to_tensor(self.output_dense.bias)
        return bias + kernels.activated_product(
            inner, self.output_dense.kernel, self.activation
        )

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            intermediate_dim=self.intermediate_dim,
            activation=next(
                (name for name, g in _ACTIVATIONS.items() if g is self.activation),
                None,
            )
            or keras.activations.serialize(self.activation),
            num_groups=self.num_groups,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
        )
        return config
