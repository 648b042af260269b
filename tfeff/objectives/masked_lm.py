from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.layers.checks import check_activation_name
from tfeff.layers.dense import bert_dense
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import (
    Objective,
    mask_positions_input,
)
from tfeff.objectives.token_logits import TableLayer
from tfeff.utils.checks import check_positive
from tfeff.utils.types import Config

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
        self._bias = self.add_weight(
            name="output_bias",
            shape=(self.token_embedding.input_dim,),
            initializer="zeros",
            autocast=False,  # The logits have its precision, whoever calls.
        )

    def call(self, inputs, mask_positions):
        x = functional.gather_positions(inputs, mask_positions)
        x = self._intermediate_layer_norm(self._intermediate_dense(x))
        logits = self.token_embedding(x, reverse=True)
        return ops.cast(logits, self._bias.dtype) + self._bias

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


@keras.saving.register_keras_serializable(package="tfeff")
class MaskedLM(Objective):
    """Masked language modelling: predict the masked tokens.

    The last hidden states at the masked positions go through a dense layer with
    GELU and a norm, and are multiplied by the encoder's token table (tied weights):

        z = LayerNorm(g(X^L[m] W + b)) Eᵀ + c           [V] a masked position

    Trained on `tfeff.data.MaskedTokens`. The loss is the mean over all
    masked positions of the global batch (`GlobalMeanCrossentropy`), so it is the
    same on one device and on many.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh. Published
            models have that of their encoder.
        layer_norm_epsilon: float added to the variance in the norm.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of the encoder's inputs, integer tensors `[B, T]`
            `token_ids`, `segment_ids`, `padding_mask`, and `mask_positions`
            `[B, M]`, the positions to predict (0 in unused slots, whose weight is 0).

    Returns:
        Logits `[B, M, V]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if `activation` is unknown, or `layer_norm_epsilon` not above 0.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = MaskedLM(encoder)
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> logits = model(
    ...     {
    ...         "token_ids": ones,
    ...         "segment_ids": ones,
    ...         "padding_mask": ones,
    ...         "mask_positions": ones[:, :2],
    ...     }
    ... )
    >>> tuple(logits.shape)
    (2, 2, 100)

    Reference:
        Devlin et al., "BERT", section 3.1; Tian et al., "Shatter", section A.2.
    """

    def __init__(
        self,
        encoder: Encoder,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        inputs = {**encoder.input, "mask_positions": mask_positions_input()}
        head = make_masked_lm_head(
            encoder, activation=activation, layer_norm_epsilon=layer_norm_epsilon
        )
        outputs = encoder(encoder.input)
        logits = head(outputs["sequence_output"], inputs["mask_positions"])
        super().__init__(encoder, inputs, logits, **kwargs)
        self.head = head

    @property
    def head_settings(self) -> dict:
        """The arguments that the head was made with."""
        return self.head.settings

    def heads(self) -> dict[str, Head]:
        return {"masked_lm": self.head.as_head()}

    def get_config(self) -> Config:
        return {**super().get_config(), **self.head_settings}
