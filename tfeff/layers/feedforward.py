import keras

from tfeff import ops as functional
from tfeff.checks import check_integer
from tfeff.layers.checks import check_hidden


@keras.saving.register_keras_serializable(package="tfeff")
class FeedForward(keras.layers.Layer):
    """The position-wise feed-forward network of an encoder block.

        Y = g(X W_1 + b_1) W_2 + b_2

    `W_1` is `[D, intermediate_dim]`, `W_2` back to `[intermediate_dim, D]`, and
    `g` by default the exact GELU, `x Φ(x)`.

    Args:
        intermediate_dim: integer, the inner width.
        activation: activation function `g`, by name or callable.
        kernel_initializer: initializer of both kernels.
        bias_initializer: initializer of both biases.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.

    Returns:
        Float tensor `[B, T, D]`.

    Raises:
        ValueError: if `intermediate_dim` is below 1.

    Example:

    >>> tuple(FeedForward(intermediate_dim=32)(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 8)

    Reference:
        Vaswani et al., "Attention is all you need", section 3.3; Devlin et al.,
        "BERT", for the GELU.
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation="gelu",
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = check_integer("intermediate_dim", intermediate_dim)
        # Keras' own GELU is exact to float32 only, in every dtype.
        self.activation = (
            functional.gelu
            if activation == "gelu"
            else keras.activations.get(activation)
        )
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, hidden_shape):
        check_hidden("hidden", hidden_shape)
        self.intermediate_dense = self._dense(
            hidden_shape[-1], self.intermediate_dim, self.activation, "intermediate"
        )
        self.output_dense = self._dense(
            self.intermediate_dim, hidden_shape[-1], None, "output"
        )

    def _dense(self, input_dim, units, activation, name):
        dense = keras.layers.Dense(
            units,
            activation=activation,
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_dim))
        return dense

    def call(self, hidden):
        return self.output_dense(self.intermediate_dense(hidden))

    def get_config(self):
        config = super().get_config()
        config.update(
            intermediate_dim=self.intermediate_dim,
            activation="gelu"
            if self.activation is functional.gelu
            else keras.activations.serialize(self.activation),
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
        )
        return config
