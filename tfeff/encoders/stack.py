"""The stack of an encoder's blocks: from settings to blocks, and to hidden states.

This needs Keras alone, on any of its backends.
"""

from tfeff.compat.saving import untracked
from tfeff.encoders.attentions import layer_specs, make_attention, own_layer_index
from tfeff.layers import EncoderBlock, FeedForward
from tfeff.layers.checks import check_divides
from tfeff.layers.initializer import bert_initializer
from tfeff.utils.checks import check_choice, check_integer, check_rate

SHARING = ("none", "all", "attention", "feedforward")
_FEEDFORWARD = ("activation", "num_groups")


def make_blocks(
    num_layers: int,
    num_heads: int,
    hidden_dim: int,
    intermediate_dim: int,
    max_sequence_length: int = 512,
    attention: str | dict | list = "self",
    feedforward: dict | None = None,
    sharing: str = "none",
    sharing_group_size: int | None = None,
    layer_norm_epsilon: float = 1e-12,
    dropout: float = 0.0,
    attention_dropout: float | None = None,
    memory_efficient: bool | str = False,
    dtype=None,
) -> list[EncoderBlock]:
    """The blocks of an encoder, from the first layer to the last.

    The arguments are those of `tfeff.encoders.Encoder`. Layers that share all their
    weights are one block, which is then in the list several times.

    Returns:
        List of `num_layers` blocks, which are not built yet.

    Raises:
        TypeError, ValueError: as `tfeff.encoders.Encoder`.

    Example:

    >>> blocks = make_blocks(4, 2, 8, 16, sharing="all", sharing_group_size=2)
    >>> blocks[0] is blocks[1], blocks[1] is blocks[2]
    (True, False)

    Reference:
        Devlin et al., "BERT", section 3; Lan et al., "ALBERT", section 3.1, for
        `sharing`.
    """
    num_layers = check_integer("num_layers", num_layers)
    hidden_dim = check_integer("hidden_dim", hidden_dim)
    num_heads = check_integer("num_heads", num_heads)
    check_divides("num_heads", num_heads, hidden_dim)
    _check_feedforward(feedforward)
    dropout = check_rate("dropout", dropout)
    if attention_dropout is None:
        attention_dropout = dropout
    attention_dropout = check_rate("attention_dropout", attention_dropout)
    specs = layer_specs(untracked(attention), num_layers)
    check_choice("sharing", sharing, SHARING)
    leaders = _leaders(specs, sharing, sharing_group_size)
    blocks: list[EncoderBlock] = []

    def new_attention():
        index = len(blocks)
        settings = {
            "num_heads": num_heads,
            "num_parts": num_heads,
            "hidden_dim": hidden_dim,
            "layer_index": index,
            "num_layers": num_layers,
            "max_sequence_length": max_sequence_length,
            "earlier": tuple(block.attention for block in blocks),
            "dropout": attention_dropout,
            "kernel_initializer": bert_initializer(),
            "dtype": dtype,
            "name": "attention",
        }
        return make_attention(specs[index], settings)

    def new_feedforward():
        return FeedForward(
            intermediate_dim,
            **(feedforward or {}),
            kernel_initializer=bert_initializer(),
            dtype=dtype,
            name="feedforward",
        )

    for index, leader in enumerate(leaders):
        # A layer takes shared weights from the first layer of its group.
        shares = sharing if leader < index else "none"
        if shares == "all":
            blocks.append(blocks[leader])
            continue
        attends = blocks[leader].attention if shares == "attention" else new_attention()
        network = (
            blocks[leader].feedforward if shares == "feedforward" else new_feedforward()
        )
        blocks.append(
            EncoderBlock(
                attends,
                network,
                dropout=dropout,
                layer_norm_epsilon=layer_norm_epsilon,
                memory_efficient=memory_efficient,
                layer_index=own_layer_index(specs[index]),
                dtype=dtype,
                name=f"block_{index}",
            )
        )
    return blocks


def apply_blocks(
    blocks: list[EncoderBlock], hidden, padding_mask=None, segment_ids=None
) -> list:
    """The hidden states of a stack.

        X^{l+1} = block_l(X^l),   l = 0 … L - 1

    Args:
        blocks: the `L` blocks of `make_blocks`.
        hidden: float tensor `X^0` `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens; `None`
            when all are real.
        segment_ids: integer tensor `[B, T]`, or `None`.

    Returns:
        List `X^0 … X^L` of `L + 1` float tensors `[B, T, D]`.

    Example:

    >>> states = apply_blocks(make_blocks(3, 2, 8, 16), keras.ops.ones((2, 5, 8)))
    >>> len(states), tuple(states[-1].shape)
    (4, (2, 5, 8))
    """
    hidden_states = [hidden]
    for index, block in enumerate(blocks):
        hidden = block(
            hidden,
            padding_mask=padding_mask,
            segment_ids=segment_ids,
            layer_index=index,
        )
        hidden_states.append(hidden)
    return hidden_states


def _leaders(attentions: list, sharing: str, group_size: int | None) -> list[int]:
    """For each layer, the first layer that it shares weights with."""
    num_layers = len(attentions)
    if sharing == "none":
        if group_size is not None:
            raise ValueError(
                "`sharing_group_size` must be None without sharing. "
                f"Received: sharing_group_size={group_size!r:.80}, "
                f"sharing={sharing!r:.80}"
            )
        return list(range(num_layers))
    if group_size is None:
        group_size = num_layers
    check_integer("sharing_group_size", group_size)
    if num_layers % group_size:
        raise ValueError(
            "`sharing_group_size` must divide `num_layers`. Received: "
            f"sharing_group_size={group_size!r:.80}, num_layers={num_layers}"
        )
    leaders = [index - index % group_size for index in range(num_layers)]
    for index, leader in enumerate(leaders):
        if sharing != "feedforward" and attentions[index] != attentions[leader]:
            raise ValueError(
                "`attention` must be the same in layers that share it. Received: "
                f"{attentions[leader]!r} in layer {leader}, {attentions[index]!r} in "
                f"layer {index}, sharing={sharing!r}, "
                f"sharing_group_size={group_size!r:.80}"
            )
    return leaders


def _check_feedforward(feedforward) -> None:
    """Raises unless `feedforward` is None or a dict of supported arguments."""
    if feedforward is None:
        return
    if not isinstance(feedforward, dict):
        raise TypeError(
            "`feedforward` must be a dict of arguments of `FeedForward`, or None. "
            f"Received: feedforward={feedforward!r:.80}"
        )
    unknown = sorted(set(feedforward) - set(_FEEDFORWARD))
    if unknown:
        raise ValueError(
            f"`feedforward` must have no other keys than {list(_FEEDFORWARD)}. "
            f"Received: {', '.join(map(str, unknown))}"
        )
