"""The head that predicts masked tokens by the table of the embedding."""

import keras

from tfeff import ops as functional
from tfeff.encoders import Encoder
from tfeff.layers.checks import check_activation_name
from tfeff.layers.dense import bert_dense
from tfeff.objectives.heads import Head
from tfeff.objectives.token_logits import TableLayer
from tfeff.utils.checks import check_positive

# The arguments that make another head like one.
HEAD_SETTINGS = ("activation", "layer_norm_epsilon")


@keras.saving.register_keras_serializable(package="tfeff")
class MaskedLMHead(TableLayer):
    """BERT's head: logits of all tokens at some positions, with a tied table.

        z = LayerNorm(g(X[m] W + b)) Eᵀ + c

    Logits are in the precision of the weights.

    Args:
        token_embedding: the `keras.layers.ReversibleEmbedding` that holds `E`, or the
            encoder that has it, if the model has that as a layer.
        activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh.
        layer_norm_epsilon: float added to the variance in the norm.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: float tensor `[B, T, D]`.
        mask_positions: integer tensor `[B, M]`.

    Returns:
        Logits `[B, M, V]`.

    Reference:
        Devlin et al., "BERT", section 3.1, and its authors' code.
    """

    def __init__(
        self,
        token_embedding: keras.layers.Layer,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        **kwargs,
    ):
        super().__init__(token_embedding, **kwargs)
        check_activation_name("activation", activation)
        self.activation = activation
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )

    def build(self, inputs_shape, mask_positions_shape=None):
        size = self.token_embedding.output_dim
        # Saved weights have these names.
        self._intermediate_dense = bert_dense(
            size,
            activation=check_activation_name("activation", self.activation),
            dtype=self.dtype_policy,
            name="intermediate_dense",
        )
        self._intermediate_dense.build(inputs_shape)
        self._intermediate_layer_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="intermediate_layer_norm",
        )
        self._intermediate_layer_norm.build((*inputs_shape[:-1], size))
        self._bias = self.add_output_bias("output_bias")

    def call(self, inputs, mask_positions):
        x = functional.gather_positions(inputs, mask_positions)
        x = self._intermediate_layer_norm(self._intermediate_dense(x))
        return self.logits(x, self._bias)

    def compute_output_shape(self, inputs_shape, mask_positions_shape):
        return (*mask_positions_shape, self.token_embedding.input_dim)

    @property
    def settings(self) -> dict:
        """The arguments that make another head like this one."""
        return {name: getattr(self, name) for name in HEAD_SETTINGS}

    def get_config(self):
        return {**super().get_config(), **self.settings}

    def as_head(self) -> Head:
        """All weights but the table, and the settings, as a preset keeps them."""
        return Head(self.own_weights(), self.settings)

    def own_weights(self) -> dict[str, keras.Variable]:
        """All weights but the table, by the names of a preset's head."""
        dense, norm = self._intermediate_dense, self._intermediate_layer_norm
        return {
            "dense/kernel": dense.kernel,
            "dense/bias": dense.bias,
            "norm/gamma": norm.gamma,
            "norm/beta": norm.beta,
            "bias": self._bias,
        }


def make_masked_lm_head(encoder: Encoder, name: str = "head", **kwargs) -> MaskedLMHead:
    """The head for an encoder's hidden states."""
    return MaskedLMHead(encoder, dtype=encoder.dtype_policy, name=name, **kwargs)


def head_settings_like(encoder: Encoder) -> dict:
    """The settings of a head with its encoder's activation and ε, as published ones.

    The head has GELU where the encoder's activation is a function without a name.
    """
    activation = encoder.blocks[0].feedforward.get_config()["activation"]
    return {
        "activation": activation if isinstance(activation, str) else "gelu",
        "layer_norm_epsilon": encoder.layer_norm_epsilon,
    }
