from collections.abc import Sequence

import keras
from keras import ops

from tfeff.compat.layers import LeavesShared
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.checks import check_hidden, visible_keys
from tfeff.layers.shared_blocks import SharedBlocks
from tfeff.utils.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class LayerwisePooling(LeavesShared, SharedBlocks):
    """One vector for each sequence, which attends to every layer, without a position.

    A learnt `y⁰` passes through the encoder's own blocks as the only query, while
    block `k` takes keys and values from its own input `X^k`:

        Y       = LayerNorm(y^k + attention_k(y^k, X^k))
        y^{k+1} = LayerNorm(Y + feedforward_k(Y))

    `y` has no position, so relative terms are left out of the attention: a partition
    counts as 1, and its embeddings and relative biases are not used. The rest is
    multi-head softmax, or one-head attention with the encoder's normaliser. `X^L` is
    not used. The blocks' weights are shared with the encoder, not copied.

    Args:
        blocks: a `tfeff.encoders.Encoder`, or all `EncoderBlock`s of a stack in order:
            the index of a block is that of its layer. A model that has the encoder as a
            layer must pass the encoder: a reloaded model would otherwise have copies of
            its blocks.
        initializer: initializer of `y⁰`.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`. The `dtype` is by
            default that of the blocks.

    Call arguments:
        hidden_states: list of `len(blocks) + 1` float tensors `[B, T, D]`,
            `X^0 … X^L`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` for Keras' masks of the hidden states, or for all where
            there are none.
        training: whether dropout is active.

    Returns:
        Float tensor `y^L` `[B, D]`.

    Raises:
        TypeError: if `blocks` are not `EncoderBlock`s.
        ValueError: if there are none, `dtype` computes in another dtype than the
            blocks, or the hidden states are not one more.

    Example:

    >>> from tfeff.layers import FeedForward, OneHeadAttention
    >>> block = EncoderBlock(OneHeadAttention(num_parts=4), FeedForward(32))
    >>> x = keras.random.normal((2, 5, 8))
    >>> tuple(LayerwisePooling([block])([x, block(x)]).shape)
    (2, 8)

    Reference:
        Tian et al., "Shatter", section 3.4.
    """

    keeps_positions = False

    def shared_layers(self) -> list:
        return self.blocks if self.encoder is None else [self.encoder, *self.blocks]

    def build(self, hidden_states_shape: Shape) -> None:
        if not isinstance(hidden_states_shape[0], (tuple, list)):
            raise TypeError(
                "`hidden_states` must be a list of tensors, X^0 to X^L. Received: one "
                f"of shape {tuple(hidden_states_shape)}"
            )
        self.initial_vector = self.add_first_state(
            "initial_vector", "hidden_states[0]", hidden_states_shape[0]
        )

    def call(
        self,
        hidden_states: Sequence[Tensor],
        padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        if len(hidden_states) != len(self.blocks) + 1:
            raise ValueError(
                "`hidden_states` must be one more than the blocks, X^0 to X^L. "
                f"Received: {len(hidden_states)} hidden states for "
                f"{len(self.blocks)} blocks"
            )
        batch_size = ops.shape(hidden_states[0])[0]
        y = ops.broadcast_to(
            self.initial_vector, (batch_size, 1, self.initial_vector.shape[0])
        )
        for index, (block, hidden) in enumerate(zip(self.blocks, hidden_states)):
            check_hidden(f"hidden_states[{index}]", hidden.shape, self.input_dim)
            inputs = AttentionInputs(
                y,
                hidden,
                visible=visible_keys(padding_mask, hidden),
                positional=False,
                layer_index=index,
                training=training,
            )
            y = block.attend(inputs)
        return y[:, 0]

    def compute_output_shape(
        self, hidden_states_shape: Sequence[Shape], *_: Shape, **__: Shape
    ) -> Shape:
        return (hidden_states_shape[0][0], hidden_states_shape[0][-1])
