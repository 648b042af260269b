from collections.abc import Sequence
from typing import Any

import keras

from tfeff.layers.attention import Ability
from tfeff.layers.partitioned import Partitioned
from tfeff.layers.self_attention import SelfAttention
from tfeff.utils.naming import named_as


@keras.saving.register_keras_serializable(package="tfeff")
class PartitionedAttention(Partitioned, SelfAttention):
    """Multi-head softmax attention, each head weighted by a part of a partition.

        A[h] = softmax(Q[h] K[h]ᵀ / sqrt(H)) ⊙ N[h]

    and otherwise as `SelfAttention`. `N` is `PartitionOfUnityMask`, one part a
    head; the product is not normalised again. This is the model "Part_Mask", which has
    no table of positions.

    Args:
        num_heads: integer, heads and parts, even (unless `boundaries` or a `partition`
            are given); divides the hidden size.
        layer_index: integer, the layer's index in its stack, from 0. Each layer of a
            stack of your own must be given its own: it has another partition, unless
            it has `boundaries`.
        num_layers: integer, the number of layers of the stack.
        boundaries: `None` for the Bernstein partition, or the `num_heads - 1`
            inner boundaries of a hard one.
        alpha, beta, spacing: floats, the constants of the Bernstein partition
            (`PartitionOfUnityMask`).
        partition: `None`, or the name of a registered partition
            (`tfeff.layers.register_partition`), or a dict with that `"name"` and
            further arguments of its functions.
        query_block_size: integer, `None` or `"auto"`: the number of queries whose
            scores exist at a time (`tfeff.layers.scored_attention`).
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
        layer_index: integer, the layer's index in its stack in this call, where
            several layers share these weights; `None` means the constructor's.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)`, scores
            `A` `[B, num_heads, T, T]`, instead of the output `[B, T, D]` alone.

    Raises:
        ValueError: as `SelfAttention` and `PartitionOfUnityMask`.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 5, 8))
    >>> tuple(PartitionedAttention(num_heads=4)(hidden).shape)
    (2, 5, 8)

    Reference:
        Tian et al., "Shatter", section 3.1, equation 5.
    """

    computes_few_queries = False
    can_pool = Ability("project", "relative_terms")

    def __init__(
        self,
        num_heads: int,
        layer_index: int = 0,
        num_layers: int = 12,
        boundaries: Sequence[float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_heads=num_heads, **kwargs)
        registered = kwargs.get("partition") is not None
        if boundaries is None and not registered and num_heads % 2:
            raise ValueError(
                "`num_heads` must be even, half of the heads for each side of a "
                f"position. Received: num_heads={num_heads}"
            )
        with named_as(num_parts="num_heads"):
            self.make_partition(num_heads, layer_index, num_layers, boundaries)
