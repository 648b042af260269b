"""The base of the layers that run the blocks of an encoder."""

from collections.abc import Sequence

import keras

from tfeff.compat.saving import shared_config
from tfeff.layers.checks import check_hidden, check_initializer
from tfeff.layers.encoder_block import EncoderBlock, check_attend, check_blocks
from tfeff.layers.layer import Layer


class SharedBlocks(Layer):
    """Base class of layers that share the blocks of an encoder, weights included.

    Args:
        blocks: an encoder, or its `EncoderBlock`s in order.
        initializer: initializer of the layer's one weight, a first state `[D]`.
        **kwargs: arguments of `keras.layers.Layer`. The `dtype` is by default that of
            the blocks.
    """

    def __init__(
        self,
        blocks: keras.Model | Sequence[EncoderBlock],
        initializer="truncated_normal",
        **kwargs,
    ):
        encoder = blocks if hasattr(blocks, "blocks") else None
        blocks = check_blocks(getattr(blocks, "blocks", blocks))
        check_attend("blocks", blocks)
        dtype = kwargs.pop("dtype", None)
        super().__init__(
            dtype=blocks[0].dtype_policy if dtype is None else dtype, **kwargs
        )
        if self.compute_dtype != blocks[0].compute_dtype:
            raise ValueError(
                "`dtype` must compute in the dtype of the blocks, "
                f"{blocks[0].compute_dtype}. Received: dtype={dtype!r}"
            )
        # A model that is loaded shares the blocks of this encoder, and has no copies.
        self.encoder = encoder
        self.blocks = blocks
        self.initializer = check_initializer("initializer", initializer)

    def add_first_state(self, name: str, hidden_name: str, hidden_shape):
        """Builds the blocks and makes the weight."""
        self.input_dim = check_hidden(hidden_name, hidden_shape)
        for block in self.blocks:
            if not block.built:
                block.build(hidden_shape)
        return self.add_weight(
            name=name, shape=(hidden_shape[-1],), initializer=self.initializer
        )

    def freeze_parts(self):
        """Does nothing: the blocks belong to an encoder, and are frozen with it."""

    def get_config(self):
        config = super().get_config()
        config.update(
            blocks=[shared_config(block) for block in self.blocks]
            if self.encoder is None
            else shared_config(self.encoder),
            initializer=keras.initializers.serialize(self.initializer),
        )
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["blocks"] = keras.saving.deserialize_keras_object(config["blocks"])
        return cls(**config)
