"""Fast versions of the equations in `tfeff.ops`, with custom gradients.

A function with the name of one of `tfeff.ops` equals that one, values and gradients
(`tests/ops`); its docstring says how it computes them. The docstrings of the others say
what they equal: `window_values` and those whose names begin with `near_far` an equation
of `tfeff.ops` in another layout of keys, `over_query_blocks` the function that it gets.
`tfeff.ops.kernels.fused` has the kernels of single backends.
"""

from tfeff.ops.kernels.activations import activated_product, gelu, gelu_tanh
from tfeff.ops.kernels.gated_scores import gated_scores
from tfeff.ops.kernels.near_far import near_far_one_head_scores
from tfeff.ops.kernels.normalizers import l2_normalized_sigmoid, masked_softmax
from tfeff.ops.kernels.part_values import near_far_part_values, part_values
from tfeff.ops.kernels.query_blocks import over_query_blocks
from tfeff.ops.kernels.relative_products import (
    key_products,
    relative_products,
    relative_values,
)
from tfeff.ops.kernels.relative_scores import (
    bias_scores,
    pairwise_scores,
    scaled_scores,
    shaw_scores,
    toeplitz_rows,
    xlnet_scores,
)
from tfeff.ops.kernels.softmax_values import softmax_values
from tfeff.ops.kernels.window_values import window_values

__all__ = [
    "activated_product",
    "bias_scores",
    "gated_scores",
    "gelu",
    "gelu_tanh",
    "key_products",
    "l2_normalized_sigmoid",
    "masked_softmax",
    "near_far_one_head_scores",
    "near_far_part_values",
    "over_query_blocks",
    "pairwise_scores",
    "part_values",
    "relative_products",
    "relative_values",
    "scaled_scores",
    "shaw_scores",
    "softmax_values",
    "toeplitz_rows",
    "window_values",
    "xlnet_scores",
]
