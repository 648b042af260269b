import keras
from keras import ops

from tfeff import ops as functional
from tfeff.checks import check_integer
from tfeff.layers.attention import Attention, project_to_heads
from tfeff.layers.checks import (
    check_divides,
    check_hidden,
    check_kernel_size,
    visible_keys,
    zero_padding,
)


@keras.saving.register_keras_serializable(package="tfeff")
class LightweightConv1D(Attention):
    """Depthwise convolution along the sequence with one kernel a head.

    With `u = X W^V + b^V` cut into `N` heads by columns, and `w[h]` a learnt vector
    of `K` numbers for each head:

        Y[i, h] = Σ_t softmax(w[h])[t] u[i + t - (K - 1) / 2, h]
        result  = concat_h(Y[h]) W^O + b^O

    A drop-in for an attention: it has the same call and takes a padding mask.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel.
        mask_conv: whether padding counts as 0. If not, it leaks into its neighbours,
            as in the published ConvBERT.
        dropout: float in [0, 1), dropout rate of the normalised kernels.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` when all are real.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)` instead of the
            output `[B, T, D]` alone. Scores are the kernels laid out as an attention
            matrix, `[B, N, T, T]`.

    Raises:
        ValueError: if `kernel_size` is even, or `num_heads` does not divide the
            hidden size.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(LightweightConv1D(num_heads=2, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Wu et al., "Pay less attention with lightweight and dynamic convolutions",
        section 3; Jiang et al., "ConvBERT", section 3.1.
    """

    def __init__(
        self, num_heads: int, kernel_size: int = 9, mask_conv: bool = True, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads)
        self.kernel_size = check_kernel_size(kernel_size)
        self.mask_conv = bool(mask_conv)

    def build(self, hidden_shape):
        check_hidden("hidden", hidden_shape)
        hidden_dim = hidden_shape[-1]
        check_divides("num_heads", self.num_heads, hidden_dim)
        self.add_dense("output", hidden_dim, hidden_dim)
        self.build_convolution(hidden_dim, hidden_dim)

    def build_convolution(self, hidden_dim: int, mixed_dim: int) -> None:
        """Makes what the convolution itself needs, from `hidden_dim` to `mixed_dim`."""
        self.add_dense("value", hidden_dim, mixed_dim)
        self.dropout_layer = self.make_dropout()
        self.build_kernels(hidden_dim, mixed_dim)

    def build_kernels(self, hidden_dim: int, mixed_dim: int) -> None:
        """Makes what the kernels come from."""
        self.taps = self.add_weight(
            name="taps",
            shape=(self.num_heads, self.kernel_size),
            initializer=self.kernel_initializer.clone(),
        )

    def call(
        self, hidden, padding_mask=None, training=None, return_attention_scores=False
    ):
        visible = visible_keys(padding_mask, hidden)
        mixed, kernels = self.convolve(
            hidden, visible, training, query=self.project_query(hidden)
        )
        output = self.project_output(functional.merge_heads(mixed))
        if not return_attention_scores:
            return output
        return output, functional.banded_scores(
            kernels, ops.shape(hidden)[1], visible if self.mask_conv else None
        )

    def project_query(self, hidden):
        """What kernels are made of besides the layer's weights; here nothing."""
        return None

    def convolve(self, hidden, visible, training, query):
        """The convolution without the output projection.

        Args:
            hidden: float tensor `[B, T, D]`.
            visible: bool tensor `[B, T]`, true at real tokens, or `None`.
            training: whether dropout is active.
            query: float tensor `[B, T, mixed_dim]`, or `None` where none is needed.

        Returns:
            `(mixed, kernels)`: `[B, T, N, H]` and `[B, T, N, K]`.
        """
        if not self.mask_conv:
            visible = None
        batch, length, _ = ops.shape(hidden)
        heads = (batch, length, self.num_heads)
        logits = self.kernel_logits(zero_padding(hidden, visible), query)
        kernels = functional.masked_softmax(logits)
        kernels = ops.broadcast_to(kernels, (*heads, self.kernel_size))
        kernels = self.dropout_layer(kernels, training=training)
        values = project_to_heads(
            self.value_dense, hidden, self.num_heads, heads_first=False
        )
        values = zero_padding(values, visible)
        return functional.dynamic_convolution(values, kernels), kernels

    def kernel_logits(self, hidden, query):
        """Kernels before the softmax, `[1, N, K]` or `[B, T, N, K]`."""
        return ops.expand_dims(self.taps, 0)

    def get_config(self):
        config = super().get_config()
        config.update(
            num_heads=self.num_heads,
            kernel_size=self.kernel_size,
            mask_conv=self.mask_conv,
        )
        return config
