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
        """Makes a square projection of each name, the output's, and the dropout."""
        for name in (*names, "output"):
            self.add_dense(name, hidden_dim, hidden_dim)
        self.dropout_layer = self.make_dropout()

    def add_dense(self, name: str, input_dim: int, units: int, use_bias=True) -> None:
        """Makes `self.<name>_dense`, from `input_dim` to `units`."""
        dense = keras.layers.Dense(
            units,
            use_bias=use_bias,
            # Clones: one initializer used twice gives equal weights.
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_dim))
        setattr(self, f"{name}_dense", dense)

    def make_dropout(self) -> keras.layers.Layer:
        """The dropout of normalised scores."""
        return keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name="dropout"
        )

    def make_separable(
        self, name: str, input_dim: int, units: int, kernel_size: int
    ) -> keras.layers.Layer:
        """A depthwise and a pointwise convolution, with one bias after both."""
        convolution = keras.layers.SeparableConv1D(
            units,
            kernel_size,
            padding="same",
            depthwise_initializer=self.kernel_initializer.clone(),
            pointwise_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )
        convolution.build((None, None, input_dim))
        return convolution

    def attend(self, query, hidden, mask, training, positional=True, **place):
        """Mixes the values of `hidden` for every query.

        Args:
            query: float tensor `[B, T, D]`, what the queries are made of.
            hidden: float tensor `[B, S, D]`, what keys and values are made of.
            mask: bool tensor broadcastable to `[B, T, S]`, true where the key is
                visible to the query, or `None`.
            training: whether dropout is active.
            positional: whether relative positions count; if not, all positions
                are alike, and `T` may differ from `S`.
            **place: what the call takes beyond hidden state and mask.

        Returns:
            `(mixed, scores)`: `[B, T, D]` and `[B, heads, T, S]`.

        Raises:
            ValueError: if the layer cannot mix under any mask, or for any query.
        """
        raise ValueError(
            f"{type(self).__name__} mixes a sequence with itself, under a padding "
            "mask: it has no scores for other queries or under other masks."
        )

    def mix(self, query, hidden, mask=None, training=None, positional=True, **place):
        """As `attend`, after the output projection and without the scores."""
        mixed, _ = self.attend(query, hidden, mask, training, positional, **place)
        return self.output_dense(mixed)

    def call(
        self, hidden, padding_mask=None, training=None, return_attention_scores=False
    ):
        return self.mix_sequence(
            hidden, padding_mask, training, return_attention_scores
        )

    def mix_sequence(
        self, hidden, padding_mask, training, return_attention_scores, **place
    ):
        """What `call` does in every attention; subclasses add their `place`."""
        mask = visible_keys(padding_mask, hidden)
        mask = None if mask is None else mask[:, None, :]
        mixed, scores = self.attend(hidden, hidden, mask, training, **place)
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
