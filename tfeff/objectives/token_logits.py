import keras

from tfeff.compat.layers import LeavesShared
from tfeff.compat.saving import SavedReference
from tfeff.layers.dense import bert_dense


class TableLayer(LeavesShared, keras.layers.Layer):
    """Base of layers that use an encoder's token table.

    Args:
        token_embedding: the `keras.layers.ReversibleEmbedding`; or the
            `tfeff.encoders.Encoder` or `tfeff.layers.EncoderEmbedding` that has it, if
            that is a layer of the same model: a reloaded model would otherwise have a
            copy of the table.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.
    """

    def __init__(self, token_embedding: keras.layers.Layer, **kwargs):
        # Inputs stay as precise as they come.
        super().__init__(autocast=False, **kwargs)
        owner, table = None, token_embedding
        if not isinstance(table, keras.layers.ReversibleEmbedding):
            owner = token_embedding
            if not owner.built:
                owner.build((None, None))
            table = owner.token_embedding
        self.token_embedding = table
        self._owner = SavedReference(owner)

    def shared_layers(self):
        return [self.token_embedding]

    def add_output_bias(self, name):
        """A weight for each token, with which `logits` are as precise as it is."""
        return self.add_weight(
            name=name,
            shape=(self.token_embedding.input_dim,),
            initializer="zeros",
            autocast=False,  # The logits have its precision, whoever calls.
        )

    def logits(self, x, bias):
        """`x Eᵀ + c` of `x` `[B, M, E]` and the bias `c` of `add_output_bias`."""
        logits = self.token_embedding(x, reverse=True)
        return keras.ops.cast(logits, bias.dtype) + bias

    def get_config(self):
        config = super().get_config()
        config["token_embedding"] = keras.layers.serialize(self.token_embedding)
        return {**config, **self._owner.config("token_embedding")}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["token_embedding"] = keras.layers.deserialize(config["token_embedding"])
        return cls(**config)


@keras.saving.register_keras_serializable(package="tfeff")
class TokenLogits(TableLayer):
    """Logits of all tokens, with an encoder's token table.

        z = x Eᵀ + c,   or (x W + b) Eᵀ + c if `x` has another width than the table

    Args:
        token_embedding: the `keras.layers.ReversibleEmbedding` that holds `E`, or the
            encoder that has it, if the model has that as a layer.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        x: float tensor `[B, M, D]`.

    Returns:
        Logits `[B, M, V]`.

    Example:

    >>> table = keras.layers.ReversibleEmbedding(10, 4)
    >>> tuple(TokenLogits(table)(keras.ops.ones((2, 3, 8))).shape)
    (2, 3, 10)

    Reference:
        Yang et al., "XLNet", equation 4.
    """

    def build(self, shape):
        table = self.token_embedding
        if not table.built:
            table.build()
        self.projection = None
        if shape[-1] != table.output_dim:
            self.projection = bert_dense(
                table.output_dim, dtype=self.dtype_policy, name="projection"
            )
            self.projection.build(shape)
        self.bias = self.add_output_bias("bias")

    def call(self, x):
        if self.projection is not None:
            x = self.projection(x)
        return self.logits(x, self.bias)

    def own_weights(self) -> dict[str, keras.Variable]:
        """All weights but the table, by the names of a preset's head."""
        weights = {"bias": self.bias}
        if self.projection is not None:
            dense = self.projection
            weights |= {
                "projection/kernel": dense.kernel,
                "projection/bias": dense.bias,
            }
        return weights
