import keras

from tfeff.layers.attention import convolved
from tfeff.layers.dynamic_conv import DynamicConv1D


@keras.saving.register_keras_serializable(package="tfeff")
class SpanDynamicConv1D(DynamicConv1D):
    """Dynamic convolution whose kernels see a span of the sequence (ConvBERT).

    `DynamicConv1D` with kernels from the query and from a key `c` of the span around
    the position, a depthwise convolution of `X` with the same kernel size, followed
    by a pointwise one:

        c = pointwise(depthwise(X)) + b_c                      [T, D]
        w[i] = softmax((c_i ⊙ q_i) W_f + b_f)                  [N, K]
        Y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]

    So the same word has different kernels in different contexts.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel and width of a span.
        mask_conv: whether padding counts as 0, in both convolutions. If not, it leaks
            into its neighbours, as in the published ConvBERT.
        dropout: float in [0, 1), dropout rate of the normalised kernels.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments, Raises: as `LightweightConv1D`.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(SpanDynamicConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Jiang et al., "ConvBERT", section 3.1.
    """

    def build_kernels(self, hidden_dim: int, mixed_dim: int) -> None:
        """Makes `W_f`, its bias, and the convolution of the span."""
        super().build_kernels(hidden_dim, mixed_dim)
        self.span_key = self.make_separable(
            "span_key", hidden_dim, mixed_dim, self.kernel_size
        )

    def kernel_logits(self, hidden, query):
        """`(c ⊙ q) W_f + b_f`, `[B, T, N, K]`."""
        return super().kernel_logits(hidden, convolved(self.span_key, hidden) * query)
