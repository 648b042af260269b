import keras

from tfeff.layers.convolution import FixedKernels
from tfeff.layers.dynamic_conv import DynamicConv1D


@keras.saving.register_keras_serializable(package="tfeff")
class LightweightConv1D(FixedKernels, DynamicConv1D):
    """Gated depthwise convolution with one kernel a head, the same at all positions.

    `DynamicConv1D` with a learnt vector `w[h]` of `K` numbers for each head instead of
    predicted kernels:

        a, g    = halves of X W^I + b^I                        [T, D], [T, D]
        u       = a ⊙ sigmoid(g)                               [T, D]
        Y[i, h] = Σ_t softmax(w[h])[t] u[i + t - (K - 1) / 2, h]
        result  = concat_h(Y[h]) W^O + b^O

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel.
        mask_conv: whether padding counts as 0. If not, it leaks into its neighbours.
        dropout: float in [0, 1), dropout rate of the normalised kernels, independent
            at each position.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        disabled_heads: indices of heads that are switched off: their outputs are 0, in
            training and in inference.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments, Raises: as `DynamicConv1D`.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(LightweightConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 3; Jiang et al., "ConvBERT", section 3.1, equation 2.
    """
