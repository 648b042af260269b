import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention import Ability, project_from_heads, project_to_heads
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.checks import check_disabled_heads, check_divides, check_hidden
from tfeff.layers.initializer import bert_initializer
from tfeff.layers.partitioned import Partitioned
from tfeff.layers.scored_attention import ScoredAttention
from tfeff.ops import kernels
from tfeff.ops.attention import NORMALIZERS
from tfeff.ops.kernels.near_far import NearFar
from tfeff.utils.checks import check_bool, check_choice
from tfeff.utils.types import Config, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class OneHeadAttention(Partitioned, ScoredAttention):
    """Shatter's attention: one matrix of scores, values by part of the sequence.

    With `Q = X W^Q + b^Q`, `V = X W^V + b^V` split into `n` parts by columns, the
    partition `N` (`PartitionOfUnityMask`) and partition embeddings `R` `[n, D]`:

        B[i, j]  = Σ_h (Q Rᵀ)[i, h] N[h, i, j]
        A[h]     = φ(Q Xᵀ / sqrt(D) + B) ⊙ N[h]
        X̄[h]     = A[h] V[h]
        Y[i]     = (concat_h(X̄[h])[i] + Σ_h Σ_j A[h, i, j] (R W^V)[h]) W^O + b^O

    where `φ` is the L2-normalised sigmoid or softmax over the keys. There is no
    key projection: the keys are `X`. `B` and `R` come with `partition_bias`, the
    last sum with `partition_value`. The models of the paper:

    | model | `normalizer` | `partition_bias` | `partition_value` |
    |---|---|---|---|
    | 1H_Softmax | `"softmax"` | `False` | `False` |
    | 1H_Sigmoid | `"sigmoid_l2"` | `False` | `False` |
    | Part_Bias | `"sigmoid_l2"` | `True` | `False` |
    | Shatter | `"sigmoid_l2"` | `True` | `True` |

    Two steps of the derivation are options. With `key_projection`, which the paper has
    before it replaces the keys by `X`, the keys are `X W^K + b^K`. Without
    `values_by_part`, "reducing V to matrix", all parts weight the same values
    `V = X W^V + b^V`, so that the partition cancels out of the first sum:

        X̄ = Σ_h A[h] V                                         [T, D]

    Args:
        num_parts: integer `n`, even (unless `boundaries` or a `partition` are given);
            divides the hidden size.
        normalizer: `"sigmoid_l2"` or `"softmax"`.
        partition_bias: whether the scores get the bias `B`.
        partition_value: whether the partition embeddings add to the values.
        layer_index: integer, the layer's index in its stack, from 0. Each layer of a
            stack of your own must be given its own: it has another partition, unless
            it has `boundaries`.
        num_layers: integer, the number of layers of the stack.
        boundaries: `None` for the Bernstein partition, or the `num_parts - 1`
            inner boundaries of a hard one.
        key_projection: whether the keys are projected.
        values_by_part: whether each part has its own values, a slice of the columns.
        alpha, beta, spacing: floats, the constants of the Bernstein partition
            (`PartitionOfUnityMask`).
        partition: `None`, or the name of a registered partition
            (`tfeff.layers.register_partition`), or a dict with that `"name"` and
            further arguments of its functions.
        query_block_size: integer, `None` or `"auto"`: the number of queries whose
            scores exist at a time (`tfeff.layers.scored_attention`).
        dropout: float in [0, 1), dropout rate of the normalised scores. It acts
            before the partition, so that all parts drop the same pairs.
        kernel_initializer: initializer of the projection kernels.
        bias_initializer: initializer of the projection biases.
        disabled_heads: indices of parts that are switched off: their outputs are 0, in
            training and in inference.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        layer_index: integer, the layer's index in its stack in this call, where
            several layers share these weights; `None` means the constructor's.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)`, scores
            `A` `[B, n, T, T]`, instead of the output `[B, T, D]` alone.

    Raises:
        ValueError: if `normalizer` is unknown, `num_parts` does not divide the
            hidden size, the shape of `padding_mask` is not that of the tokens, or
            as `PartitionOfUnityMask`.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 5, 8))
    >>> output, scores = OneHeadAttention(num_parts=4)(
    ...     hidden, return_attention_scores=True
    ... )
    >>> tuple(output.shape), tuple(scores.shape)
    ((2, 5, 8), (2, 4, 5, 5))

    Reference:
        Tian et al., "Shatter", sections 3.2 and 3.3.
    """

    has_softmax_scores = False
    can_pool = Ability("project", "relative_terms")

    def __init__(
        self,
        num_parts: int,
        normalizer: str = "sigmoid_l2",
        partition_bias: bool = True,
        partition_value: bool = True,
        layer_index: int = 0,
        num_layers: int = 12,
        boundaries: Sequence[float] | None = None,
        key_projection: bool = False,
        values_by_part: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.normalizer = check_choice("normalizer", normalizer, NORMALIZERS)
        self.partition_bias = check_bool("partition_bias", partition_bias)
        self.partition_value = check_bool("partition_value", partition_value)
        self.key_projection = check_bool("key_projection", key_projection)
        self.values_by_part = check_bool("values_by_part", values_by_part)
        self.make_partition(num_parts, layer_index, num_layers, boundaries)
        self.num_parts = self.partition_layer.num_parts
        check_disabled_heads(self.disabled_heads, self.num_parts)

    @property
    def output_heads(self) -> int:
        """The parts, whose features are those of heads."""
        return self.num_parts

    def build(self, hidden_shape: Shape) -> None:
        self.input_dim = check_hidden("hidden", hidden_shape)
        check_divides("num_parts", self.num_parts, hidden_shape[-1])
        names = ("query", "key", "value") if self.key_projection else ("query", "value")
        self.build_projections(hidden_shape[-1], names)
        if self.partition_bias or self.partition_value:
            self.partition_embeddings = self.add_weight(
                name="partition_embeddings",
                shape=(self.num_parts, hidden_shape[-1]),
                initializer=bert_initializer(),
            )

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        query = ops.expand_dims(self.query_dense(inputs.query), 1)
        key = inputs.hidden
        if self.key_projection:
            key = self.key_dense(key)
        # Without a position there is one part, with all features of the values.
        by_part = inputs.positional and self.values_by_part
        weights = {}
        if inputs.positional and self.partition_bias:
            weights["bias"] = self.partition_embeddings
        if inputs.positional and not self.values_by_part:
            factors = self.head_factors(key.dtype, inputs.head_mask)
            if factors is not None:
                weights["factors"] = factors
        parts = self.num_parts if by_part else 1
        values = project_to_heads(self.value_dense, inputs.hidden, parts)
        if inputs.positional and self.partition_value:
            # One more feature for each part, of ones: its weighted sum is the sum of
            # the weights. `tf.vectorized_map` would pad with zeros, and LiteRT ends the
            # process where a batch is empty and these are `ones_like` another tensor.
            shape = (*ops.shape(values)[:-1], self.num_parts // parts)
            ones = ops.ones(shape, values.dtype)
            values = ops.concatenate([values, ones], axis=-1)
        return Queries(query), Keys(ops.expand_dims(key, 1), values, weights)

    def scores(self, queries: Queries, keys: Keys) -> Tensor:
        vectors = queries.vectors, keys.vectors
        bias = keys.weights.get("bias")
        if bias is None:
            return functional.one_head_scores(*vectors)
        if self._is_near_and_far(queries):
            rows = self.partition_rows(queries)
            return kernels.near_far_one_head_scores(*vectors, rows, bias)
        return functional.one_head_scores(*vectors, self.partition(queries), bias)

    def attention_weights(self, scores: Tensor, queries: Queries, keys: Keys) -> Tensor:
        weights = NORMALIZERS[self.normalizer](scores, self.mask(queries, keys))
        partition = self.partition(queries)
        return weights if partition is None else weights * partition

    def values(self, weights: Tensor, queries: Queries, keys: Keys) -> Tensor:
        if self.values_by_part or self.partition(queries) is None:
            return super().values(weights, queries, keys)
        # The last features are ones, one for each part.
        size = self.value_dense.units
        if "factors" in keys.weights:
            weights = weights * keys.weights["factors"][:, None, None]
        whole = ops.sum(weights, axis=1, keepdims=True)
        context = functional.weighted_values(whole, keys.values[..., :size])
        if not self.partition_value:
            return context
        sums = ops.swapaxes(ops.sum(weights, axis=-1, keepdims=True), 1, 3)
        return ops.concatenate([context, sums], axis=-1)

    def mask_heads(self, context: Tensor, head_mask: Tensor | None = None) -> Tensor:
        if self.values_by_part:
            return super().mask_heads(context, head_mask)
        return context  # The parts are summed: their weights were multiplied.

    def _is_near_and_far(self, queries):
        return queries.relative is not None and isinstance(
            queries.relative["partition"], NearFar
        )

    def context(self, queries: Queries, keys: Keys) -> Tensor:
        if not self.values_by_part:
            return super().context(queries, keys)
        part_values: Callable[..., Tensor] = kernels.part_values
        if self._is_near_and_far(queries):
            outer = self.partition_layer.outer_parts
            part_values = functools.partial(kernels.near_far_part_values, outer=outer)
            partition = self.partition_rows(queries)
        else:
            partition = self.partition(queries)
        if partition is None:
            return super().context(queries, keys)
        return part_values(
            self.scores(queries, keys),
            keys.values,
            partition,
            normalizer=self.normalizer,
            mask=self.mask(queries, keys),
            keep=self.keep(queries, keys),
            context=queries.context,
        )

    def project_output(self, context: Tensor) -> Tensor:
        """The output projection, including that of `Σ_j A[h, i, j] (R W^V)[h]`.

        The last feature of a part's context is `Σ_j A[h, i, j]`, which is multiplied
        with one more row of the kernel, `(R W^V)[h] W^O`. If all parts share their
        values, the last `n` features are these sums.
        """
        dense = self.output_dense
        parts, size = context.shape[1], context.shape[3]
        if parts * size == dense.units:
            return super().project_output(context)
        sums = self.num_parts // parts
        # Without the bias, which only the values of tokens have.
        rows = self.value_dense.project(self.partition_embeddings)
        rows = ops.reshape(dense.project(rows), (parts, sums, dense.units))
        if dense.quantization_mode is not None:
            added = ops.einsum("bntx,nxd->btd", context[..., -sums:], rows)
            return super().project_output(context[..., :-sums]) + added
        kernel = ops.reshape(dense.kernel, (parts, size - sums, dense.units))
        kernel = ops.concatenate([kernel, rows], axis=1)
        return project_from_heads(dense, context, kernel)

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            num_parts=self.num_parts,
            normalizer=self.normalizer,
            partition_bias=self.partition_bias,
            partition_value=self.partition_value,
            key_projection=self.key_projection,
            values_by_part=self.values_by_part,
        )
        return config
