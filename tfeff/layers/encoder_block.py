import functools
import inspect
from collections.abc import Sequence

import keras

from tfeff.checks import check_positive, check_rate
from tfeff.layers.checks import check_hidden, visible_keys
from tfeff.layers.dropout import Dropout, draw_seeds, drawn_seeds
from tfeff.layers.recording import active_recording


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderBlock(keras.layers.Layer):
    """One layer of an encoder: any attention, any feed-forward, post-norm.

        Y  = LayerNorm(X + dropout(attention(X)))
        X' = LayerNorm(Y + dropout(feedforward(Y)))

    Args:
        attention: attention layer, called
            `attention(hidden, padding_mask=..., training=...)`, `[B, T, D]` to
            `[B, T, D]` after its output projection.
        feedforward: layer from `[B, T, D]` to `[B, T, D]`.
        dropout: float in [0, 1), dropout rate of both branches.
        layer_norm_epsilon: float added to the variance.
        memory_efficient: whether training keeps the block's input alone and computes
            the rest again for the gradient, in about a third more time. Values and
            gradients are the same, dropout included.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` when all are real.
        segment_ids: integer tensor `[B, T]`, handed to an attention that takes it.
        layer_index: integer, the block's place in its stack, handed to an attention
            that takes it.
        training: whether dropout is active.

    Returns:
        Float tensor `[B, T, D]`.

    Raises:
        TypeError: if `attention` or `feedforward` is not a Keras layer.
        ValueError: as the attention layer.

    Example:

    >>> from tfeff.layers import FeedForward, OneHeadAttention
    >>> block = EncoderBlock(OneHeadAttention(num_parts=4), FeedForward(32))
    >>> tuple(block(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 8)

    Reference:
        Devlin et al., "BERT", section 3.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feedforward: keras.layers.Layer,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-12,
        memory_efficient: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, layer in (("attention", attention), ("feedforward", feedforward)):
            if not isinstance(layer, keras.layers.Layer):
                raise TypeError(
                    f"`{name}` must be a Keras layer. Received: {name}={layer!r}"
                )
        self.attention = attention
        self.feedforward = feedforward
        self._taken = frozenset(inspect.signature(attention.call).parameters)
        self.dropout = check_rate("dropout", dropout)
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )
        self.memory_efficient = bool(memory_efficient)

    def build(self, hidden_shape):
        check_hidden("hidden", hidden_shape)
        if not self.attention.built:
            self.attention.build(hidden_shape)
        if not self.feedforward.built:
            self.feedforward.build(hidden_shape)
        self.attention_norm = self._norm(hidden_shape, "attention_norm")
        self.feedforward_norm = self._norm(hidden_shape, "feedforward_norm")
        self.attention_dropout = self._dropout("attention_dropout")
        self.feedforward_dropout = self._dropout("feedforward_dropout")

    def _norm(self, hidden_shape, name):
        norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )
        norm.build(hidden_shape)
        return norm

    def _dropout(self, name):
        return Dropout(self.dropout, dtype=self.dtype_policy, name=name)

    def call(
        self,
        hidden,
        padding_mask=None,
        segment_ids=None,
        layer_index=None,
        training=None,
    ):
        place = self._place(segment_ids=segment_ids, layer_index=layer_index)
        recording = active_recording()
        attend = self.attention
        if recording is not None:
            attend = functools.partial(recording.attend, self.attention)

        def run(hidden):
            mixed = attend(
                hidden, padding_mask=padding_mask, training=training, **place
            )
            return self._add(hidden, mixed, training)

        if recording is not None:
            recording.hidden_states.append(run(hidden))
            return recording.hidden_states[-1]
        if not self.memory_efficient or not training:
            return run(hidden)
        seeds = draw_seeds(self._flatten_layers())

        def run_again(hidden):
            with drawn_seeds(seeds):
                return run(hidden)

        return keras.remat(run_again)(hidden)

    def pool(self, query, hidden, padding_mask=None, training=None):
        """The block applied to queries without a position, over `hidden`.

        Args:
            query: float tensor `[B, T, D]`.
            hidden: float tensor `[B, S, D]`, the input of this block.
            padding_mask: mask `[B, S]` of `hidden`, or `None`.
            training: whether dropout is active.

        Returns:
            Float tensor `[B, T, D]`.
        """
        mask = visible_keys(padding_mask, hidden)
        mask = None if mask is None else mask[:, None, :]
        mixed = self.attention.mix(query, hidden, mask, training, positional=False)
        return self._add(query, mixed, training)

    def stream(self, query, hidden, mask, training=None, positions=None, **place):
        """The block applied to queries at positions of `hidden`, under any mask.

        Args:
            query: float tensor `[B, M, D]`.
            hidden: float tensor `[B, T, D]`, what keys and values are made of.
            mask: bool tensor `[B, M, T]`, true where the key is visible to the query.
            training: whether dropout is active.
            positions: integer tensor `[B, M]` of the queries' positions; `None` if
                they are those of all positions in order.
            **place: `segment_ids` and `layer_index`, as in the call.

        Returns:
            Float tensor `[B, M, D]`.
        """
        place = self._place(**place)
        if positions is None:
            mixed = self.attention.mix(query, hidden, mask, training, **place)
        else:
            mixed = self.attention.mix_at(
                positions, query, hidden, mask, training, **place
            )
        return self._add(query, mixed, training)

    def _place(self, **place):
        """Of what the block knows, what its attention's call takes."""
        return {name: value for name, value in place.items() if name in self._taken}

    def _add(self, hidden, mixed, training):
        """Residuals, norms and the feed-forward network after the attention."""
        mixed = self.attention_dropout(mixed, training=training)
        hidden = self.attention_norm(hidden + mixed)
        change = self.feedforward_dropout(self.feedforward(hidden), training=training)
        return self.feedforward_norm(hidden + change)

    def get_config(self):
        config = super().get_config()
        config.update(
            attention=keras.layers.serialize(self.attention),
            feedforward=keras.layers.serialize(self.feedforward),
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            memory_efficient=self.memory_efficient,
        )
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("attention", "feedforward"):
            config[name] = keras.layers.deserialize(config[name])
        return cls(**config)


def blocks_of(encoder) -> list[EncoderBlock]:
    """The blocks of an encoder, or raises if it has none."""
    if not hasattr(encoder, "blocks"):
        raise TypeError(
            f"`encoder` must be a `tfeff.encoders.Encoder`. Received: {encoder=}"
        )
    return check_blocks(encoder.blocks)


def check_blocks(blocks) -> list[EncoderBlock]:
    """Returns `blocks` as a list if they are an encoder's blocks, else raises."""
    if not isinstance(blocks, Sequence) or not blocks:
        raise ValueError(
            "`blocks` must be a list of at least one block. "
            f"Received: blocks={blocks!r}"
        )
    for block in blocks:
        if not isinstance(block, EncoderBlock):
            raise TypeError(
                "`blocks` must be `tfeff.layers.EncoderBlock`s. "
                f"Received: {block!r} among them"
            )
    return list(blocks)
