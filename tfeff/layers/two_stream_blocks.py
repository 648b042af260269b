from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.checks import (
    check_floats,
    check_hidden,
    check_token_ids,
    visible_keys,
)
from tfeff.layers.shared_blocks import SharedBlocks
from tfeff.ops.ids import as_int32
from tfeff.utils.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class TwoStreamBlocks(SharedBlocks):
    """An encoder's blocks run on two streams, to predict tokens in any order (XLNet).

    The content stream `h` of a position attends to its own token and those of lower or
    equal rank; the query stream `g` to tokens of lower rank only, so that it can
    predict its own. Both pass through the same blocks:

        g^{k+1}_i = block_k(g^k_i, keys and values from h^k_j with rank_j < rank_i)
        h^{k+1}_i = block_k(h^k_i, keys and values from h^k_j with rank_j ≤ rank_i)

    from `h⁰`, the embedding, and a learnt vector as `g⁰`, the same at all positions
    unless `query` adds these. The weights of the blocks are shared with the encoder,
    not copied. Ranks are indices in the order of prediction; tokens that are not to be
    predicted all have one lowest rank, such as -1 (partial prediction): all positions
    attend to them, and they attend to no predicted token. The query of a position
    without any token of lower rank attends to nothing.

    Any attention that scores all pairs is supported: softmax, partitioned, one-head,
    relative and sparse, but not blockwise attention or convolutions.

    Args:
        blocks: a `tfeff.encoders.Encoder`, or all `EncoderBlock`s of a stack in order:
            the index of a block is that of its layer. A model that has the encoder as a
            layer must pass the encoder: a reloaded model would otherwise have copies of
            its blocks.
        initializer: initializer of `g⁰`.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`. The `dtype` is by
            default that of the blocks.

    Call arguments:
        hidden: float tensor `h⁰` `[B, T, D]`.
        ranks: integer tensor `[B, T]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        target_positions: integer tensor `[B, M]`, the positions of the query stream;
            `None` means all, in order. A position may be repeated.
        segment_ids: integer tensor `[B, T]`, for attentions that accept it.
        query: float tensor broadcastable to `[B, M, D]`, added to `g⁰`: absolute
            positions, for blocks without relative ones; or `None`.
        training: whether dropout is active.

    Returns:
        `(content, query)`, both streams after the last block: `h^L` `[B, T, D]` and
        `g^L` `[B, M, D]` (`M = T` without `target_positions`).

    Raises:
        ValueError: if there are no blocks, `dtype` computes in another dtype than the
            blocks, an attention does not support such masks, or a shape is wrong.
        TypeError: if `blocks` are not `EncoderBlock`s, or ids are not integers.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build(
    ...     "xlnet_base", vocabulary_size=50, num_layers=2, hidden_dim=24
    ... )
    >>> ids = keras.ops.ones((2, 5), dtype="int32")
    >>> content, query = TwoStreamBlocks(encoder.blocks)(
    ...     encoder.embedding(ids),
    ...     keras.ops.convert_to_tensor([[-1, 0, -1, 1, -1]] * 2),
    ...     target_positions=keras.ops.convert_to_tensor([[1, 3]] * 2),
    ...     segment_ids=ids,
    ... )
    >>> tuple(content.shape), tuple(query.shape)
    ((2, 5, 24), (2, 2, 24))

    Reference:
        Yang et al., "XLNet", section 2.3.
    """

    def build(self, hidden_shape: Shape, **_: Any) -> None:
        self.mask_embedding = self.add_first_state(
            "mask_embedding", "hidden", hidden_shape
        )

    def call(
        self,
        hidden: Tensor,
        ranks: Tensor,
        padding_mask: Tensor | None = None,
        target_positions: Tensor | None = None,
        segment_ids: Tensor | None = None,
        query: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        check_hidden("hidden", hidden.shape, self.input_dim)
        check_floats("hidden", hidden)
        ranks = as_int32("ranks", check_token_ids("ranks", ranks, hidden.shape[:2]))
        batch, length, size = ops.shape(hidden)
        count, query_ranks = length, ranks
        if target_positions is not None:
            target_positions = check_token_ids("target_positions", target_positions)
            query_ranks = functional.gather_positions(ranks, target_positions)
            count = ops.shape(target_positions)[1]
        content = hidden
        start = self.mask_embedding if query is None else self.mask_embedding + query
        query = ops.broadcast_to(start, (batch, count, size))
        visible = visible_keys(padding_mask, hidden)
        for index, block in enumerate(self.blocks):
            content_inputs = AttentionInputs(
                content,
                content,
                visible=visible,
                query_ranks=ranks + 1,  # Its own token, too.
                key_ranks=ranks,
                segment_ids=segment_ids,
                layer_index=index,
                training=training,
            )
            query_inputs = content_inputs._replace(
                query=query, query_ranks=query_ranks, positions=target_positions
            )
            query, content = block.attend(query_inputs), block.attend(content_inputs)
        return content, query

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> tuple[Any, None]:
        """The content stream keeps the mask of its input; the query stream has none."""
        return previous_mask, None

    def compute_output_shape(
        self,
        hidden_shape: Shape,
        ranks_shape: Shape | None = None,
        padding_mask_shape: Shape | None = None,
        target_positions_shape: Shape | None = None,
        *_: Shape,
        **__: Shape,
    ) -> tuple[Shape, Shape]:
        count = (target_positions_shape or hidden_shape)[1]
        return tuple(hidden_shape), (hidden_shape[0], count, hidden_shape[-1])
