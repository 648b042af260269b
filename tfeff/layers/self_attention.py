from typing import Any

import keras

from tfeff.layers.attention import Ability, project_to_heads, stands_for
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.checks import check_disabled_heads, check_divides, check_hidden
from tfeff.layers.scored_attention import HOOKS, ScoredAttention
from tfeff.ops import kernels
from tfeff.ops.kernels import fused
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Config, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class SelfAttention(ScoredAttention):
    """Multi-head softmax self-attention, the baseline of every paper.

    With `Q = X W^Q + b^Q`, and `K`, `V` likewise, split into `N` heads of size
    `H = D / N` by columns:

        A[h] = softmax(Q[h] K[h]ᵀ / sqrt(H))        [T, T]
        Y    = concat_h(A[h] V[h]) W^O + b^O         [T, D]

    A padded key gets weight 0. Of a sequence that is all padding, `A` is 0 and the
    output `b^O`.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        query_block_size: integer, `None` or `"auto"`: the number of queries whose
            scores exist at a time (`tfeff.layers.scored_attention`).
        dropout: float in [0, 1), dropout rate of the normalised scores `A`.
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
        ValueError: if `num_heads` does not divide the hidden size, or the shape of
            `padding_mask` is not that of the tokens.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 5, 8))
    >>> mask = keras.ops.convert_to_tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    >>> tuple(SelfAttention(num_heads=2)(hidden, padding_mask=mask).shape)
    (2, 5, 8)

    Reference:
        Vaswani et al., "Attention is all you need", section 3.2; in the notation
        of Tian et al., "Shatter", equations 1 to 3.
    """

    # Other methods may take positions from where vectors are, and not from
    # `AttentionInputs.positions`, or need relative terms where there are none.
    computes_few_queries = Ability(
        *("project", "relative_terms", "scores", "partition", "value_rows")
    )
    can_pool = Ability("project", "relative_terms")

    def __init__(self, num_heads: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads)
        if type(self).output_heads is ScoredAttention.output_heads:
            check_disabled_heads(self.disabled_heads, self.num_heads)

    def build(self, hidden_shape: Shape) -> None:
        self.input_dim = check_hidden("hidden", hidden_shape)
        check_divides("num_heads", self.num_heads, hidden_shape[-1])
        self.build_projections(hidden_shape[-1], ("query", "key", "value"))

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        query, key, value = (
            project_to_heads(dense, x, self.num_heads)
            for dense, x in (
                (self.query_dense, inputs.query),
                (self.key_dense, inputs.hidden),
                (self.value_dense, inputs.hidden),
            )
        )
        return Queries(query), Keys(key, value)

    def partition(self, queries: Queries) -> Tensor | None:
        """The factor of the weights, `[N, t, S]`, or `None`."""
        return None

    def value_rows(self, queries: Queries) -> Tensor | None:
        """Relative embeddings of the values, `[t + S, N, H]`, or `None`."""
        return None

    def attention_weights(self, scores: Tensor, queries: Queries, keys: Keys) -> Tensor:
        weights = super().attention_weights(scores, queries, keys)
        partition = self.partition(queries)
        return weights if partition is None else weights * partition

    def values(self, weights: Tensor, queries: Queries, keys: Keys) -> Tensor:
        context = super().values(weights, queries, keys)
        rows = self.value_rows(queries)
        if rows is None:
            return context
        return context + kernels.relative_values(weights, rows)

    def context(self, queries: Queries, keys: Keys) -> Tensor:
        return kernels.softmax_values(
            self.scores(queries, keys),
            keys.values,
            self.mask(queries, keys),
            self.partition(queries),
            self.keep(queries, keys),
            self.value_rows(queries),
            queries.context,
        )

    def fused_context(self, queries: Queries, keys: Keys) -> Tensor | None:
        others = queries.ranks, queries.dropout_bits
        if any(x is not None for x in others):
            return None
        if not stands_for(self, "fused_context", HOOKS):
            return None
        if not fused.can_fuse(queries.vectors, keys.vectors):
            return None
        return fused.fused_attention(
            queries.vectors, keys.vectors, keys.values, keys.visible
        )

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(num_heads=self.num_heads)
        return config
