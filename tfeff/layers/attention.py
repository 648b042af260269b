"""What all attention layers share: projections, masks, dropout, the call."""

import keras

from tfeff.checks import check_rate
from tfeff.layers.checks import visible_keys


class Attention(keras.layers.Layer):
    """Base class of the attention layers.

    A subclass builds its projections in `build` and mixes values in `attend`;
    this class checks the mask, applies the output projection `W^O` and returns
    the scores on request.

    Args:
        dropout: float in [0, 1), dropout rate of the normalised scores.
        kernel_initializer: initializer of the projection kernels.
        bias_initializer: initializer of the projection biases.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build_projections(self, hidden_dim: int, names) -> None:
        """Makes one `Dense` of `hidden_dim` units a name, and `W^O`, and dropout."""
        for name in (*names, "output"):
            dense = keras.layers.Dense(
                hidden_dim,
                # Clones: one initializer used twice gives equal weights.
                kernel_initializer=self.kernel_initializer.clone(),
                bias_initializer=self.bias_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            dense.build((None, None, hidden_dim))
            setattr(self, f"{name}_dense", dense)
        self.dropout_layer = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name="dropout"
        )

    def attend(self, query, hidden, mask, training, positional=True):
        """Mixes the values of `hidden` for every query.

        Args:
            query: float tensor `[B, T, D]`, what the queries are made of.
            hidden: float tensor `[B, S, D]`, what keys and values are made of.
            mask: bool tensor `[B, S]`, true at visible keys, or `None`.
            training: whether dropout is active.
            positional: whether relative positions count; if not, all positions
                are alike, and `T` may differ from `S`.

        Returns:
            `(mixed, scores)`: `[B, T, D]` and `[B, heads, T, S]`.
        """
        raise NotImplementedError

    def pool(self, query, hidden, padding_mask=None, training=None):
        """Attention of queries that have no position, `[B, T, D]` to `[B, T, D]`."""
        mask = visible_keys(padding_mask, hidden)
        mixed, _ = self.attend(query, hidden, mask, training, positional=False)
        return self.output_dense(mixed)

    def call(
        self, hidden, padding_mask=None, training=None, return_attention_scores=False
    ):
        mask = visible_keys(padding_mask, hidden)
        mixed, scores = self.attend(hidden, hidden, mask, training)
        output = self.output_dense(mixed)
        return (output, scores) if return_attention_scores else output

    def get_config(self):
        config = super().get_config()
        config.update(
            dropout=self.dropout,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
        )
        return config
