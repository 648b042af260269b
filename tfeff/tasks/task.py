"""Base classes of the models for fine-tuning."""

import keras

from tfeff.encoders import Encoder
from tfeff.layers import LayerwisePooling
from tfeff.layers.dense import Dense
from tfeff.layers.initializer import bert_initializer
from tfeff.objectives.objective import Objective
from tfeff.training.optimizers import AdamW
from tfeff.utils.checks import check_choice, check_rate

POOLINGS = ("cls", "layerwise")


class Task(Objective):
    """A functional model of an encoder and a head.

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        inputs: dict of `keras.KerasTensor`.
        outputs: the head's output, a `keras.KerasTensor` or a dict of them.
        **kwargs: `name` and `trainable`.
    """

    def __init__(self, encoder: Encoder, inputs, outputs, **kwargs):
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.encoder = encoder
        # Mixed float16 needs the model's own policy for Keras to scale the loss.
        self.dtype_policy = encoder.dtype_policy

    def default_optimizer(self):
        """AdamW for fine-tuning, at a constant rate."""
        return AdamW(1e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)


class PooledTask(Task):
    """A task whose head reads one vector a sequence.

        v = tanh(X^L[0] W + b)                  `"cls"`
        v = LayerwisePooling(X^0 … X^L)         `"layerwise"`
        z = dropout(v) W' + b'

    Args:
        encoder: the `tfeff.encoders.Encoder`.
        num_outputs: integer, the size of `z`.
        pooling: `"cls"` or `"layerwise"`.
        dropout: float in [0, 1), rate on `v`.
        inputs: the model's inputs; default: the encoder's.
        rows: the encoder's inputs `[B', T]`, computed from `inputs`.
        finish: maps `z` `[B', num_outputs]` to the model's output.
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
        dropout = check_rate("dropout", dropout)
        rows = encoder.input if rows is None else rows
        hidden = encoder(rows)
        if pooling == "cls":
            pooler = _dense(encoder, encoder.hidden_dim, "pooler", activation="tanh")
            vector = pooler(hidden["sequence_output"][:, 0])
        else:
            layer = LayerwisePooling(
                encoder.blocks,
                initializer=bert_initializer(),
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

    def get_config(self):
        config = super().get_config()
        config.update(pooling=self.pooling, dropout=self.dropout)
        return config


def _dense(encoder, units, name, **kwargs):
    return Dense(
        units,
        kernel_initializer=bert_initializer(),
        dtype=encoder.dtype_policy,
        name=name,
        **kwargs,
    )
