from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention import Ability, project_to_heads
from tfeff.layers.attention_inputs import AttentionInputs, Keys, Queries
from tfeff.layers.checks import (
    check_disabled_heads,
    check_divides,
    check_hidden,
    check_kernel_size,
)
from tfeff.layers.convolution_heads import DynamicHeads, LightweightHeads
from tfeff.layers.initializer import own_initializer
from tfeff.layers.self_attention import SelfAttention
from tfeff.layers.span_dynamic_conv import SpanDynamicConv1D
from tfeff.ops.masking import zeros_outside
from tfeff.utils.checks import check_bool, check_choice, check_integer
from tfeff.utils.types import Config, Shape, Tensor

_CONVOLUTIONS = {
    "span_dynamic": SpanDynamicConv1D,
    "dynamic": DynamicHeads,
    "lightweight": LightweightHeads,
}
CONVOLUTIONS = (*_CONVOLUTIONS, "separable", "none")
# Arguments of a convolution, and their defaults.
_OPTIONS = {"kernel_size": 9, "mask_conv": True}


@keras.saving.register_keras_serializable(package="tfeff")
class MixedAttention(SelfAttention):
    """Attention heads and convolution heads side by side, in a bottleneck (ConvBERT).

    Of the `N` heads of a usual attention, `N / γ` heads of unchanged size `D / N`
    attend, and as many convolve. With `A = D / γ`:

        q, k, v = X W^Q + b^Q, X W^K + b^K, X W^V + b^V        [T, A]
        Y = [attention(q, k, v) | convolution(q, X)] W^O + b^O

    The convolution shares the query, and has its own values and no gate:

    | `convolution` | |
    |---|---|
    | `"span_dynamic"` | kernels as in `SpanDynamicConv1D`: ConvBERT |
    | `"dynamic"` | kernels from the query alone |
    | `"lightweight"` | one learnt kernel a head, the same at all positions |
    | `"separable"` | a conventional depthwise-separable convolution of `X` |
    | `"none"` | attention heads only: the bottleneck alone |

    Args:
        num_heads: integer `N`, heads before the bottleneck; divides the hidden size.
        head_ratio: integer `γ`, which divides `num_heads`. A single head is not
            reduced.
        kernel_size: odd integer `K`, taps of a kernel; it must be left out, as must
            `mask_conv`, where there is no convolution.
        convolution: one of the table above.
        mask_conv: whether padding counts as 0 in the convolutions. If not, it leaks
            into its neighbours, as the published checkpoints require.
        query_block_size: integer, `None` or `"auto"`: the number of queries whose
            scores exist at a time (`tfeff.layers.scored_attention`).
        dropout: float in [0, 1), dropout rate of the normalised scores. The
            convolution heads have none.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        disabled_heads: indices of heads that are switched off, those of attention
            first, then those of convolution: their outputs are 0.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        training: whether dropout is active.
        return_attention_scores: whether to return `(output, scores)`, scores of the
            attention heads `[B, N / γ, T, T]`, instead of the output `[B, T, D]`
            alone.

    Raises:
        ValueError: if `head_ratio` leaves no head or does not divide `num_heads`,
            `kernel_size` is even, `convolution` is unknown, or is `"none"` beside
            other arguments of convolutions, or `num_heads` does not
            divide the hidden size.
        TypeError: if `padding_mask` is neither bool nor integer.

    Example:

    >>> hidden = keras.random.normal((2, 7, 8))
    >>> tuple(MixedAttention(num_heads=4, kernel_size=3)(hidden).shape)
    (2, 7, 8)

    Reference:
        Jiang et al., "ConvBERT", section 3.3, equation 6 and Figure 4; Table 2 for
        the other convolutions.
    """

    any_mask = False
    computes_few_queries = False
    can_pool = Ability("project", "relative_terms")
    has_comparable_scores = False  # The convolution heads have none.

    def __init__(
        self,
        num_heads: int,
        head_ratio: int = 2,
        kernel_size: int = 9,
        convolution: str = "span_dynamic",
        mask_conv: bool = True,
        **kwargs: Any,
    ):
        super().__init__(num_heads, **kwargs)
        self.head_ratio = check_integer("head_ratio", head_ratio)
        self.kernel_size = check_kernel_size(kernel_size)
        self.convolution_type = check_choice("convolution", convolution, CONVOLUTIONS)
        self.mask_conv = check_bool("mask_conv", mask_conv)
        for name, default in _OPTIONS.items():
            value = getattr(self, name)
            if convolution == "none" and value != default:
                raise ValueError(
                    f"`{name}` must be left out where there is no convolution. "
                    f"Received: {name}={value}, convolution={convolution!r}"
                )
        self.reads_padding = not self.mask_conv
        # The heads of the bottleneck; a single head is not reduced.
        self.reduced_heads = max(1, num_heads // head_ratio)
        if num_heads > 1 and num_heads % head_ratio:
            expected = (
                "leave at least one of `num_heads`"
                if head_ratio > num_heads
                else "divide `num_heads`"
            )
            raise ValueError(
                f"`head_ratio` must {expected}. "
                f"Received: head_ratio={head_ratio}, num_heads={num_heads}"
            )
        if type(self).output_heads is MixedAttention.output_heads:
            check_disabled_heads(self.disabled_heads, self.output_heads)

    @property
    def output_heads(self) -> int:
        """Heads of attention, then as many of convolution."""
        kinds = 1 if self.convolution_type == "none" else 2
        return self.reduced_heads * kinds

    def build(self, hidden_shape: Shape) -> None:
        self.input_dim = check_hidden("hidden", hidden_shape)
        hidden_dim = hidden_shape[-1]
        check_divides("num_heads", self.num_heads, hidden_dim)
        check_disabled_heads(self.disabled_heads, self.output_heads)
        value_dim = hidden_dim // self.num_heads * self.reduced_heads
        self.context_dim = hidden_dim // self.num_heads * self.output_heads
        for name in ("query", "key", "value"):
            self.add_dense(name, hidden_dim, value_dim)
        self.add_dense("output", self.context_dim, hidden_dim)
        self.dropout_layer = self.make_dropout()
        if self.convolution_type == "separable":
            self.convolution = self.make_separable(
                "convolution", hidden_dim, value_dim, self.kernel_size
            )
        elif self.convolution_type != "none":
            self.convolution = _CONVOLUTIONS[self.convolution_type](
                self.reduced_heads,
                self.kernel_size,
                self.mask_conv,
                kernel_initializer=own_initializer(self.kernel_initializer),
                bias_initializer=own_initializer(self.bias_initializer),
                dtype=self.dtype_policy,
                name="convolution",
            )
            with keras.name_scope("convolution", caller=self.convolution):
                self.convolution.build_heads(hidden_dim, value_dim)
            self.convolution.built = True

    def project(self, inputs: AttentionInputs) -> tuple[Queries, Keys]:
        # `inputs.query` is projected already: the convolution uses it, too.
        query = functional.split_heads(inputs.query, self.reduced_heads)
        key = project_to_heads(self.key_dense, inputs.hidden, self.reduced_heads)
        value = project_to_heads(self.value_dense, inputs.hidden, self.reduced_heads)
        return Queries(ops.swapaxes(query, 1, 2)), Keys(key, value)

    def attend(
        self, inputs: AttentionInputs, return_scores: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        self.check_can(inputs)
        return self.attend_sequence(inputs, return_scores)

    def attend_sequence(
        self, inputs: AttentionInputs, return_scores: bool
    ) -> tuple[Tensor, Tensor | None]:
        query = self.query_dense(inputs.query)
        context, scores = self.attend_heads(inputs._replace(query=query), return_scores)
        context = functional.merge_heads(ops.swapaxes(context, 1, 2))
        if not inputs.positional:
            # Convolutions need positions: without them, their context is 0.
            missing = self.context_dim - context.shape[-1]
            context = ops.pad(context, ((0, 0), (0, 0), (0, missing)))
        elif self.convolution_type != "none":
            convolved = self._convolution_heads(
                query, inputs.hidden, inputs.visible, inputs.training
            )
            convolved = functional.merge_heads(convolved)
            context = ops.concatenate([context, convolved], axis=-1)
        context = self.mask_heads(context, inputs.head_mask)
        return self.project_output(context), scores

    def _convolution_heads(self, query, hidden, visible, training):
        if not self.mask_conv:
            visible = None
        if self.convolution_type != "separable":
            return self.convolution.convolve_heads(query, hidden, visible, training)[0]
        context = self.convolution(zeros_outside(hidden, visible))
        return functional.split_heads(context, self.reduced_heads)

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            head_ratio=self.head_ratio,
            kernel_size=self.kernel_size,
            convolution=self.convolution_type,
            mask_conv=self.mask_conv,
        )
        return config
