from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.compat.saving import untracked
from tfeff.layers.attention import Ability
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.self_attention import SelfAttention
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Config, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class BlockwiseAttention(SelfAttention):
    """Multi-head softmax attention of blocks of queries to blocks of keys (BlockBERT).

    The sequence is split into `n` equal blocks. Each head has a permutation `π` of
    them: the queries of block `b` attend only to the keys of block `π(b)`. The paper's
    are shifts, `π(b) = (b + s) mod n`: heads of shift 0 attend locally, the others over
    long distances. Only `1 / n` of the scores is computed and stored, whatever `π`.
    With `n = 1` this is `SelfAttention`.

    A sequence whose length is not a multiple of `n` is padded at its end with masked
    keys, which are removed afterwards.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        head_blocks: the number of heads of each shift `0, 1, … n - 1`, such as `"10:2"`
            or `(10, 2)`: two blocks, ten heads of shift 0 and two of shift 1. They add
            up to `num_heads`. Or any permutation for each head, such as
            `[(0, 1, 2), (0, 2, 1)]` for two heads: the integers `π(0) … π(n - 1)`,
            which the paper counts from 1.
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
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)` instead of the
            output `[B, T, D]` alone. Scores are `[B, N, T, T]`, with zeros outside of
            the blocks.

    Raises:
        ValueError: if `head_blocks` does not add up to `num_heads`, has another number
            of permutations or one that is none, or as `SelfAttention`.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(BlockwiseAttention(num_heads=4, head_blocks="3:1")(hidden).shape)
    (2, 7, 8)
    >>> layer = BlockwiseAttention(num_heads=2, head_blocks=[(0, 2, 1), (2, 1, 0)])
    >>> tuple(layer(hidden).shape)
    (2, 7, 8)

    Reference:
        Qiu et al., "Blockwise self-attention for long document understanding",
        section 3, equations 2 and 3.
    """

    length_dependent = True  # The length determines the blocks.
    any_mask = False
    computes_few_queries = False
    can_pool = Ability("project", "relative_terms")

    def __init__(
        self,
        num_heads: int,
        head_blocks: str | Sequence[int] | Sequence[Sequence[int]],
        **kwargs: Any,
    ):
        super().__init__(num_heads, **kwargs)
        self.head_blocks = _head_blocks(head_blocks, self.num_heads)

    def attend_sequence(
        self, inputs: AttentionInputs, return_scores: bool
    ) -> tuple[Tensor, Tensor | None]:
        num_blocks = len(functional.head_permutations(self.head_blocks)[0])
        length = ops.shape(inputs.hidden)[1]
        hidden, visible = inputs.hidden, inputs.visible
        if num_blocks > 1:
            missing = (length + num_blocks - 1) // num_blocks * num_blocks - length
            if visible is None:
                visible = ops.ones(ops.shape(hidden)[:2], dtype="bool")
            hidden = ops.pad(hidden, ((0, 0), (0, missing), (0, 0)))
            visible = ops.pad(visible, ((0, 0), (0, missing)))
        # Split before the projections, whose outputs are then by block.
        hidden = functional.query_blocks(hidden, num_blocks)
        if visible is not None:
            visible = functional.query_blocks(visible, num_blocks)
        context, scores = self.attend_heads(
            inputs._replace(query=hidden, hidden=hidden, visible=visible),
            return_scores,
        )
        context = self.mask_heads(context, inputs.head_mask)
        output = functional.from_blocks(self.project_output(context), num_blocks)
        output = functional.slice_axis(output, 1, 0, length)
        if scores is not None:
            scores = functional.dense_scores(scores, self.head_blocks)
            scores = scores[:, :, :length, :length]
        return output, scores

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        queries, keys = super().project(inputs)
        if not inputs.positional:
            return queries, keys
        visible = inputs.visible
        if visible is not None:
            # As integers: LiteRT cannot split bools.
            visible = ops.expand_dims(ops.cast(visible, "int32"), 1)
            visible = ops.repeat(visible, self.num_heads, axis=1)
            visible = functional.key_blocks(visible, self.head_blocks)
            visible = ops.expand_dims(ops.cast(visible, "bool"), 2)
        return queries, Keys(
            functional.key_blocks(keys.vectors, self.head_blocks),
            functional.key_blocks(keys.values, self.head_blocks),
            visible=visible,
        )

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(head_blocks=untracked(self.head_blocks))
        return config


def _head_blocks(head_blocks, num_heads: int) -> list[int] | list[list[int]]:
    """The numbers of heads or the permutations, checked, as lists."""
    received = f"Received: head_blocks={head_blocks!r:.80}, num_heads={num_heads}"
    try:
        entries: Any = (
            head_blocks.split(":") if isinstance(head_blocks, str) else head_blocks
        )
        entries = [int(entry) if isinstance(entry, str) else entry for entry in entries]
        are_permutations = any(hasattr(entry, "__len__") for entry in entries)
        if are_permutations:
            entries = [
                [check_integer("head_blocks", b, minimum=0) for b in permutation]
                for permutation in entries
            ]
        else:
            entries = [check_integer("head_blocks", n, minimum=0) for n in entries]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`head_blocks` must be numbers of heads, such as '10:2' or (10, 2), or a "
            f"permutation for each head, such as [(0, 1), (1, 0)]. {received}"
        ) from error
    if not are_permutations:
        if sum(entries) != num_heads:
            raise ValueError(f"`head_blocks` must add up to `num_heads`. {received}")
        return entries
    if len(entries) != num_heads:
        raise ValueError(
            "`head_blocks` must have one permutation for each of `num_heads`. "
            f"{received}"
        )
    blocks = list(range(len(entries[0])))
    if not blocks or any(sorted(permutation) != blocks for permutation in entries):
        raise ValueError(
            "`head_blocks` must have permutations of the same blocks, counted from 0, "
            f"such as (1, 2, 0). {received}"
        )
    return entries
