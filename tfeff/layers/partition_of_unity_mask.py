from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.compat.saving import untracked
from tfeff.layers.layer import Layer
from tfeff.layers.partition_kinds import BernsteinPartition, StepPartition
from tfeff.layers.partition_registry import RegisteredPartition
from tfeff.ops.partition import SPACING, check_partition
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Config, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class PartitionOfUnityMask(Layer):
    """A soft mask that divides a sequence by relative position.

        N[h, i, j] = f_h(j - i),   f_h ≥ 0,   Σ_h f_h(x) = 1 at every x

    By default the `f_h` are Bernstein polynomials on a half-line mapped to [0, 1], by a
    different map in every layer: the parts of the first layer are concentrated around
    position 0, those of the last are evenly spaced, about 12 positions apart
    (`tfeff.ops.partition_functions` has the equations, and what `alpha`, `beta` and
    `spacing` are in them). Parts are ordered from 0 outwards, right half first.
    Position 0 counts half to either side.

    With `boundaries`, the `f_h` are step functions instead: part `h` holds the
    positions `b_h ≤ x < b_{h+1}`, from left to right. With `partition`, they are those
    that were registered under a name (`tfeff.layers.register_partition`).

    The mask has no weights, extends to any length, and is computed in float32 at
    least, then cast to the layer's compute dtype.

    Args:
        num_parts: integer `n`; even and at least 2, or, with `boundaries`, one
            more than their number; with `partition`, what its functions are made for.
        layer_index: integer `k`, the layer's index in its stack, from 0.
        num_layers: integer `L > k`, the number of layers of the stack.
        boundaries: increasing finite numbers `b_1 … b_{n-1}`, or `None` for the
            Bernstein partition. `tfeff.ops.t5_boundaries` gives T5's.
        alpha: float `α`, from -1e6 to -1e-6; `None` for the paper's.
        beta: float `β`, from -1e6 to -1e-6; `None` for the paper's.
        spacing: float, from 1e-6 to 1e6, that stands for 12 in the paper's `β`.
        partition: `None`, the name of a registered partition, or a dict with that
            `"name"` and further arguments of its functions.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: tensor `[B, T, D]`, of which only the length is used.
        layer_index: integer `k` that overrides the constructor's, or `None`.

    Returns:
        Float tensor `[n, T, T]`, to multiply scores `[B, n, T, T]`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if `num_parts` is odd or below 2, `layer_index` is not in
            `[0, num_layers)`, `boundaries` are not `num_parts - 1` increasing
            finite numbers, a number is out of range, an argument is given to a
            partition without it, or registered functions are no partition of unity.

    Example:

    >>> mask = PartitionOfUnityMask(num_parts=8)(keras.ops.zeros((1, 5, 16)))
    >>> tuple(mask.shape)
    (8, 5, 5)

    Reference:
        Tian et al., "Shatter", sections 3.1 and A.1.
    """

    keeps_positions = False

    def __init__(
        self,
        num_parts: int,
        layer_index: int = 0,
        num_layers: int = 12,
        boundaries: Sequence[float] | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        spacing: float = SPACING,
        partition: str | dict | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check = check_partition if partition is None else _check_registered
        check(num_parts, layer_index, num_layers, boundaries, alpha, beta, spacing)
        self.num_parts = int(num_parts)
        self.layer_index = int(layer_index)
        self.num_layers = int(num_layers)
        self.boundaries = None if boundaries is None else list(boundaries)
        self.alpha = None if alpha is None else float(alpha)
        self.beta = None if beta is None else float(beta)
        self.spacing = float(spacing)
        self.partition = untracked(partition)
        self._kind: BernsteinPartition | StepPartition | RegisteredPartition
        sizes = self.num_parts, self.num_layers
        if partition is not None:
            self._kind = RegisteredPartition(partition, *sizes, self.compute_dtype)
        elif boundaries is not None:
            self._kind = StepPartition(tuple(boundaries))
        else:
            self._kind = BernsteinPartition(*sizes, self.alpha, self.beta, self.spacing)
        self.built = True  # The layer has no weights.

    def call(self, hidden: Tensor, layer_index: int | None = None) -> Tensor:
        mask = functional.partition_mask(
            lambda positions: self.functions(positions, layer_index),
            ops.shape(hidden)[1],
        )
        return ops.cast(mask, self.compute_dtype)

    def compute_output_shape(self, hidden_shape: Shape) -> Shape:
        return (self.num_parts, hidden_shape[1], hidden_shape[1])

    def functions(
        self, relative_positions: Tensor, layer_index: int | None = None
    ) -> Tensor:
        """`f_h(x)` at integer or float positions `x` of any shape, `[n, ...]`.

        Args:
            relative_positions: tensor `x` `[...]`, in tokens.
            layer_index: integer that overrides the constructor's, or `None`.
        """
        # A float64 layer gets a float64 partition.
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        relative_positions = ops.cast(relative_positions, dtype)
        return self._kind.functions(relative_positions, self._index(layer_index))

    def reach(self, layer_index: int | None = None) -> int | None:
        """The distance beyond which one part of either side is 1, up to rounding.

        `None` for registered functions of which none is declared.

        Args:
            layer_index: integer that overrides the constructor's, or `None`.
        """
        # The policy may have changed, as that of a half precision model does for an
        # export in float32.
        return self._kind.reach(self._index(layer_index), self.compute_dtype)

    @property
    def outer_parts(self) -> tuple[int, int]:
        """The parts of far keys to the left and to the right."""
        return self._kind.outer_parts

    def rows(
        self,
        relative_positions: Tensor,
        layer_index: int | None = None,
        dtype: str | None = None,
    ) -> Tensor:
        """`functions` as rows `[R, n]`.

        Args:
            relative_positions: tensor `[R]`, in tokens.
            layer_index: integer that overrides the constructor's, or `None`.
            dtype: dtype of the rows; `None` means the compute dtype.
        """
        rows = ops.moveaxis(self.functions(relative_positions, layer_index), 0, -1)
        return ops.cast(rows, self.compute_dtype if dtype is None else dtype)

    def _index(self, layer_index):
        """The layer's index in a call with this one."""
        if layer_index is None:
            return self.layer_index
        return check_integer("layer_index", layer_index, 0, self.num_layers - 1)

    def partition_config(self) -> dict:
        """The arguments but `num_parts` and those of `keras.layers.Layer`."""
        return dict(
            layer_index=self.layer_index,
            num_layers=self.num_layers,
            boundaries=untracked(self.boundaries),
            alpha=self.alpha,
            beta=self.beta,
            spacing=self.spacing,
            partition=untracked(self.partition),
        )

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(num_parts=self.num_parts, **self.partition_config())
        return config


def _check_registered(
    num_parts, layer_index, num_layers, boundaries, alpha, beta, spacing
):
    """Raises unless the arguments can be those of a registered partition."""
    num_parts = check_integer("num_parts", num_parts)
    num_layers = check_integer("num_layers", num_layers)
    layer_index = check_integer("layer_index", layer_index, 0, num_layers - 1)
    given = dict(alpha=alpha, beta=beta, spacing=spacing, boundaries=boundaries)
    for name, value in given.items():
        if value is not None and (name, value) != ("spacing", SPACING):
            raise ValueError(
                f"`{name}` must be left out with a registered `partition`, whose "
                "arguments stand in its dict. "
                f"Received: {name}={value!r}"
            )
