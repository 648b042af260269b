"""What the models of the fine-tuning tasks share."""

import keras

from tfeff.checks import check_choice, check_rate
from tfeff.encoders import Encoder
from tfeff.layers import LayerwisePooling
from tfeff.objectives.losses import GlobalMeanCrossentropy
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import AdamW

POOLINGS = ("cls", "layerwise")
MEAN_LOSS = "mean_loss"


def check_encoder(encoder: object) -> Encoder:
    """Returns `encoder` if it is one, else raises."""
    if not isinstance(encoder, Encoder):
        raise TypeError(
            "`encoder` must be a `tfeff.encoders.Encoder`. "
            f"Received: encoder={encoder!r}"
        )
    return encoder


class Task(DistributedModel):
    """A functional model of an encoder and a head.

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        inputs: dict of `keras.KerasTensor`.
        outputs: what the head makes of them.
        **kwargs: `name` and `trainable`.
    """

    def __init__(self, encoder: Encoder, inputs, outputs, **kwargs):
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.encoder = encoder
        # Mixed float16 needs the model's own policy for Keras to scale the loss.
        self.dtype_policy = encoder.dtype_policy

    def default_loss(self) -> keras.losses.Loss:
        """The loss of `compile`'s default."""
        raise NotImplementedError

    def default_metrics(self, name: str) -> list[keras.metrics.Metric]:
        """New metrics: the first, called `name`, is the mean loss of all examples."""
        raise NotImplementedError

    def compile(self, optimizer="auto", loss="auto", weighted_metrics="auto", **kwargs):
        """As `keras.Model.compile`, with fine-tuning's settings by default.

        Args:
            optimizer: by default `tfeff.training.AdamW` at the constant rate 1e-5, with
                decay 0.01, ε 1e-6 and the gradient's norm clipped to 1.
            loss: by default the mean over all weighted examples of the global batch.
            weighted_metrics: by default the task's. The reported `loss` is always the
                mean over all examples seen since the metrics were last reset.
            **kwargs: further arguments of `keras.Model.compile`.
        """
        if optimizer == "auto":
            optimizer = AdamW(
                1e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
            )
        if loss == "auto":
            loss = self.default_loss()
        if weighted_metrics == "auto":
            weighted_metrics = self.default_metrics(MEAN_LOSS)
        super().compile(
            optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs
        )

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def get_metrics_result(self):
        """Metrics by name; `loss` is weighted by examples, not by batches."""
        logs = super().get_metrics_result()
        if MEAN_LOSS in logs:
            logs["loss"] = logs.pop(MEAN_LOSS)
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


class PooledTask(Task):
    """A task whose head reads one vector a sequence.

        v = tanh(X^L[0] W + b)                  `"cls"`
        v = LayerwisePooling(X^0 … X^L)         `"layerwise"`
        z = dropout(v) W' + b'

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        num_outputs: integer, numbers in `z`.
        pooling: `"cls"` or `"layerwise"`.
        dropout: float in [0, 1), rate on `v`.
        inputs: the model's inputs; default: the encoder's.
        rows: the encoder's inputs made of them, `[B', T]`.
        finish: makes the model's output of `z` `[B', num_outputs]`.
        **kwargs: `name` and `trainable`.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_outputs: int,
        pooling: str,
        dropout: float,
        inputs=None,
        rows=None,
        finish=lambda z: z,
        **kwargs,
    ):
        check_choice("pooling", pooling, POOLINGS)
        check_rate("dropout", dropout)
        rows = encoder.input if rows is None else rows
        hidden = encoder(rows)
        if pooling == "cls":
            pooler = _dense(encoder, encoder.hidden_dim, "pooler", activation="tanh")
            vector = pooler(hidden["sequence_output"][:, 0])
        else:
            layer = LayerwisePooling(
                encoder.blocks,
                initializer=_initializer(),
                dtype=encoder.dtype_policy,
                name="pooler",
            )
            vector = layer(hidden["hidden_states"], padding_mask=rows["padding_mask"])
        vector = keras.layers.Dropout(
            dropout, dtype=encoder.dtype_policy, name="dropout"
        )(vector)
        outputs = finish(_dense(encoder, num_outputs, "logits")(vector))
        inputs = encoder.input if inputs is None else inputs
        super().__init__(encoder, inputs, outputs, **kwargs)
        self.pooling = pooling
        self.dropout = float(dropout)

    def default_loss(self):
        return GlobalMeanCrossentropy()

    def default_metrics(self, name):
        return [
            keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name=name),
            keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
        ]

    def get_config(self):
        config = super().get_config()
        config.update(pooling=self.pooling, dropout=self.dropout)
        return config


def _dense(encoder, units, name, **kwargs):
    return keras.layers.Dense(
        units,
        kernel_initializer=_initializer(),
        dtype=encoder.dtype_policy,
        name=name,
        **kwargs,
    )


def _initializer():
    return keras.initializers.TruncatedNormal(stddev=0.02)
