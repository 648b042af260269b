import math
from collections.abc import Sequence

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.ops.partition import check_partition
from tfeff.utils.checks import check_integer


@keras.saving.register_keras_serializable(package="tfeff")
class PartitionOfUnityMask(keras.layers.Layer):
    """A soft mask that divides a sequence by relative position.

        N[h, i, j] = f_h(j - i),   f_h ≥ 0,   Σ_h f_h(x) = 1 at every x

    By default the `f_h` are Bernstein polynomials on a half-line mapped to [0, 1], by a
    different map in every layer: the parts of the first layer are concentrated around
    position 0, those of the last are evenly spaced, about 12 positions apart
    (`tfeff.ops.partition_functions` has the equations). Parts are ordered from 0
    outwards, right half first. Position 0 counts half to either side.

    With `boundaries`, the `f_h` are step functions instead: part `h` holds the
    positions `b_h ≤ x < b_{h+1}`, from left to right.

    The mask has no weights, extends to any length, and is computed in float32 at
    least, then cast to the layer's compute dtype.

    Args:
        num_parts: integer `n`; even and at least 2, or, with `boundaries`, one
            more than their number.
        layer_index: integer `k`, the layer's index in its stack, from 0.
        num_layers: integer `L > k`, the number of layers of the stack.
        boundaries: increasing finite numbers `b_1 … b_{n-1}`, or `None` for the
            Bernstein partition. `tfeff.ops.t5_boundaries` gives T5's.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: tensor `[B, T, D]`, of which only the length is used.
        layer_index: integer `k` that overrides the constructor's, or `None`.

    Returns:
        Float tensor `[n, T, T]`, to multiply scores `[B, n, T, T]`.

    Raises:
        ValueError: if `num_parts` is odd or below 2, `layer_index` is not in
            `[0, num_layers)`, or `boundaries` are not `num_parts - 1` increasing
            finite numbers.

    Example:

    >>> mask = PartitionOfUnityMask(num_parts=8)(keras.ops.zeros((1, 5, 16)))
    >>> tuple(mask.shape)
    (8, 5, 5)

    Reference:
        Tian et al., "Shatter", sections 3.1 and A.1.
    """

    def __init__(
        self,
        num_parts: int,
        layer_index: int = 0,
        num_layers: int = 12,
        boundaries: Sequence[float] | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_partition(num_parts, layer_index, num_layers, boundaries)
        self.num_parts = int(num_parts)
        self.layer_index = int(layer_index)
        self.num_layers = int(num_layers)
        self.boundaries = None if boundaries is None else list(boundaries)
        self.built = True  # The layer has no weights.

    def call(self, hidden, layer_index=None):
        mask = functional.partition_mask(
            lambda positions: self.functions(positions, layer_index),
            ops.shape(hidden)[1],
        )
        return ops.cast(mask, self.compute_dtype)

    def functions(self, relative_positions, layer_index: int | None = None):
        """`f_h(x)` at integer or float positions `x` of any shape, `[n, ...]`."""
        if layer_index is None:
            layer_index = self.layer_index
        layer_index = check_integer("layer_index", layer_index, 0, self.num_layers - 1)
        if self.boundaries is not None:
            return functional.bucket_functions(relative_positions, self.boundaries)
        return functional.partition_functions(
            # A float64 layer gets a float64 partition.
            ops.cast(
                relative_positions,
                keras.backend.result_type(self.compute_dtype, "float32"),
            ),
            self.num_parts,
            layer_index,
            self.num_layers,
        )

    def reach(self, layer_index: int | None = None) -> int:
        """The distance beyond which one part of either side is 1, up to rounding."""
        if self.boundaries is not None:
            return math.ceil(max(map(abs, self.boundaries), default=0)) + 1
        return functional.partition_reach(
            self.num_parts,
            self.layer_index if layer_index is None else layer_index,
            self.num_layers,
            self.compute_dtype,
        )

    @property
    def outer_parts(self) -> tuple[int, int]:
        """The parts of far keys to the left and to the right."""
        if self.boundaries is not None:
            return 0, self.num_parts - 1
        return self.num_parts - 1, self.num_parts // 2 - 1

    def rows(self, relative_positions, layer_index: int | None = None):
        """`functions` as rows `[R, n]` in the compute dtype."""
        rows = ops.moveaxis(self.functions(relative_positions, layer_index), 0, -1)
        return ops.cast(rows, self.compute_dtype)

    def get_config(self):
        config = super().get_config()
        config.update(
            num_parts=self.num_parts,
            layer_index=self.layer_index,
            num_layers=self.num_layers,
            boundaries=self.boundaries,
        )
        return config
