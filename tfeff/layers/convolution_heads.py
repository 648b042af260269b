"""Convolution heads without a gate, used beside attention heads."""

from tfeff.layers.attention import project_to_heads
from tfeff.layers.convolution import Convolution, FixedKernels


class DynamicHeads(Convolution):
    """Heads with their own values, and kernels from a given query.

        u       = X W^V + b^V                                  [T, A]
        w[i]    = softmax(q_i W_f + b_f)                       [N, K]
        Y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]

    `MixedAttention` shares its query with them and projects their output.

    Args: as `Convolution`.

    Reference:
        Jiang et al., "ConvBERT", Table 2.
    """

    def build_heads(self, hidden_dim: int, value_dim: int) -> None:
        """Makes `W^V` and the layers of the kernels."""
        self.add_dense("value", hidden_dim, value_dim)
        super().build_heads(hidden_dim, value_dim)

    def convolve_heads(self, query, hidden, visible, training):
        """The convolution of `hidden` `[B, T, D]` for a query `[B, T, A]`.

        Args:
            query, hidden: float tensors.
            visible, training: as for `convolve`.

        Returns:
            `(context, kernels)`, as `apply_kernels`.
        """
        source = self.kernel_source(query, hidden, visible)
        values = project_to_heads(
            self.value_dense, hidden, self.num_heads, heads_first=False
        )
        return self.apply_kernels(self.kernel_logits(source), values, visible, training)

    def kernel_source(self, query, hidden, visible):
        """The source `[B, T, A]` of the kernels; here the query."""
        return query


class LightweightHeads(FixedKernels, DynamicHeads):
    """`DynamicHeads` with the same learnt kernels at all positions."""
