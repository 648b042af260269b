"""The two kinds of partitions that `tfeff.ops` defines, for the layers of a stack.

The third kind, with the same methods, is `RegisteredPartition`.
"""

import dataclasses
import math

from tfeff.ops.partition import bucket_functions, partition_functions, partition_reach
from tfeff.utils.types import Tensor


@dataclasses.dataclass(frozen=True)
class BernsteinPartition:
    """The Bernstein partitions of the layers of a stack.

    Attributes:
        num_parts, num_layers, alpha, beta, spacing: as in `partition_functions`.
        outer_parts: the parts of far keys to the left and to the right.
    """

    num_parts: int
    num_layers: int
    alpha: float | None
    beta: float | None
    spacing: float

    def functions(self, relative_positions: Tensor, layer_index: int) -> Tensor:
        """`partition_functions` of a layer."""
        constants = self.alpha, self.beta, self.spacing
        return partition_functions(
            relative_positions, self.num_parts, layer_index, self.num_layers, *constants
        )

    def reach(self, layer_index: int, dtype: str) -> int:
        """`partition_reach` of a layer."""
        constants = self.alpha, self.beta, self.spacing
        return partition_reach(
            self.num_parts, layer_index, self.num_layers, dtype, *constants
        )

    @property
    def outer_parts(self) -> tuple[int, int]:
        return self.num_parts - 1, self.num_parts // 2 - 1


@dataclasses.dataclass(frozen=True)
class StepPartition:
    """The partition by boundaries, the same in every layer.

    Attributes:
        boundaries: as in `bucket_functions`.
        outer_parts: the parts of far keys to the left and to the right.
    """

    boundaries: tuple[float, ...]

    def functions(self, relative_positions: Tensor, layer_index: int) -> Tensor:
        """`bucket_functions`, whatever the layer."""
        return bucket_functions(relative_positions, self.boundaries)

    def reach(self, layer_index: int, dtype: str) -> int:
        """The distance beyond which one part of either side is 1, in any dtype."""
        return math.ceil(max(map(abs, self.boundaries), default=0)) + 1

    @property
    def outer_parts(self) -> tuple[int, int]:
        return 0, len(self.boundaries)
