from typing import Any

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.layers import TwoStreamBlocks
from tfeff.layers.attention import declares
from tfeff.layers.encoder_block import check_attend
from tfeff.layers.initializer import bert_initializer
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import Objective, mask_positions_input
from tfeff.objectives.token_logits import TokenLogits


@keras.saving.register_keras_serializable(package="tfeff")
class PermutationLM(Objective):
    """Permutation language modelling: predict tokens in a random order (XLNet).

    No token is masked. The targets have an order; each is predicted from all tokens
    that are no targets and from the targets before it in the order, by the query
    stream of `tfeff.layers.TwoStreamBlocks` over the encoder's own blocks:

        z = g^L_i Eᵀ + c        with g⁰_i = w, or w + P[i] with absolute positions

    with the encoder's token table `E`. If the tables have another width than the
    hidden states, a dense layer maps `g^L` to the width of the tables, and the
    encoder's projection maps `P[i]` to that of the hidden states. There is no memory of
    earlier sequences. An encoder without positions does not know which position it is
    to predict.

    Trained on `tfeff.data.PermutedTokens`. The loss is the mean over all
    targets of the global batch.

    Args:
        encoder: a `tfeff.encoders.Encoder` whose attentions score all pairs of
            positions: softmax, partitioned, one-head, relative or sparse.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors: `token_ids`, `segment_ids`, `padding_mask`
            and `ranks` `[B, T]`, the indices of targets in the order, -1 for other
            tokens; `mask_positions` `[B, M]`, the positions of the targets (0 in
            unused slots, whose weight is 0).

    Returns:
        Logits `[B, M, V]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if an attention of the encoder cannot have any mask of pairs:
            blockwise attention, convolutions and mixed attention.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build(
    ...     "xlnet_base", vocabulary_size=50, num_layers=2, hidden_dim=24
    ... )
    >>> model = PermutationLM(encoder)
    >>> model.compile()
    >>> ids = keras.ops.ones((1, 4), dtype="int32")
    >>> logits = model(
    ...     {
    ...         "token_ids": ids,
    ...         "segment_ids": ids,
    ...         "padding_mask": ids,
    ...         "ranks": keras.ops.convert_to_tensor([[-1, 1, 0, -1]]),
    ...         "mask_positions": keras.ops.convert_to_tensor([[1, 2]]),
    ...     }
    ... )
    >>> tuple(logits.shape)
    (1, 2, 50)

    Reference:
        Yang et al., "XLNet", sections 2.2 and 2.3.
    """

    calls_encoder = False

    def __init__(self, encoder: Encoder, **kwargs: Any):
        check_encoder("encoder", encoder)
        _check_attentions(encoder)
        inputs = {
            **encoder.input,
            "ranks": keras.Input((None,), dtype="int32", name="ranks"),
            "mask_positions": mask_positions_input(),
        }
        streams = TwoStreamBlocks(
            encoder.blocks,
            initializer=bert_initializer(),
            dtype=encoder.dtype_policy,
            name="streams",
        )
        head = TokenLogits(encoder.embedding, dtype=encoder.dtype_policy, name="head")
        _, query = streams(
            encoder.embedding(inputs["token_ids"], inputs["segment_ids"]),
            inputs["ranks"],
            padding_mask=inputs["padding_mask"],
            target_positions=inputs["mask_positions"],
            segment_ids=inputs["segment_ids"],
            query=_absolute(encoder, inputs["mask_positions"]),
        )
        super().__init__(encoder, inputs, head(query), **kwargs)
        self.streams = streams
        self.head = head

    def heads(self) -> dict[str, Head]:
        start = {"mask_embedding": self.streams.mask_embedding}
        return {"permutation_lm": Head({**start, **self.head.own_weights()})}


def _check_attentions(encoder):
    """Raises unless every attention takes a mask that differs from pair to pair."""
    unable = {
        type(block.attention).__name__
        for block in encoder.blocks
        if not declares(block.attention, "any_mask")
    }
    if unable:
        raise ValueError(
            "`encoder` must have attentions that score any pair of positions, "
            "because the order of prediction decides which pairs see each other; "
            "blockwise attention and convolutions do not. "
            f"Received: {', '.join(sorted(unable))}"
        )
    check_attend("encoder", encoder.blocks)


def _absolute(encoder, positions):
    """Absolute position embeddings of the query stream, `[B, M, D]`, or None."""
    embedding = encoder.embedding
    if encoder.position == "none":
        return None
    vectors = embedding.position_embedding(positions)
    if encoder.embedding_dim == encoder.hidden_dim:
        return vectors
    return embedding.projection(vectors)
