import keras
from keras import ops

from tfeff.layers.lightweight_conv import LightweightConv1D


@keras.saving.register_keras_serializable(package="tfeff")
class DynamicConv1D(LightweightConv1D):
    """Convolution whose kernels each position makes for itself.

    `LightweightConv1D` with kernels from the query `q = X W^Q + b^Q`:

        w[i] = softmax(q_i W_f + b_f)                          [N, K]
        Y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]

    The softmax runs over the `K` taps of a head; `W_f` has the taps of the first
    head first.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel.
        mask_conv: whether padding counts as 0. If not, it leaks into its neighbours.
        dropout: float in [0, 1), dropout rate of the normalised kernels.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments, Raises: as `LightweightConv1D`.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(DynamicConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 4; Jiang et al., "ConvBERT", section 3.1.
    """

    def build(self, hidden_shape):
        super().build(hidden_shape)
        self.add_dense("query", hidden_shape[-1], hidden_shape[-1])

    def build_kernels(self, hidden_dim: int, mixed_dim: int) -> None:
        """Makes `W_f` and its bias."""
        self.add_dense("kernel", mixed_dim, self.num_heads * self.kernel_size)

    def project_query(self, hidden):
        """The query of each position, `[B, T, D]`."""
        return self.query_dense(hidden)

    def kernel_logits(self, hidden, query):
        """`q W_f + b_f`, `[B, T, N, K]`."""
        logits = self.kernel_dense(query)
        batch, length, _ = ops.shape(logits)
        return ops.reshape(logits, (batch, length, self.num_heads, self.kernel_size))
