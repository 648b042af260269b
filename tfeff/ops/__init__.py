"""The mathematics of tfeff: pure functions of tensors, without weights.

They are written in `keras.ops` and run on every Keras backend.
"""

from tfeff.ops.activations import activated_product, gelu, gelu_tanh
from tfeff.ops.attention import (
    apply_keep_mask,
    dot_product_scores,
    merge_heads,
    one_head_scores,
    part_values,
    softmax_values,
    split_heads,
    weighted_values,
)
from tfeff.ops.blockwise import (
    dense_scores,
    from_blocks,
    head_permutations,
    key_blocks,
    query_blocks,
)
from tfeff.ops.convolution import banded_scores, dynamic_convolution
from tfeff.ops.dropout import keep_mask, keep_mask_from_bits, row_bits
from tfeff.ops.gathering import gather_positions
from tfeff.ops.masking import l2_normalized_sigmoid, masked_softmax
from tfeff.ops.partition import (
    bucket_functions,
    partition_functions,
    partition_mask,
    partition_reach,
)
from tfeff.ops.permutation import permutation_masks
from tfeff.ops.relative import (
    bias_scores,
    gated_scores,
    pairwise_scores,
    scaled_scores,
    segment_scores,
    shaw_scores,
    toeplitz_rows,
    xlnet_scores,
    xlnet_scores_at,
)
from tfeff.ops.relative_terms import (
    key_products,
    relative_products,
    relative_values,
)
from tfeff.ops.shifting import (
    relative_positions,
    relative_shift,
    relative_unshift,
    toeplitz,
)
from tfeff.ops.sinusoid import sinusoids
from tfeff.ops.slicing import slice_axis
from tfeff.ops.sparse import fixed_pattern
from tfeff.ops.t5_buckets import t5_boundaries, t5_buckets

__all__ = [
    "activated_product",
    "apply_keep_mask",
    "banded_scores",
    "bias_scores",
    "bucket_functions",
    "dense_scores",
    "dot_product_scores",
    "dynamic_convolution",
    "fixed_pattern",
    "from_blocks",
    "gated_scores",
    "gather_positions",
    "gelu",
    "gelu_tanh",
    "head_permutations",
    "keep_mask",
    "keep_mask_from_bits",
    "key_blocks",
    "key_products",
    "l2_normalized_sigmoid",
    "masked_softmax",
    "merge_heads",
    "one_head_scores",
    "pairwise_scores",
    "part_values",
    "partition_functions",
    "partition_mask",
    "partition_reach",
    "permutation_masks",
    "query_blocks",
    "relative_positions",
    "relative_products",
    "relative_shift",
    "relative_unshift",
    "relative_values",
    "row_bits",
    "scaled_scores",
    "segment_scores",
    "shaw_scores",
    "sinusoids",
    "slice_axis",
    "softmax_values",
    "split_heads",
    "t5_boundaries",
    "t5_buckets",
    "toeplitz",
    "toeplitz_rows",
    "weighted_values",
    "xlnet_scores",
    "xlnet_scores_at",
]
