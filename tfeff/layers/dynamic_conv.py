import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.convolution import Convolution
from tfeff.utils.types import Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class DynamicConv1D(Convolution):
    """Gated convolution with kernels that are predicted at each position.

    A linear layer to twice the width and a gated linear unit (GLU) give the values,
    which are split into `N` heads by columns. From its value, each position predicts a
    kernel of `K` taps for every head:

        a, g    = halves of X W^I + b^I                        [T, D], [T, D]
        u       = a ⊙ sigmoid(g)                               [T, D]
        w[i]    = softmax(u_i W_f + b_f)                       [N, K]
        Y[i, h] = Σ_t w[i, h, t] u[i + t - (K - 1) / 2, h]
        result  = concat_h(Y[h]) W^O + b^O

    The softmax runs over the `K` taps of a head; `W_f` has the taps of the first
    head first. `u` is 0 beyond the ends of the sequence.

    A drop-in for an attention: it has the same call and takes a padding mask.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel.
        mask_conv: whether padding counts as 0. If not, it leaks into its neighbours.
        dropout: float in [0, 1), dropout rate of the normalised kernels.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        disabled_heads: indices of heads that are switched off: their outputs are 0, in
            training and in inference.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)` instead of the
            output `[B, T, D]` alone. Scores are the kernels, without dropout, as an
            attention matrix `[B, N, T, T]`.

    Raises:
        ValueError: if `kernel_size` is even, or `num_heads` does not divide the
            hidden size.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(DynamicConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 4; Jiang et al., "ConvBERT", section 3.1, equation 3, and Figure 3b.
    """

    def build_heads(self, hidden_dim: int, value_dim: int) -> None:
        """Makes `W^I` and the layers of the kernels."""
        self.add_dense("input", hidden_dim, 2 * value_dim)
        super().build_heads(hidden_dim, value_dim)

    def convolve(
        self, hidden: Tensor, visible: Tensor, training: bool | None
    ) -> tuple[Tensor, Tensor]:
        """Applies the gate, then kernels that are predicted from the result."""
        gated = ops.glu(self.input_dense(hidden))
        values = functional.split_heads(gated, self.num_heads)
        logits = self.kernel_logits(gated)
        return self.apply_kernels(logits, values, visible, training)
