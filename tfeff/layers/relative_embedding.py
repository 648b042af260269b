from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.checks import check_initializer
from tfeff.layers.layer import Layer
from tfeff.ops.ids import as_int32
from tfeff.ops.t5_buckets import check_t5_buckets
from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.types import Config, Initializer, Shape, Tensor

INDICES = ("signed", "distance", "t5")


@keras.saving.register_keras_serializable(package="tfeff")
class RelativeEmbedding(Layer):
    """A learnt table of relative positions, clipped at a distance.

    A relative position `x = j - i` has one row `a_x`, of any shape: a scalar or a
    vector, for all heads together or for each. Which row it is:

    | `index` | row of `x`, with `k = max_distance` | rows |
    |---|---|---|
    | `"signed"` | `max(-k, min(x, k)) + k` | `2k + 1` |
    | `"distance"` | `min(abs(x), k)` | `k + 1` |
    | `"t5"` | T5's bucket (`tfeff.ops.t5_buckets`) | `num_buckets` |

    Positions further away than `k` use the end rows, so that any length is supported.

    Args:
        max_distance: integer `k ≥ 1`, in tokens.
        shape: shape of a row, such as `(num_heads, head_dim)`; `()` for one scalar.
        index: `"signed"`, `"distance"` or `"t5"`.
        num_buckets: even integer, for `"t5"` only: the first half of the rows is for
            `x ≤ 0`, the second for `x > 0`.
        embeddings_initializer: initializer of the table.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        relative_positions: integer tensor `[...]`.

    Returns:
        Float tensor `[..., *shape]`.

    Raises:
        ValueError: if `max_distance` is below 1, `index` is unknown, or
            `num_buckets` is odd, below 4, or too many for `max_distance`.
        TypeError: if `shape` is not a sequence of integers, or relative positions are
            not integers.

    Example:

    >>> embed = RelativeEmbedding(max_distance=2, shape=(3,))
    >>> tuple(embed(keras.ops.arange(-4, 5)).shape)
    (9, 3)

    Reference:
        Shaw et al., "Self-attention with relative position representations",
        section 3.2; Huang et al., "Improve Transformer models with better relative
        position embeddings", equations 8, 9, 11, 13 and 14; Raffel et al., "Exploring
        the limits of transfer learning", section 2.1.
    """

    def __init__(
        self,
        max_distance: int,
        shape: Sequence[int] = (),
        index: str = "signed",
        num_buckets: int = 32,
        embeddings_initializer: Initializer = "uniform",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.max_distance = check_integer("max_distance", max_distance)
        if not isinstance(shape, Sequence):
            raise TypeError(
                "`shape` must be a sequence of integers, () for scalars. "
                f"Received: shape={shape!r}"
            )
        self.shape = tuple(check_integer("shape", size) for size in shape)
        self.index = check_choice("index", index, INDICES)
        self.num_buckets = check_integer("num_buckets", num_buckets)
        if index == "t5":
            check_t5_buckets(num_buckets, max_distance)
        self.embeddings_initializer = check_initializer(
            "embeddings_initializer", embeddings_initializer
        )

    def build(self, relative_positions_shape: Shape | None = None) -> None:
        rows = {
            "signed": 2 * self.max_distance + 1,
            "distance": self.max_distance + 1,
            "t5": self.num_buckets,
        }
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(rows[self.index], *self.shape),
            initializer=self.embeddings_initializer,
            # The gradient of a row is a sum over many positions, too long for bfloat16.
            autocast=False,
        )

    def call(self, relative_positions: Tensor) -> Tensor:
        positions = as_int32("relative_positions", relative_positions)
        found = ops.take(self.embeddings, self._rows(positions), axis=0)
        return ops.cast(found, self.compute_dtype)

    def compute_output_shape(self, relative_positions_shape: Shape) -> Shape:
        return (*relative_positions_shape, *self.shape)

    @property
    def reach(self) -> int:
        """The distance from which on all positions of a side share a row."""
        if self.index != "t5":
            return self.max_distance
        boundaries = functional.t5_boundaries(self.num_buckets, self.max_distance)
        return max(map(abs, boundaries))

    def _rows(self, x):
        if self.index == "t5":
            return functional.t5_buckets(x, self.num_buckets, self.max_distance)
        near = ops.clip(x, -self.max_distance, self.max_distance)
        return ops.abs(near) if self.index == "distance" else near + self.max_distance

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            max_distance=self.max_distance,
            shape=self.shape,
            index=self.index,
            num_buckets=self.num_buckets,
            embeddings_initializer=keras.initializers.serialize(
                self.embeddings_initializer
            ),
        )
        return config
