from typing import Any, NamedTuple

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention import stands_for
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.scored_attention import HOOKS
from tfeff.layers.self_attention import SelfAttention
from tfeff.ops import kernels
from tfeff.ops.attention import scaled
from tfeff.ops.kernels.query_blocks import over_query_blocks
from tfeff.ops.masking import all_true
from tfeff.ops.sparse import (
    PATTERNS,
    fixed_pattern_at,
    from_windows,
    own_positions,
    split_windows,
    summary_positions,
    visible_once,
    windows,
)
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.types import Config, Tensor

# With "auto", sequences up to this length are computed under a mask of all pairs: with
# few windows, TPUs take 1.4 times as long for windows as for the mask.
_MASKED_LENGTH = 512


class _Windows(NamedTuple):
    """Queries and keys by window, with the `t` positions of `W` windows on one axis.

    Attributes:
        vectors: float tensor `[B, N, W t, H]` of queries.
        keys, values: float tensors `[B, N, W t, H]`.
        visible: bool tensor `[B or 1, 1, W t, 1]`, false where a key is masked.
        dropout_bits: integer tensor `[B, N, W t, 1]`, or `None`.
    """

    vectors: Any
    keys: Any
    values: Any
    visible: Any
    dropout_bits: Any


class _Summaries(NamedTuple):
    """The keys that all windows share.

    Attributes:
        keys, values: float tensors `[B, N, S, H]`.
        visible: bool tensor `[B, 1, S, 1]`, false at padding, or `None`.
    """

    keys: Any
    values: Any
    visible: Any


@keras.saving.register_keras_serializable(package="tfeff")
class SparseAttention(SelfAttention):
    """Multi-head softmax attention by a fixed sparse pattern (SparseBERT).

    `SelfAttention` in which a query attends to its own window of `stride` positions,
    and to the last `expressivity` positions of every window (`tfeff.ops.fixed_pattern`
    has both published versions). In sequences of 512 and 1024 these are 44.19 % and
    34.97 % of the pairs with the defaults.

    Only these pairs are computed and stored: memory grows like
    `T (stride + T · expressivity / stride)`. For returned scores, single queries or
    two streams, and with `query_block_size="auto"` for sequences of at most 512,
    all pairs are computed under the mask of the pattern.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        stride: integer, positions in a window.
        expressivity: integer, positions in a window's summary, at most `stride`.
        pattern: `"fairseq"`, as in the baseline of the BlockBERT paper, or
            `"sparse_transformer"`, as in the original paper.
        query_block_size: integer, `None` or `"auto"`: the number of queries whose
            scores exist at a time (`tfeff.layers.scored_attention`), rounded down to
            whole windows, but one at least.
        dropout: float in [0, 1), dropout rate of the normalised scores.
        kernel_initializer: initializer of the projection kernels.
        bias_initializer: initializer of the projection biases.
        disabled_heads: indices of heads that are switched off: their outputs are 0, in
            training and in inference.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)`, scores
            `[B, N, T, T]`, instead of the output `[B, T, D]` alone.

    Raises:
        ValueError: if `pattern` is unknown, `expressivity` is above `stride`, or as
            `SelfAttention`.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> layer = SparseAttention(num_heads=2, stride=3, expressivity=1)
    >>> tuple(layer(hidden).shape)
    (2, 7, 8)

    Reference:
        Child et al., "Generating long sequences with sparse Transformers", section
        4.3; Qiu et al., "Blockwise self-attention", sections 4 and A.3.
    """

    def __init__(
        self,
        num_heads: int,
        stride: int = 128,
        expressivity: int = 32,
        pattern: str = "fairseq",
        **kwargs: Any,
    ):
        super().__init__(num_heads, **kwargs)
        self.stride = check_integer("stride", stride)
        self.expressivity = check_integer(
            "expressivity", expressivity, maximum=self.stride
        )
        self.pattern = check_choice("pattern", pattern, PATTERNS)
        self.overlap = PATTERNS[self.pattern]

    def mask(self, queries: Queries, keys: Keys) -> Tensor:
        mask = super().mask(queries, keys)
        if queries.positions is None:
            return mask
        positions = ops.arange(ops.shape(keys.vectors)[2], dtype="int32")
        pattern = fixed_pattern_at(
            queries.positions, positions, self.stride, self.expressivity, self.pattern
        )
        axes = 1 if len(pattern.shape) == 3 else (0, 1)
        return all_true(mask, ops.expand_dims(pattern, axes))

    def attend_heads(
        self, inputs: AttentionInputs, return_scores: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        length = ops.shape(inputs.hidden)[1]
        if return_scores or not self._has_windows(inputs, length):
            return super().attend_heads(inputs, return_scores)
        queries, keys = self.queries_and_keys(inputs)
        visible = ops.ones((1, 1, length, 1), dtype="bool")
        if keys.visible is not None:
            visible = ops.swapaxes(keys.visible, 2, 3)

        def by_window(x):
            return None if x is None else windows(x, self.stride, self.overlap)

        def summary(x):
            return summary_positions(
                x, length, self.stride, self.expressivity, self.overlap
            )

        queries = _Windows(
            by_window(queries.vectors),
            by_window(keys.vectors),
            by_window(keys.values),
            visible_once(by_window(visible), self.stride, self.overlap),
            by_window(queries.dropout_bits),
        )
        summaries = _Summaries(
            summary(queries.keys),
            summary(queries.values),
            None if keys.visible is None else summary(queries.visible),
        )

        def in_blocks(size, longest=None):
            return over_query_blocks(
                self._window_context,
                queries,
                {},
                summaries,
                summaries.values,
                size,
                longest=longest,
            )

        def whole():
            return self._window_context(queries, {}, summaries)

        together = self.stride + self.overlap
        context = self.by_length(whole, in_blocks, inputs, queries, together=together)
        return from_windows(context, length, self.stride, self.overlap), None

    def _has_windows(self, inputs, length) -> bool:
        """Whether windows are computed: all positions are queries under the pattern."""
        everything = self.expressivity == self.stride
        if isinstance(length, int):
            most = _MASKED_LENGTH if self.query_block_size == "auto" else 0
            everything |= length <= max(self.stride + self.overlap, most)
        else:
            # A short text has empty summaries; Keras infers shapes on JAX by lengths
            # without a value.
            everything |= self.is_converted or not ops.is_tensor(length)
        restricted = inputs.positions is not None or inputs.query_ranks is not None
        if everything or restricted or not inputs.positional:
            return False
        return stands_for(self, "_window_context", HOOKS)

    def _window_context(self, queries, relative, summaries, context=None):
        """Context vectors `[B, N, W t, H]`, not scaled up for dropout."""

        def split(x):
            return split_windows(x, self.stride + self.overlap)

        def own(x):
            return own_positions(x, self.stride, self.expressivity, self.overlap)

        query = scaled(queries.vectors)
        own_scores = ops.einsum("bnwth,bnwch->bnwtc", split(query), own(queries.keys))
        shared_scores = split(ops.einsum("bnth,bnsh->bnts", query, summaries.keys))
        keep = None, None
        if queries.dropout_bits is not None:
            own_count = self.stride - self.expressivity
            length = own_count + ops.shape(summaries.keys)[2]
            keep = functional.keep_mask_from_bits(
                queries.dropout_bits, length, self.dropout_layer.rate
            )
            keep = split(keep)
            keep = keep[..., :own_count], keep[..., own_count:]
        visible = summaries.visible
        if visible is not None:
            visible = ops.expand_dims(ops.swapaxes(visible, 2, 3), 2)
        masks = ops.swapaxes(own(queries.visible), 3, 4), visible
        values = own(queries.values), summaries.values
        if context is not None:
            context = split(context)
        scores = own_scores, shared_scores
        result = kernels.window_values(scores, values, masks, keep, context)
        return ops.reshape(result, ops.shape(queries.vectors))

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            stride=self.stride, expressivity=self.expressivity, pattern=self.pattern
        )
        return config
