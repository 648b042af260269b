import keras
import keras_nlp

from tfeff.encoders import Encoder
from tfeff.objectives.losses import GlobalMeanCrossentropy
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import adamw

_TOKEN_LOSS = "cross_entropy"


@keras.saving.register_keras_serializable(package="tfeff")
class MaskedLM(DistributedModel):
    """Masked language modelling: guess the tokens that were masked out.

    The last hidden states at the masked positions go through a dense layer with
    GELU and a norm, then against the encoder's own token table (tied weights):

        z = LayerNorm(gelu(X^L[m] W + b)) Eᵀ + c        [V] a masked position

    Trained on `tfeff.data.Cache.masked_lm(...)`. The loss is the mean over all
    masked positions of the global batch (`GlobalMeanCrossentropy`), so it is the
    same on one device and on many.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of the encoder's inputs, integer tensors `[B, T]`
            `token_ids`, `segment_ids`, `padding_mask`, and `mask_positions`
            `[B, M]`, the positions to guess (unused slots 0, with weight 0).

    Returns:
        Logits `[B, M, V]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.

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

    def __init__(self, encoder: Encoder, **kwargs):
        if not isinstance(encoder, Encoder):
            raise TypeError(
                "`encoder` must be a `tfeff.encoders.Encoder`. "
                f"Received: encoder={encoder!r}"
            )
        inputs = {
            **encoder.input,
            "mask_positions": keras.Input(
                (None,), dtype="int32", name="mask_positions"
            ),
        }
        head = keras_nlp.layers.MaskedLMHead(
            vocabulary_size=encoder.vocabulary_size,
            token_embedding=encoder.token_embedding,
            intermediate_activation="gelu",
            layer_norm_epsilon=1e-12,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype=encoder.dtype_policy,
            name="head",
        )
        outputs = encoder(encoder.input)
        super().__init__(
            inputs=inputs,
            outputs=head(outputs["sequence_output"], inputs["mask_positions"]),
            **kwargs,
        )
        self.encoder = encoder
        self.head = head
        # Mixed float16 needs the model's own policy for Keras to scale the loss.
        self.dtype_policy = encoder.dtype_policy

    def compile(self, optimizer="auto", loss="auto", weighted_metrics="auto", **kwargs):
        """As `keras.Model.compile`, with the papers' settings by default.

        Args:
            optimizer: by default Shatter's: `tfeff.training.adamw(1e-4,
                warmup_steps=10_000, total_steps=1_000_000)`.
            loss: by default `GlobalMeanCrossentropy`.
            weighted_metrics: by default the accuracy over masked positions. The
                reported `loss` is always the mean over all masked positions seen
                since the metrics were last reset.
            **kwargs: further arguments of `keras.Model.compile`.
        """
        if optimizer == "auto":
            optimizer = adamw(1e-4, warmup_steps=10_000, total_steps=1_000_000)
        if loss == "auto":
            loss = GlobalMeanCrossentropy()
        if weighted_metrics == "auto":
            weighted_metrics = [
                keras.metrics.SparseCategoricalCrossentropy(
                    from_logits=True, name=_TOKEN_LOSS
                ),
                keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
            ]
        super().compile(
            optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs
        )

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def get_metrics_result(self):
        """Metrics by name; `loss` is weighted by masked positions, not by batches."""
        logs = super().get_metrics_result()
        if _TOKEN_LOSS in logs:
            logs["loss"] = logs.pop(_TOKEN_LOSS)
        return logs

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "encoder": keras.saving.serialize_keras_object(self.encoder),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["encoder"] = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**config)
