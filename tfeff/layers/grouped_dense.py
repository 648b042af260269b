from typing import Any

import keras
from keras import ops

from tfeff.layers.checks import (
    check_activation,
    check_initializer,
    check_last_axis,
)
from tfeff.layers.dense import EinsumDense
from tfeff.layers.initializer import initializer_by_group
from tfeff.layers.layer import Layer
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Activation, Config, Initializer, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class GroupedDense(Layer):
    """A dense layer in groups: a linear map whose matrix is block-diagonal.

        y = g(concat_m(x[m] W[m]) + b),   m = 0 … G - 1

    The features of `x` are split into `G` equal, adjacent groups `x[m]`; group `m` of
    the output depends on group `m` of the input alone. The kernel has `1 / G` of the
    weights of that of a `Dense` layer, which it equals with one group.

    Args:
        units: integer, size of the output; a multiple of `num_groups`.
        num_groups: integer `G`, which divides the size of the input, too.
        activation: activation function `g`, by name or callable; `None` for none.
        kernel_initializer: initializer of the kernel `[G, D / G, units / G]`; Keras'
            `VarianceScaling` and its kind scale by the inputs and outputs of a group.
        bias_initializer: initializer of the bias.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: float tensor `[..., D]`, of any rank.

    Returns:
        Float tensor `[..., units]`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if `num_groups` does not divide `units` or the input's size.

    Example:

    >>> tuple(GroupedDense(units=6, num_groups=2)(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 6)

    Reference:
        Jiang et al., "ConvBERT", section 3.3, equation 7.
    """

    def __init__(
        self,
        units: int,
        num_groups: int,
        activation: Activation | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.units = check_integer("units", units)
        self.num_groups = check_integer("num_groups", num_groups)
        if units % num_groups:
            raise ValueError(
                "`num_groups` must divide `units`. "
                f"Received: num_groups={num_groups}, units={units}"
            )
        self.activation = check_activation("activation", activation)
        self.kernel_initializer = check_initializer(
            "kernel_initializer", kernel_initializer
        )
        self.bias_initializer = check_initializer("bias_initializer", bias_initializer)

    def build(self, inputs_shape: Shape) -> None:
        size = inputs_shape[-1]
        if size is None or size % self.num_groups:
            raise ValueError(
                "`num_groups` must divide the size of the last axis of `inputs`. "
                f"Received: num_groups={self.num_groups}, "
                f"inputs.shape={tuple(inputs_shape)}"
            )
        self.inputs_dim = size
        self.num_axes = min(max(len(inputs_shape) - 1, 1), 6)
        # Axes by letter: Keras cannot quantize an equation with an ellipsis.
        axes = "abcdef"[: self.num_axes]
        self.dense = EinsumDense(
            f"{axes}gi,gio->{axes}go",
            output_shape=(
                *(None for _ in axes[1:]),
                self.num_groups,
                self.units // self.num_groups,
            ),
            kernel_initializer=initializer_by_group(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="dense",
        )
        # Not EinsumDense's own bias: with one unit a group, Keras on TensorFlow may
        # add a bias of shape (groups, 1) along another axis of the same size.
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer=self.bias_initializer
        )
        self.dense.build(
            (*(None for _ in axes), self.num_groups, size // self.num_groups)
        )

    def call(self, inputs: Tensor) -> Tensor:
        check_last_axis("inputs", inputs.shape, self.inputs_dim)
        leading = axes = ops.shape(inputs)[:-1]
        if len(axes) != self.num_axes:
            axes = (*(1,) * (self.num_axes - 1), -1)
        group = self.num_groups, self.inputs_dim // self.num_groups
        grouped = ops.reshape(inputs, (*axes, *group))
        outputs = ops.reshape(self.dense(grouped), (*leading, self.units))
        return self.activation(outputs + self.bias)

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        return (*inputs_shape[:-1], self.units)

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            units=self.units,
            num_groups=self.num_groups,
            activation=keras.activations.serialize(self.activation),
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
        )
        return config
