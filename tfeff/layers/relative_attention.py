import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.compat.saving import shared_config
from tfeff.layers.attention import Ability
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.checks import (
    check_divides,
    check_hidden,
    check_token_ids,
)
from tfeff.layers.initializer import bert_initializer
from tfeff.layers.relative_embedding import RelativeEmbedding
from tfeff.layers.self_attention import SelfAttention
from tfeff.ops import kernels
from tfeff.ops.sinusoid import LAYOUTS
from tfeff.ops.t5_buckets import check_t5_buckets
from tfeff.utils.checks import check_bool, check_choice, check_integer
from tfeff.utils.types import Config, Shape, Tensor


@dataclasses.dataclass(frozen=True)
class Method:
    """The scores of a method, and its defaults.

    Attributes:
        scores: the kernel of its scores: of queries, keys, rows and, for XLNet, biases.
        row: the shape of a row: `"head"`, a vector for each head; `"scalar"`, a number
            for each head; `"hidden"`, one vector for all.
        index: the row of a position, as `RelativeEmbedding` says; `None` for sinusoids
            instead of a table.
        neutral: the initializer of new weights with which the scores are those of plain
            attention.
        distance: the default of `max_distance`. Huang et al. have 512 tokens and clip
            none of their own tables.
        fixed_distance: whether an encoder has the same default; otherwise it takes the
            largest distance in its sequences.
        can_share: whether the heads may share one table.
    """

    scores: Callable
    row: str = "head"
    index: str | None = "signed"
    neutral: str = "zeros"
    distance: int | None = 511
    fixed_distance: bool = False
    can_share: bool = True


METHODS = {
    "shaw": Method(kernels.shaw_scores, distance=127),
    "rpe": Method(
        kernels.shaw_scores,
        row="hidden",
        distance=127,
        fixed_distance=True,
        can_share=False,
    ),
    "bias": Method(
        kernels.bias_scores,
        row="scalar",
        index="t5",
        distance=128,
        fixed_distance=True,
        can_share=False,
    ),
    "huang1": Method(
        kernels.scaled_scores, row="scalar", index="distance", neutral="ones"
    ),
    "huang2": Method(kernels.scaled_scores, row="scalar", neutral="ones"),
    "huang3": Method(kernels.gated_scores, neutral="ones"),
    "huang4": Method(kernels.pairwise_scores),
    "xlnet": Method(
        kernels.xlnet_scores,
        index=None,
        distance=None,
        fixed_distance=True,
        can_share=False,
    ),
}

# The method that has each option, and the option's value for all other methods.
_OPTIONS = {
    "num_buckets": ("bias", 32),
    "sinusoid": ("xlnet", "interleaved"),
    "relative_segments": ("xlnet", False),
    "query_bias": ("xlnet", True),
}


@keras.saving.register_keras_serializable(package="tfeff")
class RelativeAttention(SelfAttention):
    """Multi-head softmax attention with relative positions.

    `SelfAttention` with other scores. For a head, with `q = X W^Q + b^Q`,
    `k = X W^K + b^K`, `x = j - i` and a learnt `a_x` of the layer:

    | `method` | score of `i`, `j`, times `sqrt(H)` | `a_x` |
    |---|---|---|
    | `"shaw"` | `q_i · (k_j + a_x)` | vector |
    | `"rpe"` | `q_i · (k_j + a_x W^K)`; value `v_j + a_x W^V` | vector of `D` |
    | `"bias"` | `q_i · k_j + a_x sqrt(H)` | scalar, in T5's buckets |
    | `"huang1"` | `(q_i · k_j) a_abs(x)` | scalar |
    | `"huang2"` | `(q_i · k_j) a_x` | scalar |
    | `"huang3"` | `Σ_h q_i[h] k_j[h] a_x[h]` | vector |
    | `"huang4"` | `q_i · k_j + q_i · a_x + k_j · a_x` | vector |
    | `"xlnet"` | `(q_i + u) · k_j + (q_i + v) · W^R s_{-x}` | `s`, fixed sinusoids |

    A table `a` is a `RelativeEmbedding`, clipped at `max_distance`: sequences may have
    any length. Tables are initialised at small values, factors (`"huang1"` to
    `"huang3"`) at 1, which is plain attention.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        method: one of the table above.
        max_distance: integer `k`, distance in tokens from which on all positions share
            a row. Not clipped means `k = n - 1` for sequences of up to `n` tokens. The
            layer does not know them, so its default is the papers': 511 for `"huang1"`
            to `"huang4"`, which clip nothing of 512 tokens; 127 for `"shaw"` and
            `"rpe"`; 128 for `"bias"`; no limit for `"xlnet"`. `tfeff.encoders.Encoder`
            sets `n - 1` for the tables of Shaw and Huang.
        shared_heads: whether the heads share one table (`"shaw"`, `"huang1"` to
            `"huang4"`).
        num_buckets: even integer, rows of the table of `"bias"`.
        sinusoid: layout of the sinusoids of `"xlnet"`, `"interleaved"` or, as in
            published checkpoints, `"concatenated"`.
        relative_segments: for `"xlnet"`: whether `(q_i + b) · e_g` is added to the
            score, with a learnt `e_0` for pairs in one segment and `e_1` for others.
        relative_embedding: a `RelativeEmbedding` to use instead of an own one, such
            as the one table that all layers of T5 share. All of them must get it as
            an argument: a table that one layer makes is not shared in a saved model.
            `max_distance` and `num_buckets` are its own, and `index` is `"distance"`
            for `"huang1"`, `"t5"` for `"bias"`, and else `"signed"`.
        query_bias: for `"xlnet"`: whether `u`, `v` and the bias of segments are added
            to the query.
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
        segment_ids: integer tensor `[B, T]`, required with `relative_segments` and not
            used otherwise.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)`, scores
            `[B, N, T, T]` after the softmax, instead of the output `[B, T, D]` alone.

    Raises:
        ValueError: if `method` is unknown, `max_distance` is below 1, an argument is
            not one of the method's or of `relative_embedding`, `num_heads` does not
            divide the hidden size, or `segment_ids` are missing.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 5, 8))
    >>> layer = RelativeAttention(num_heads=2, method="huang4", max_distance=3)
    >>> tuple(layer(hidden).shape), tuple(layer.relative_embedding.embeddings.shape)
    ((2, 5, 8), (7, 2, 4))

    Reference:
        Huang et al., "Improve Transformer models with better relative position
        embeddings", section 3; Shaw et al., "Self-attention with relative position
        representations"; Raffel et al., "Exploring the limits of transfer learning",
        section 2.1; Tian et al., "Shatter", section 2; Yang et al., "XLNet", sections
        2.4 and 2.5.
    """

    can_pool = Ability("project", "relative_terms")

    def __init__(
        self,
        num_heads: int,
        method: str,
        max_distance: int | None = None,
        shared_heads: bool = False,
        num_buckets: int = 32,
        sinusoid: str = "interleaved",
        relative_segments: bool = False,
        relative_embedding: RelativeEmbedding | None = None,
        query_bias: bool = True,
        **kwargs: Any,
    ):
        super().__init__(num_heads, **kwargs)
        self.method = check_choice("method", method, METHODS)
        self.shared_heads = check_bool("shared_heads", shared_heads)
        self.num_buckets = check_integer("num_buckets", num_buckets)
        if max_distance is not None:
            max_distance = check_integer("max_distance", max_distance)
        self.shares_embedding = relative_embedding is not None
        if self.shares_embedding:
            self._take_table(relative_embedding, max_distance)
            max_distance = self.relative_embedding.max_distance
            if method == "bias":
                num_buckets = self.num_buckets = self.relative_embedding.num_buckets
        elif max_distance is None:
            max_distance = METHODS[method].distance
        self.max_distance = max_distance
        if method == "bias":
            assert max_distance is not None
            check_t5_buckets(num_buckets, max_distance)
        self.sinusoid = check_choice("sinusoid", sinusoid, LAYOUTS)
        self.relative_segments = check_bool("relative_segments", relative_segments)
        self.query_bias = check_bool("query_bias", query_bias)
        for name, (owner, default) in _OPTIONS.items():
            value = getattr(self, name)
            if value != default and method != owner:
                raise ValueError(
                    f"`{name}` must be left out unless the method is {owner!r}. "
                    f"Received: {name}={value!r}, method={method!r}"
                )
        if shared_heads and not METHODS[method].can_share:
            raise ValueError(
                f"`shared_heads` must be False for the method {method!r}. "
                f"Received: shared_heads={shared_heads}, method={method!r}"
            )

    def _take_table(self, table, max_distance):
        """Makes a table this layer's, if it is one of the method and the arguments."""
        index = METHODS[self.method].index
        if index is None or not isinstance(table, RelativeEmbedding):
            raise TypeError(
                "`relative_embedding` must be a `RelativeEmbedding`, for a method with "
                f"a table. Received: relative_embedding={table!r:.80}, "
                f"method={self.method!r:.80}"
            )
        if table.index != index:
            raise ValueError(
                f"`relative_embedding` must have the index {index!r} for the method "
                f"{self.method!r}. Received: relative_embedding.index={table.index!r}"
            )
        for name, value, left_out in (
            ("max_distance", max_distance, None),
            ("num_buckets", self.num_buckets, _OPTIONS["num_buckets"][1]),
        ):
            if value not in (left_out, getattr(table, name)):
                raise ValueError(
                    f"`{name}` must be left out, or be that of `relative_embedding`, "
                    f"{getattr(table, name)}. Received: {name}={value}"
                )
        self.relative_embedding = table

    def build(self, hidden_shape: Shape) -> None:
        self.input_dim = check_hidden("hidden", hidden_shape)
        hidden_dim = hidden_shape[-1]
        check_divides("num_heads", self.num_heads, hidden_dim)
        self.build_projections(hidden_dim, ("query", "key", "value"))
        heads = (self.num_heads, hidden_dim // self.num_heads)
        method = METHODS[self.method]
        if method.index is None:
            self._build_xlnet(hidden_dim, heads)
            return
        shapes = {"head": heads, "scalar": heads[:1], "hidden": (hidden_dim,)}
        shape = shapes[method.row]
        if self.shared_heads:
            shape = shape[1:]
        if not self.shares_embedding:
            assert self.max_distance is not None  # Only XLNet's may be.
            self.relative_embedding = RelativeEmbedding(
                self.max_distance,
                shape,
                index=method.index,
                num_buckets=self.num_buckets,
                embeddings_initializer=bert_initializer()
                if method.neutral == "zeros"
                else method.neutral,
                dtype=self.dtype_policy,
                name="relative",
            )
        if not self.relative_embedding.built:
            self.relative_embedding.build(())
        if self.relative_embedding.shape != shape:
            raise ValueError(
                f"`relative_embedding` must have rows of shape {shape}. Received: "
                f"relative_embedding with rows of {self.relative_embedding.shape}"
            )

    def _build_xlnet(self, hidden_dim, heads):
        if hidden_dim % 2:
            raise ValueError(
                "The hidden size must be even: sinusoids come in pairs. "
                f"Received: hidden_dim={hidden_dim}"
            )
        self.add_dense("relative", hidden_dim, hidden_dim, use_bias=False)
        for name in self._xlnet_weights():
            shape = (2, *heads) if name == "segment_embeddings" else heads
            weight = self.add_weight(
                name=name, shape=shape, initializer=bert_initializer()
            )
            setattr(self, name, weight)

    def _xlnet_weights(self):
        """The names of the weights of XLNet's scores but the sinusoids' kernel."""
        names = ["content_bias", "position_bias"] if self.query_bias else []
        if self.relative_segments:
            names += ["segment_bias"] if self.query_bias else []
            names += ["segment_embeddings"]
        return names

    @property
    def computes_few_queries(self) -> bool:  # type: ignore[override]
        """Whether the scores support queries at any positions."""
        return (
            super().computes_few_queries
            and self.method == "xlnet"
            and self.max_distance is None
            and self.relative_dense.quantization_mode is None
        )

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        queries, keys = super().project(inputs)
        if self.method != "xlnet" or not inputs.positional:
            return queries, keys
        if self.relative_segments:
            self._check_segments(inputs)
        weights = {name: getattr(self, name) for name in self._xlnet_weights()}
        if inputs.positions is not None:
            weights["kernel"] = self.relative_dense.kernel
        return queries, keys._replace(weights=weights)

    def relative_terms(
        self, positions: Tensor, inputs: AttentionInputs
    ) -> dict[str, Tensor]:
        if self.method == "xlnet":
            return {"scores": self._projected_sinusoids(positions)}
        # A shared table may have another dtype.
        rows = ops.cast(self.relative_embedding(positions), self.compute_dtype)
        if self.method != "rpe":
            return {"scores": rows}
        return {
            "scores": self._projected(rows, self.key_dense),
            "values": self._projected(rows, self.value_dense),
        }

    def reach(self, inputs: AttentionInputs) -> int | None:
        if self.method == "xlnet":
            return self.max_distance
        return self.relative_embedding.reach

    def scores(self, queries: Queries, keys: Keys) -> Tensor:
        if queries.positions is None:
            return super().scores(queries, keys)
        vectors = queries.vectors, keys.vectors
        score = METHODS[self.method].scores
        if self.method != "xlnet":
            return score(*vectors, queries.relative["scores"])
        biases = keys.weights.get("content_bias"), keys.weights.get("position_bias")
        if queries.relative is None:
            scores = functional.xlnet_scores_at(
                queries.positions[..., 0],
                *vectors,
                keys.weights["kernel"],
                *biases,
                sinusoid=self.sinusoid,
            )
        else:
            scores = score(*vectors, queries.relative["scores"], *biases)
        if not self.relative_segments:
            return scores
        return scores + functional.segment_scores(
            queries.vectors,
            queries.segment_ids,
            keys.segment_ids,
            keys.weights["segment_embeddings"],
            keys.weights.get("segment_bias"),
        )

    def value_rows(self, queries: Queries) -> Tensor | None:
        return None if queries.relative is None else queries.relative.get("values")

    def _projected(self, rows, dense):
        """`R W` in heads, without the bias, which only tokens have."""
        return self._in_heads(dense.project(rows))

    def _in_heads(self, rows):
        return ops.reshape(rows, (-1, self.num_heads, rows.shape[-1] // self.num_heads))

    def _projected_sinusoids(self, positions):
        if self.max_distance is not None:
            positions = ops.clip(positions, -self.max_distance, self.max_distance)
        positions = ops.cast(
            positions, keras.backend.result_type(self.compute_dtype, "float32")
        )
        rows = functional.sinusoids(
            -positions, self.relative_dense.kernel.shape[0], self.sinusoid
        )
        return self._in_heads(self.relative_dense(ops.expand_dims(rows, 0))[0])

    def _check_segments(self, inputs):
        if inputs.segment_ids is None:
            raise ValueError(
                "`segment_ids` must be given to an attention with relative segments. "
                "Received: segment_ids=None"
            )
        check_token_ids("segment_ids", inputs.segment_ids, inputs.hidden.shape[:2])

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            method=self.method,
            max_distance=self.max_distance,
            shared_heads=self.shared_heads,
            num_buckets=self.num_buckets,
            sinusoid=self.sinusoid,
            relative_segments=self.relative_segments,
            relative_embedding=None,
            query_bias=self.query_bias,
        )
        if self.shares_embedding:
            config["relative_embedding"] = shared_config(self.relative_embedding)
        return config

    @classmethod
    def from_config(cls, config: Config) -> "RelativeAttention":
        config = dict(config)
        if config.get("relative_embedding") is not None:
            config["relative_embedding"] = keras.layers.deserialize(
                config["relative_embedding"]
            )
        return cls(**config)
