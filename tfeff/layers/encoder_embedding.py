from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.compat.saving import SavedReference
from tfeff.layers.checks import check_initializer, check_token_ids
from tfeff.layers.dense import Dense
from tfeff.layers.dropout import Dropout
from tfeff.layers.initializer import own_initializer
from tfeff.layers.layer import Layer
from tfeff.ops.ids import rows_of
from tfeff.ops.masking import all_true, zeros_outside
from tfeff.utils.checks import (
    check_bool,
    check_choice,
    check_integer,
    check_positive,
    check_rate,
)
from tfeff.utils.types import Config, Initializer, Shape, Tensor

POSITIONS = ("absolute", "sinusoid", "none")
_TABLES = ("token_embedding", "segment_embedding", "position_embedding", "norm")
# The arguments that determine the tables and the norm.
_TABLE_ARGUMENTS = (
    "vocabulary_size",
    "embedding_dim",
    "num_segments",
    "position",
    "max_sequence_length",
    "layer_norm",
    "layer_norm_epsilon",
)


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderEmbedding(Layer):
    """The sum of token, segment and optional absolute position embeddings.

        X = dropout(LayerNorm(E[w_i] + S[s_i] + P[i]))

    without `P` when `position="none"`, without `S` when `num_segments=0`, and without
    the norm when `layer_norm=False` (XLNet has none of the three). `P` is a learnt
    table or, when `position="sinusoid"`, has no weights and no end:

        P[i, 2m]     = sin(i / 10000^(2m / width))
        P[i, 2m + 1] = cos(i / 10000^(2m / width))

    The sum with them is rounded once, and none of its terms is scaled. When
    `embedding_dim` is not `hidden_dim` (ALBERT's factorisation), the tables and the
    norm have width `embedding_dim` and a projection `X W + b` to `hidden_dim` comes
    last.

    Args:
        vocabulary_size: integer, rows of the token table `E`.
        hidden_dim: integer `D`, width of the result.
        max_sequence_length: integer, rows of the position table `P`; no limit
            when `position` is another than `"absolute"`.
        num_segments: integer, rows of the segment table `S`; 1 for a row that all
            tokens share, 0 for no such table.
        embedding_dim: integer, width of the tables; `None` means `hidden_dim`.
        position: `"absolute"`, `"sinusoid"` or `"none"`.
        dropout: float in [0, 1), dropout rate.
        layer_norm: whether the sum is normalised.
        layer_norm_epsilon: float added to the variance.
        embeddings_initializer: initializer of the tables and of the projection.
        tables_of: an `EncoderEmbedding` whose tables and norm this one uses instead
            of its own; the projection and dropout stay its own. A model that has both
            is saved with what they share; otherwise it is not in the config, and a
            layer that is made from the config has tables of its own.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        token_ids: integer tensor `[B, T]`, each in `[0, vocabulary_size)`.
        segment_ids: integer tensor `[B, T]`, each in `[0, num_segments)`; `None`
            means segment 0 everywhere. They are ignored with fewer than two segments,
            so that all encoders take the same inputs. For an id of either kind out
            of range, eager calls raise. A compiled program raises with TensorFlow on
            CPUs; on GPUs and with XLA the token's embedding is zeros, never that of
            another one.
        training: whether dropout is active.

    Returns:
        Float tensor `[B, T, hidden_dim]`.

    Raises:
        ValueError: if `position` is unknown, the tables have an odd width but positions
            are sinusoids, an id is known to be out of range, a sequence is longer than
            the table of absolute positions, or the tables of `tables_of` do not match
            the other arguments.
        TypeError: if `tables_of` is not an `EncoderEmbedding`, or ids are not integers.

    Example:

    >>> embed = EncoderEmbedding(vocabulary_size=100, hidden_dim=8)
    >>> tuple(embed(keras.ops.ones((2, 5), dtype="int32")).shape)
    (2, 5, 8)

    Reference:
        Devlin et al., "BERT", section 3; Tian et al., "Shatter", equation 4; Lan
        et al., "ALBERT", section 3.1; Huang et al., "Improve Transformer models with
        better relative position embeddings", equations 1, 2 and 6.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        embedding_dim: int | None = None,
        position: str = "absolute",
        dropout: float = 0.0,
        layer_norm: bool = True,
        layer_norm_epsilon: float = 1e-12,
        embeddings_initializer: Initializer = "uniform",
        tables_of: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = check_integer("vocabulary_size", vocabulary_size)
        self.hidden_dim = check_integer("hidden_dim", hidden_dim)
        self.max_sequence_length = check_integer(
            "max_sequence_length", max_sequence_length
        )
        self.num_segments = check_integer("num_segments", num_segments, 0)
        self.embedding_dim = (
            self.hidden_dim
            if embedding_dim is None
            else check_integer("embedding_dim", embedding_dim)
        )
        self.position = check_choice("position", position, POSITIONS)
        if position == "sinusoid" and self.embedding_dim % 2:
            raise ValueError(
                "`embedding_dim`, which is `hidden_dim` by default, must be even with "
                "position='sinusoid': sinusoids come in pairs. "
                f"Received: embedding_dim={self.embedding_dim}"
            )
        self.dropout = check_rate("dropout", dropout)
        self.layer_norm = check_bool("layer_norm", layer_norm)
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )
        self.embeddings_initializer = check_initializer(
            "embeddings_initializer", embeddings_initializer
        )
        self.shares_tables = tables_of is not None
        if self.shares_tables:
            self._take_tables(tables_of)
        self._tables_of = SavedReference(tables_of)

    def _take_tables(self, other):
        """Makes the tables and the norm of a built `EncoderEmbedding` this layer's."""
        if not isinstance(other, EncoderEmbedding):
            raise TypeError(
                "`tables_of` must be an `EncoderEmbedding`. "
                f"Received: tables_of={other!r:.80}"
            )
        for name in _TABLE_ARGUMENTS:
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"`{name}` must be that of `tables_of`, which is "
                    f"{getattr(other, name)!r}. "
                    f"Received: {name}={getattr(self, name)!r}"
                )
        if not other.built:
            other.build((None, None))
        for name in _TABLES:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def build(self, token_ids_shape: Shape) -> None:
        if not self.shares_tables:
            self._build_tables()
        self.dropout_layer = Dropout(
            self.dropout, dtype=self.dtype_policy, name="dropout"
        )
        if self.embedding_dim != self.hidden_dim:
            self.projection = Dense(
                self.hidden_dim,
                kernel_initializer=own_initializer(self.embeddings_initializer),
                dtype=self.dtype_policy,
                name="projection",
            )
            self.projection.build((None, None, self.embedding_dim))

    def _build_tables(self):
        # Reversible: the head of a language model shares this table.
        self.token_embedding = self._table(
            keras.layers.ReversibleEmbedding, self.vocabulary_size, "token_embedding"
        )
        if self.num_segments:
            self.segment_embedding = self._table(
                keras.layers.Embedding, self.num_segments, "segment_embedding"
            )
        if self.position == "absolute":
            self.position_embedding = self._table(
                keras.layers.Embedding, self.max_sequence_length, "position_embedding"
            )
        elif self.position == "sinusoid":
            self.position_embedding = _Sinusoids(
                self.embedding_dim, dtype=self.dtype_policy, name="position_embedding"
            )
        if self.layer_norm:
            self.norm = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
            )
            self.norm.build((None, None, self.embedding_dim))

    def _table(self, table_class, rows, name):
        table = table_class(
            rows,
            self.embedding_dim,
            embeddings_initializer=own_initializer(self.embeddings_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        # This layer's output then has Keras' mask of the ids.
        table.supports_masking = True
        table.build()
        return table

    def call(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        token_ids, segment_ids = self._checked(token_ids, segment_ids)
        rows, inside = rows_of("token_ids", token_ids, self.vocabulary_size)
        x = self.token_embedding(rows)
        if self.num_segments == 1 or (self.num_segments and segment_ids is None):
            x = x + self.segment_embedding(ops.zeros_like(rows))
        elif self.num_segments:
            rows, known = rows_of("segment_ids", segment_ids, self.num_segments)
            x = x + self.segment_embedding(rows)
            inside = all_true(inside, known)
        x = zeros_outside(x, inside)
        # Keras on TensorFlow would take the vectors of an empty sequence for a bias.
        if self.position != "none" and token_ids.shape[1] != 0:
            vectors = self.position_embedding(self._positions(token_ids))
            x = ops.cast(ops.add(x, vectors), x.dtype)
        if self.layer_norm:
            x = self.norm(x)
        x = self.dropout_layer(x, training=training)
        return x if self.embedding_dim == self.hidden_dim else self.projection(x)

    def _positions(self, token_ids):
        length = ops.shape(token_ids)[1]
        if self.position == "absolute" and keras.backend.backend() == "tensorflow":
            # Sliced before the look-up: if the length is known only at run time, a
            # sequence that is too long then fails at the sum, on every device.
            return ops.arange(self.max_sequence_length, dtype="int32")[:length]
        return ops.arange(length, dtype="int32")

    def compute_output_shape(
        self, token_ids_shape: Shape, *_: Shape, **__: Shape
    ) -> Shape:
        return (*token_ids_shape, self.hidden_dim)

    def compute_output_spec(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        # On PyTorch, Keras would call the layer with a number for an unknown length,
        # which may be too long.
        token_ids, _ = self._checked(token_ids, segment_ids)
        shape = self.compute_output_shape(token_ids.shape)
        return keras.KerasTensor(shape, self.compute_dtype)

    def _checked(self, token_ids, segment_ids):
        token_ids = check_token_ids("token_ids", token_ids)
        self._check_length(token_ids.shape)
        if self.num_segments > 1 and segment_ids is not None:
            segment_ids = check_token_ids("segment_ids", segment_ids, token_ids.shape)
        return token_ids, segment_ids

    def _check_length(self, shape):
        length = shape[1]
        too_long = isinstance(length, int) and length > self.max_sequence_length
        if self.position == "absolute" and too_long:
            raise ValueError(
                "With absolute positions, a sequence must not be longer than "
                f"`max_sequence_length`, which is {self.max_sequence_length}. "
                f"Received: token_ids.shape={tuple(shape)}"
            )

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            vocabulary_size=self.vocabulary_size,
            hidden_dim=self.hidden_dim,
            max_sequence_length=self.max_sequence_length,
            num_segments=self.num_segments,
            embedding_dim=self.embedding_dim,
            position=self.position,
            dropout=self.dropout,
            layer_norm=self.layer_norm,
            layer_norm_epsilon=self.layer_norm_epsilon,
            embeddings_initializer=keras.initializers.serialize(
                self.embeddings_initializer
            ),
            **self._tables_of.config("tables_of"),
        )
        return config

    @classmethod
    def from_config(cls, config: Config) -> "EncoderEmbedding":
        return cls(**SavedReference.revived(cls, config, "tables_of"))


class _Sinusoids(keras.layers.Layer):
    """The fixed vectors of positions of any shape, in float32 or better."""

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim

    def call(self, positions):
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        return functional.sinusoids(ops.cast(positions, dtype), self.dim)
