"""The core of every attention that scores pairs."""

import functools

from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention import Attention, stands_for
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.checks import check_hidden, check_return_scores, visible_keys
from tfeff.ops.kernels.near_far import NearFar
from tfeff.ops.kernels.query_blocks import first_near, over_query_blocks
from tfeff.ops.masking import all_true
from tfeff.utils.checks import check_integer

# The methods that a subclass overrides to compute another attention.
HOOKS = (
    "scores",
    "attention_weights",
    "values",
    "context",
    "mask",
    "keep",
    "partition",
    "value_rows",
)
# With "auto", longer sequences are computed in blocks of so many queries.
WHOLE_LENGTH = 1024
BLOCK_SIZE = 256
# The number of near keys is a multiple of this; they are separated from far ones if
# they are at most this share of all keys.
KEYS = 128
NEAR_SHARE = 0.5


class ScoredAttention(Attention):
    """Base class of the attentions that score pairs of a query and a key.

    A subclass defines an attention by a few methods:

        project            queries, keys and values from hidden states
        relative_terms     tensors by the relative position of query and key
        reach              the distance beyond which these are constant
        scores             the scores of given queries and keys
        attention_weights  from scores to weights
        values             from weights to context vectors

    If there is a faster kernel, it overrides `context`, which equals the last three in
    order, with dropout of the weights; or `fused_context`, which needs no blocks. A
    kernel is left out in subclasses that override what it computes. This class does
    the rest for all attentions: masks, dropout, blocks of queries,
    recomputation, single queries, queries without a position, returned scores, heads
    that are switched off, the output projection.

    A subclass with another layout of its keys overrides `attend_heads`, which calls

        queries_and_keys   for what `project` returns, with positions, masks and dropout
        by_length          for the context vectors, computed at once or in blocks

    Only `project` and `relative_terms` use the layer's weights, and pass them on in
    `Keys.weights`. The backward pass recomputes the other methods, which must depend on
    their arguments alone.

    Args:
        query_block_size: integer `t`: scores exist for `t` queries at a time, also in
            the backward pass, which recomputes them. So memory grows with the length,
            not with its square. Values and gradients are the same. `None` for all
            queries at once; `"auto"` for blocks of 256 in sequences longer than 1024.
        **kwargs: arguments of `Attention`.
    """

    any_mask = True
    has_softmax_scores = True
    # True while the model is exported to LiteRT or ONNX, whose converters support
    # neither loops of unknown length nor empty tensors.
    is_converted = False

    def __init__(self, query_block_size: int | str | None = "auto", **kwargs):
        super().__init__(**kwargs)
        if query_block_size not in ("auto", None):
            query_block_size = _check_block_size(query_block_size)
        self.query_block_size = query_block_size

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        """Queries with their vectors; keys with vectors, values and weights."""
        raise NotImplementedError

    def relative_terms(self, positions, inputs: AttentionInputs) -> dict:
        """Tensors that depend on relative positions alone.

        Args:
            positions: integer tensor `[R]` of relative positions `j - i`.
            inputs: the inputs of the attention.

        Returns:
            Dict of tensors `[R, ...]`, which the other methods get as
            `Queries.relative`.
        """
        return {}

    def reach(self, inputs: AttentionInputs) -> int | None:
        """The distance beyond which relative terms are constant on either side.

        Blocks of queries then compute them for near keys only: in long sequences
        `Queries.relative` has `NearFar`s (`tfeff.ops.kernels.near_far`) in place of
        tensors, of which `kernels.toeplitz_rows` makes the `[N, t, S]` of all keys.
        `None` if they are not constant, or if the layer's `scores` take tensors alone.
        """
        return None

    def scores(self, queries: Queries, keys: Keys):
        """Scores before normalisation, `[B, N or 1, t, S]`."""
        return functional.dot_product_scores(queries.vectors, keys.vectors)

    def attention_weights(self, scores, queries: Queries, keys: Keys):
        """Weights of the keys, `[B, N, t, S]`."""
        return functional.masked_softmax(scores, self.mask(queries, keys))

    def values(self, weights, queries: Queries, keys: Keys):
        """Context vectors `[B, N, t, H]`."""
        return functional.weighted_values(weights, keys.values)

    def context(self, queries: Queries, keys: Keys):
        """Context vectors `[B, N, t, H]`, not scaled up for dropout."""
        weights = self.attention_weights(self.scores(queries, keys), queries, keys)
        weights = functional.apply_keep_mask(weights, self.keep(queries, keys))
        return self.values(weights, queries, keys)

    def fused_context(self, queries: Queries, keys: Keys):
        """`context` with memory that grows with the length, or `None`.

        It is tried first: it needs neither blocks of queries nor recomputation.
        """
        return None

    def mask(self, queries: Queries, keys: Keys):
        """Bool tensor `[B or 1, N or 1, t or 1, S]`, true where the key is visible.

        `None` if all are.
        """
        lower = None if keys.ranks is None else keys.ranks < queries.ranks
        return all_true(keys.visible, lower)

    def keep(self, queries: Queries, keys: Keys):
        """Bool tensor of the scores' shape, false at dropped weights, or `None`."""
        if queries.dropout_bits is None:
            return None
        length = ops.shape(keys.vectors)[2]
        return functional.keep_mask_from_bits(
            queries.dropout_bits, length, self.dropout_layer.rate
        )

    def call(
        self,
        hidden,
        padding_mask=None,
        segment_ids=None,
        layer_index=None,
        training=None,
        return_attention_scores=False,
        recompute=False,
        head_mask=None,
        mask=None,
    ):
        check_hidden("hidden", hidden.shape, self.input_dim)
        returned = check_return_scores(self, return_attention_scores)
        inputs = AttentionInputs(
            hidden,
            hidden,
            visible=visible_keys(padding_mask, hidden, mask),
            segment_ids=segment_ids,
            layer_index=layer_index,
            training=training,
            recompute=recompute,
            head_mask=head_mask,
        )
        output, scores = self.attend_sequence(inputs, returned)
        return (output, scores) if returned else output

    def attend_sequence(self, inputs: AttentionInputs, return_scores):
        """As `attend`, for all positions of a sequence under a padding mask."""
        return self.attend(inputs, return_scores)

    def attend(self, inputs: AttentionInputs, return_scores=False):
        self.check_can(inputs)
        if inputs.positions is None or self.computes_few_queries:
            context, scores = self.attend_heads(inputs, return_scores)
            context = self.mask_heads(context, inputs.head_mask)
            return self.project_output(context), scores
        # All positions are computed, also those without a query.
        rows = ops.one_hot(
            inputs.positions, ops.shape(inputs.hidden)[1], dtype=inputs.query.dtype
        )
        output, scores = self.attend(_at_all_positions(inputs, rows), return_scores)
        if scores is not None:
            scores = ops.einsum("bmt,bnts->bnms", rows, scores)
        return ops.einsum("bmt,btd->bmd", rows, output), scores

    def attend_heads(self, inputs: AttentionInputs, return_scores=False):
        """`(context, scores)`, as `attend` before the output projection."""
        queries, keys = self.queries_and_keys(inputs)
        context = None if return_scores else self.fused_context(queries, keys)
        if context is not None:
            return context, None

        def context_of(queries, relative, keys, context=None):
            queries = queries._replace(relative=relative, context=context)
            if stands_for(self, "context", ("attention_weights", "values")):
                return self.context(queries, keys)
            return ScoredAttention.context(self, queries, keys)

        def in_blocks(size, longest=None):
            near = size and self._near(inputs, size, ops.shape(keys.vectors)[2])
            if near:
                return self._near_and_far(context_of, inputs, queries, keys, size, near)
            relative = self._terms(inputs, keys)
            return over_query_blocks(
                context_of, queries, relative, keys, keys.values, size, longest=longest
            )

        def whole():
            return context_of(queries, self._terms(inputs, keys), keys)

        context = self.by_length(whole, in_blocks, inputs, queries, return_scores)
        if not return_scores:
            return context, None
        queries = queries._replace(relative=self._terms(inputs, keys))
        scores = self.scores(queries, keys)
        if return_scores == "scores":
            mask = self.mask(queries, keys)
            return context, scores if mask is None else ops.where(mask, scores, 0.0)
        return context, self.attention_weights(scores, queries, keys)

    def by_length(
        self, whole, in_blocks, inputs, queries, return_scores=False, together=1
    ):
        """Context vectors of all queries at once or in blocks, scaled up for dropout.

        Args:
            whole: function that computes them at once.
            in_blocks: function that computes them in blocks of a number of queries, or
                at once up to a length that is then given; in one block for `None`.
            inputs: the inputs of the attention.
            queries: all queries, with their dropout bits.
            return_scores: whether the scores of all pairs are computed anyway.
            together: integer, of which a block size is a multiple.
        """
        if inputs.recompute and inputs.training:
            whole = functools.partial(in_blocks, None)
        length = ops.shape(queries.vectors)[2]
        size = None if self.is_converted else self.query_block_size
        longest = WHOLE_LENGTH if size == "auto" else size
        size = BLOCK_SIZE if size == "auto" else size
        if return_scores or size is None:
            context = whole()
        else:
            size = max(size // together, 1) * together
            if isinstance(length, int):
                context = in_blocks(size) if length > longest else whole()
            elif ops.is_tensor(length):
                context = in_blocks(size, longest)
            else:  # A length without a value: Keras infers shapes on JAX.
                context = whole()
        if queries.dropout_bits is not None:
            context = context * (1.0 / (1.0 - self.dropout_layer.rate))
        return context

    def _near(self, inputs, size, length):
        """The reach and the number of near keys, if separating these is faster."""
        if not inputs.positional or inputs.positions is not None:
            return None
        reach = self.reach(inputs)
        if reach is None or not isinstance(length, int):
            return None
        # Whole blocks of keys, for the kernels.
        width = size + 2 * reach
        width += -width % KEYS
        return (reach, width) if width <= NEAR_SHARE * length else None

    def _near_and_far(self, context_of, inputs, queries, keys, size, near):
        reach, width = near
        length = ops.shape(keys.vectors)[2]
        last = size + width
        positions = ops.arange(-last, last + 1, dtype="int32")
        terms = self.relative_terms(positions, inputs)
        sides = {name: (rows[:1], rows[-1:]) for name, rows in terms.items()}

        def with_sides(queries, relative, keys, context):
            keys, sides = keys
            first = first_near(queries.positions[0, 0], reach, width, length)
            relative = {
                name: NearFar(rows, *sides[name], first, length, width)
                for name, rows in relative.items()
            }
            return context_of(queries, relative, keys, context)

        return over_query_blocks(
            with_sides, queries, terms, (keys, sides), keys.values, size, near
        )

    def _terms(self, inputs, keys):
        """The relative terms of all positions in order; `None` for other queries."""
        if not inputs.positional or inputs.positions is not None:
            return None
        length = ops.shape(keys.vectors)[2]
        return self.relative_terms(functional.relative_positions(length), inputs)

    def queries_and_keys(self, inputs: AttentionInputs):
        """Queries and keys with all attributes but relative terms."""
        queries, keys = self.project(inputs)
        length = ops.shape(keys.vectors)[2]
        positions = None
        if inputs.positional and inputs.positions is None:
            positions = ops.arange(length, dtype="int32")[:, None]
        elif inputs.positional:
            positions = ops.expand_dims(ops.cast(inputs.positions, "int32"), -1)
        query_segments = segments = inputs.segment_ids
        if segments is not None and inputs.positions is not None:
            query_segments = functional.gather_positions(segments, inputs.positions)
        queries = queries._replace(
            positions=positions,
            segment_ids=_along_queries(query_segments),
            ranks=_along_queries(inputs.query_ranks),
            dropout_bits=self.dropout_layer.row_bits(
                ops.shape(queries.vectors)[:3], inputs.training
            ),
        )
        if keys.visible is None:
            keys = keys._replace(visible=_along_keys(inputs.visible))
        keys = keys._replace(
            # Not variables: the recomputation of a block needs tensors.
            weights={k: ops.reshape(x, x.shape) for k, x in keys.weights.items()},
            segment_ids=_along_keys(segments),
            ranks=_along_keys(inputs.key_ranks),
        )
        return queries, keys

    def get_config(self):
        config = super().get_config()
        config.update(query_block_size=self.query_block_size)
        return config


def _check_block_size(size) -> int:
    try:
        return check_integer("query_block_size", size)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "`query_block_size` must be an integer of at least 1, None, or 'auto'. "
            f"Received: query_block_size={size!r}"
        ) from None


def _along_queries(x):
    """`[B, M]` along the axis of queries, `[B, 1, M, 1]`."""
    return None if x is None else ops.expand_dims(x, (1, 3))


def _along_keys(x):
    """`[B, S]` along the axis of keys, `[B, 1, 1, S]`."""
    return None if x is None else ops.expand_dims(x, (1, 2))


def _at_all_positions(inputs: AttentionInputs, rows) -> AttentionInputs:
    """Scatters the queries to all positions, the others being zero.

    Args:
        inputs: with queries at `positions`.
        rows: float tensor `[B, M, S]`, 1 where a query has its position.
    """
    # Queries of one position are equal: their mean is any of them.
    count = ops.maximum(ops.sum(rows, axis=1), 1)[..., None]
    query = ops.einsum("bmt,bmd->btd", rows, inputs.query) / count
    ranks = inputs.query_ranks
    if ranks is not None:
        lowest = ops.min(inputs.key_ranks, initial=2**31 - 1)
        ranks = ops.where(rows > 0, ranks[..., None], lowest)
        ranks = ops.max(ranks, axis=1, initial=-(2**31))
    return inputs._replace(query=query, query_ranks=ranks, positions=None)
