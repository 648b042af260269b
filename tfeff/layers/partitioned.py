"""The mixin of attentions with a partition of unity."""

import keras

from tfeff.layers.partition_of_unity_mask import PartitionOfUnityMask
from tfeff.ops import kernels
from tfeff.ops.kernels.near_far import without_gradient
from tfeff.ops.partition import SPACING
from tfeff.utils.types import Config


class Partitioned:
    """Attentions whose weights are multiplied with a `PartitionOfUnityMask`.

    It comes before a `ScoredAttention` among the bases of a class, which makes its
    partition by `make_partition`.

    Args:
        alpha, beta, spacing, partition: as those of `PartitionOfUnityMask`.
        **kwargs: arguments of the next base.
    """

    dtype_policy: keras.DTypePolicy
    compute_dtype: str

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        spacing: float = SPACING,
        partition: str | dict | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._partition_arguments: Config = dict(
            alpha=alpha, beta=beta, spacing=spacing, partition=partition
        )

    def make_partition(self, num_parts, layer_index, num_layers, boundaries) -> None:
        """Makes the partition from its arguments."""
        self.partition_layer = PartitionOfUnityMask(
            num_parts,
            layer_index,
            num_layers,
            boundaries,
            **self._partition_arguments,
            dtype=self.dtype_policy,
            name="partition",
        )

    def relative_terms(self, positions, inputs):
        # A map of policies by path does not reach a layer that is never called.
        rows = self.partition_layer.rows(
            positions, inputs.layer_index, self.compute_dtype
        )
        return {"partition": rows}

    def reach(self, inputs):
        return self.partition_layer.reach(inputs.layer_index)

    def partition(self, queries):
        """`N` of the queries, `[n, t, S]`; `None` for queries without a position."""
        if queries.relative is None:
            return None
        return kernels.toeplitz_rows(queries.vectors, self.partition_rows(queries))

    def partition_rows(self, queries):
        """The partition by relative position, `[t + S, n]`, or `NearFar` of such."""
        # The rows depend on no weight; JAX must be told that they get no gradient.
        return without_gradient(queries.relative["partition"])

    def get_config(self):
        config = super().get_config()
        config.update(self.partition_layer.partition_config())
        return config
