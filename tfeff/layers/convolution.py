"""The base of the convolutions along the sequence: taps, padding, the call."""

from collections.abc import Callable

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention import Attention
from tfeff.layers.checks import (
    check_disabled_heads,
    check_divides,
    check_hidden,
    check_kernel_size,
    check_return_scores,
    visible_keys,
)
from tfeff.layers.initializer import own_initializer
from tfeff.ops.kernels import masked_softmax
from tfeff.ops.masking import zeros_outside
from tfeff.utils.checks import check_bool, check_integer


class Convolution(Attention):
    """Base class of the convolutions that replace an attention.

    A subclass makes its weights in `build_heads`, and values and kernels in `convolve`,
    which ends in `apply_kernels`. This class applies the output projection `W^O` and
    returns the kernels on request. `kernel_logits` gives the kernels, here those of a
    dynamic convolution:

        softmax(s_i W_f + b_f)                                 [N, K]

    where `s` is a source that the subclass chooses. The softmax runs over the `K` taps
    of a head; `W_f` has the taps of the first head first.

    Args:
        num_heads: integer `N ≥ 1` that divides the hidden size.
        kernel_size: odd integer `K`, taps of a kernel.
        mask_conv: whether padding counts as 0.
        **kwargs: arguments of `Attention`.
    """

    has_comparable_scores = False  # They are kernels.

    def __init__(
        self, num_heads: int, kernel_size: int = 9, mask_conv: bool = True, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads)
        self.kernel_size = check_kernel_size(kernel_size)
        self.mask_conv = check_bool("mask_conv", mask_conv)
        self.reads_padding = not self.mask_conv
        if type(self).output_heads is Attention.output_heads:
            check_disabled_heads(self.disabled_heads, self.num_heads)

    def build(self, hidden_shape):
        self.input_dim = check_hidden("hidden", hidden_shape)
        hidden_dim = hidden_shape[-1]
        check_divides("num_heads", self.num_heads, hidden_dim)
        check_disabled_heads(self.disabled_heads, self.output_heads)
        self.add_dense("output", hidden_dim, hidden_dim)
        self.build_heads(hidden_dim, hidden_dim)

    def build_heads(self, hidden_dim: int, value_dim: int) -> None:
        """Makes the layers of the convolution, from `hidden_dim` to `value_dim`."""
        self.dropout_layer = self.make_dropout()
        self.build_kernels(hidden_dim, value_dim)

    def build_kernels(self, hidden_dim: int, value_dim: int) -> None:
        """Makes `W_f` and its bias."""
        self.add_dense("kernel", value_dim, self.num_heads * self.kernel_size)

    def call(
        self,
        hidden,
        padding_mask=None,
        training=None,
        return_attention_scores=False,
        head_mask=None,
        mask=None,
    ):
        check_hidden("hidden", hidden.shape, self.input_dim)
        returned = check_return_scores(self, return_attention_scores)
        visible = visible_keys(padding_mask, hidden, mask)
        if not self.mask_conv:
            visible = None
        context, kernels = self.convolve(hidden, visible, training)
        context = self.mask_heads(functional.merge_heads(context), head_mask)
        output = self.project_output(context)
        if not returned:
            return output
        batch, length, _ = ops.shape(hidden)
        shape = (batch, length, self.num_heads, self.kernel_size)
        kernels = ops.broadcast_to(kernels, shape)
        return output, functional.banded_scores(kernels, length, visible)

    def convolve(self, hidden, visible, training):
        """The convolution without the output projection.

        Args:
            hidden: float tensor `[B, T, D]`.
            visible: bool tensor `[B, T]`, false where values count as 0, or `None`.
            training: whether dropout is active.

        Returns:
            `(context, kernels)`, as `apply_kernels`.
        """
        raise NotImplementedError

    def kernel_logits(self, source):
        """Kernels before the softmax, `[B, T, N, K]` or, for all positions, `[N, K]`.

        Args:
            source: float tensor `s` `[B, T, value_dim]`.
        """
        logits = self.kernel_dense(source)
        batch, length, _ = ops.shape(logits)
        return ops.reshape(logits, (batch, length, self.num_heads, self.kernel_size))

    def apply_kernels(self, logits, values, visible, training):
        """Convolves values with the softmax of `logits`.

        Args:
            logits: as `kernel_logits` gives them.
            values: float tensor `u` `[B, T, N, H]`.
            visible: bool tensor `[B, T]`, false at values that count as 0, or `None`.
            training: whether dropout is active.

        Returns:
            `(context, kernels)`: `[B, T, N, H]`, and the kernels without dropout, in
            the shape of `logits`.
        """
        kernels = dropped = masked_softmax(logits)
        if training and self.dropout_layer.rate:
            shape = (*ops.shape(values)[:3], self.kernel_size)
            dropped = ops.cast(ops.broadcast_to(kernels, shape), values.dtype)
            dropped = self.dropout_layer(dropped, training=training)
        values = zeros_outside(values, visible)
        context = functional.dynamic_convolution(values, dropped)
        return context, ops.cast(kernels, values.dtype)

    def get_config(self):
        config = super().get_config()
        config.update(
            num_heads=self.num_heads,
            kernel_size=self.kernel_size,
            mask_conv=self.mask_conv,
        )
        return config


class FixedKernels:
    """Kernels that do not depend on the position: `softmax(w)` with learnt `w`.

    It comes before a `Convolution` among the bases of a class.
    """

    num_heads: int
    kernel_size: int
    kernel_initializer: keras.Initializer
    add_weight: Callable

    def build_kernels(self, hidden_dim: int, value_dim: int) -> None:
        """Makes `w`, `[N, K]`."""
        self.taps = self.add_weight(
            name="taps",
            shape=(self.num_heads, self.kernel_size),
            initializer=own_initializer(self.kernel_initializer),
        )

    def kernel_logits(self, source):
        """`w`, whatever the source, in float32 or better.

        Its gradient, the difference of sums over all positions, would otherwise be that
        of rounded sums.
        """
        taps = ops.reshape(self.taps, (self.num_heads, self.kernel_size))
        return ops.cast(taps, keras.backend.result_type(taps.dtype, "float32"))
