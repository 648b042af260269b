"""What all attention layers share: projections, masks, dropout, the call."""

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.checks import check_rate
from tfeff.layers.checks import check_initializer, visible_keys
from tfeff.layers.dropout import Dropout
from tfeff.layers.recording import SCORES
from tfeff.layers.separable_conv import SeparableConv1D


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

    # Whether there are scores before a softmax to give.
    has_softmax_scores = True
    # Whether more padding changes what a token sees.
    length_dependent = False
    # Whether any query can be mixed under any mask, other ones for each pair.
    any_mask = True

    def __init__(
        self,
        dropout: float = 0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.kernel_initializer = check_initializer(
            "kernel_initializer", kernel_initializer
        )
        self.bias_initializer = check_initializer("bias_initializer", bias_initializer)

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

    def make_dropout(self) -> Dropout:
        """The dropout of normalised scores."""
        return Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")

    def make_separable(
        self, name: str, input_dim: int, units: int, kernel_size: int
    ) -> keras.layers.Layer:
        """A depthwise and a pointwise convolution, with one bias after both."""
        convolution = SeparableConv1D(
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

    def attend(
        self,
        query,
        hidden,
        mask,
        training,
        positional=True,
        return_scores=False,
        **place,
    ):
        """Mixes the values of `hidden` for every query.

        Args:
            query: float tensor `[B, T, D]`, what the queries are made of.
            hidden: float tensor `[B, S, D]`, what keys and values are made of.
            mask: bool tensor broadcastable to `[B, T, S]`, true where the key is
                visible to the query, or `None`.
            training: whether dropout is active.
            positional: whether relative positions count; if not, all positions
                are alike, and `T` may differ from `S`.
            return_scores: whether the scores are wanted, which costs more; `"scores"`
                for those before the softmax.
            **place: what the call takes beyond hidden state and mask.

        Returns:
            `(mixed, scores)`: `[B, T, N, H]`, or `[B, T, D]` where there are no heads,
            and the normalised scores `[B, heads, T, S]` without dropout, or `None`;
            those before the softmax are 0 where the key is hidden.

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
        return self.project_output(mixed)

    def mix_at(self, positions, query, hidden, mask, training=None, **place):
        """As `mix`, for queries at some positions of `hidden`.

        Here all positions are mixed, those without a query for nothing.

        Args:
            positions: integer tensor `[B, M]`; queries of one position are equal.
            query: float tensor `[B, M, D]`.
            hidden: float tensor `[B, S, D]`, what keys and values are made of.
            mask: bool tensor `[B, M, S]`.
            training: whether dropout is active.
            **place: what the call takes beyond hidden state and mask.

        Returns:
            Float tensor `[B, M, D]`.
        """
        rows = ops.one_hot(positions, ops.shape(hidden)[1], dtype=query.dtype)
        # Queries of one position are equal: their mean is any of them.
        count = ops.maximum(ops.sum(rows, axis=1), 1)[..., None]
        placed = ops.einsum("bmt,bmd->btd", rows, query) / count
        mask = ops.einsum("bmt,bms->bts", rows, ops.cast(mask, rows.dtype)) > 0
        mixed = self.mix(placed, hidden, mask, training, **place)
        return ops.einsum("bmt,btd->bmd", rows, mixed)

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
        mixed, scores = self.attend(
            hidden,
            hidden,
            mask,
            training,
            return_scores=return_attention_scores,
            **place,
        )
        output = self.project_output(mixed)
        return (output, scores) if return_attention_scores else output

    def mix_scores(
        self,
        scores,
        value,
        mask,
        training,
        return_scores,
        partition=None,
        relative=None,
    ):
        """What `attend` returns, from scores before the softmax and from values.

        Args:
            scores: float tensor `[B, N, T, S]`.
            value: float tensor `[B, S, N, H]`.
            mask: bool tensor broadcastable to the scores, of their rank, or `None`.
            training, return_scores: as in `attend`.
            partition: float tensor `[N, T, S]` that the softmax is multiplied with,
                or `None`.
            relative: float tensor `[2T, N, H]` that joins the values by relative
                position, or `None`.
        """
        kept = self.dropout_layer.kept(ops.shape(scores), training)
        value = self.dropout_layer.rescale(value, kept)
        if relative is not None:
            relative = self.dropout_layer.rescale(relative, kept)
        mixed = functional.softmax_values(
            scores, value, mask, partition, kept, relative
        )
        if not return_scores:
            return mixed, None
        if return_scores == SCORES:
            return mixed, visible_scores(scores, mask)
        weights = functional.masked_softmax(scores, mask)
        return mixed, weights if partition is None else weights * partition

    def project_output(self, mixed):
        """The output projection, from `[B, T, N, H]` or `[B, T, D]`."""
        if len(mixed.shape) == 4:
            return project_heads(self.output_dense, mixed)
        return self.output_dense(mixed)

    def get_config(self):
        config = super().get_config()
        config.update(
            dropout=self.dropout,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
        )
        return config


def visible_scores(scores, mask):
    """Scores before the softmax, 0 where the key is hidden."""
    return scores if mask is None else ops.where(mask, scores, 0.0)


def project_to_heads(dense: keras.layers.Dense, x, num_heads: int):
    """`dense(x)` in heads, `[B, T, D]` to `[B, T, N, H]`.

    One product, with the kernel cut into heads: the result's own axes would be cut
    at the cost of a copy on some devices.
    """
    if dense.quantization_mode is not None:
        return functional.split_heads(dense(x), num_heads)
    if x.shape[-1] != dense.kernel.shape[0]:
        # Keras' einsum on TensorFlow would cut the batch anew, without a word.
        raise ValueError(
            f"`hidden` must be of size {dense.kernel.shape[0]}, as when the layer was "
            f"built. Received: hidden of shape {tuple(x.shape)}"
        )
    kernel, bias = dense.kernel, dense.bias
    size = kernel.shape[1] // num_heads
    kernel = ops.reshape(kernel, (kernel.shape[0], num_heads, size))
    heads = ops.einsum("btd,dnh->btnh", x, kernel)
    return heads if bias is None else heads + ops.reshape(bias, (num_heads, size))


def project_heads(dense: keras.layers.Dense, x):
    """`dense` of merged heads, `[B, T, N, H]` to `[B, T, D]`, in one product."""
    if dense.quantization_mode is not None:
        return dense(functional.merge_heads(x))
    kernel = ops.reshape(dense.kernel, (*x.shape[2:], dense.units))
    return ops.einsum("btnh,nhd->btd", x, kernel) + ops.convert_to_tensor(dense.bias)


def convolved(convolution, hidden):
    """A separable convolution of sequences; TensorFlow's own fails on empty ones."""
    if hidden.shape[1] != 0:
        return convolution(hidden)
    return convolution(ops.pad(hidden, ((0, 0), (0, 1), (0, 0))))[:, :0]
