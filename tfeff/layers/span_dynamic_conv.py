import keras

from tfeff.layers.convolution_heads import DynamicHeads
from tfeff.ops.masking import zeros_outside
from tfeff.utils.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class SpanDynamicConv1D(DynamicHeads):
    """Dynamic convolution with kernels from a span of the sequence (ConvBERT).

    Kernels come from the query and from a key `c` of the span around the position, a
    depthwise convolution of `X` with the same kernel size, followed by a pointwise
    one. There is no gate:

        q, u    = X W^Q + b^Q, X W^V + b^V                     [T, D]
        c       = pointwise(depthwise(X)) + b_c                [T, D]
        w[i]    = softmax((c_i ⊙ q_i) W_f + b_f)               [N, K]
        Y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]
        result  = concat_h(Y[h]) W^O + b^O

    So the same word has different kernels in different contexts.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel and width of a span.
        mask_conv: whether padding counts as 0, in both convolutions. If not, it leaks
            into its neighbours, as in the published ConvBERT.
        dropout: float in [0, 1), dropout rate of the normalised kernels.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        disabled_heads: indices of heads that are switched off: their outputs are 0, in
            training and in inference.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments, Raises: as `DynamicConv1D`.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(SpanDynamicConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Jiang et al., "ConvBERT", section 3.2, equations 4 and 5, and Figure 3c.
    """

    def build(self, hidden_shape: Shape) -> None:
        super().build(hidden_shape)
        self.add_dense("query", hidden_shape[-1], hidden_shape[-1])

    def build_kernels(self, hidden_dim: int, value_dim: int) -> None:
        """Makes `W_f`, its bias, and the convolution of the span."""
        super().build_kernels(hidden_dim, value_dim)
        self.span_key = self.make_separable(
            "span_key", hidden_dim, value_dim, self.kernel_size
        )

    def convolve(
        self, hidden: Tensor, visible: Tensor, training: bool | None
    ) -> tuple[Tensor, Tensor]:
        """As `convolve_heads`, with its own query."""
        return self.convolve_heads(self.query_dense(hidden), hidden, visible, training)

    def kernel_source(self, query: Tensor, hidden: Tensor, visible: Tensor) -> Tensor:
        """`c ⊙ q`."""
        return self.span_key(zeros_outside(hidden, visible)) * query
