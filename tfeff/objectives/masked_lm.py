from typing import Any

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.objectives.heads import Head
from tfeff.objectives.masked_lm_head import make_masked_lm_head
from tfeff.objectives.objective import Objective, mask_positions_input
from tfeff.utils.types import Config


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
