"""The mathematics of tfeff: pure functions of `keras.ops`, with no weights.

They run on every Keras backend and take and return backend tensors.
"""

from tfeff.ops.activations import gelu
from tfeff.ops.attention import (
    merge_heads,
    one_head_attention,
    softmax_attention,
    split_heads,
)
from tfeff.ops.masking import l2_normalized_sigmoid, masked_softmax
from tfeff.ops.partition import (
    bucket_functions,
    partition_functions,
    partition_mask,
    t5_boundaries,
)

__all__ = [
    "bucket_functions",
    "gelu",
    "l2_normalized_sigmoid",
    "masked_softmax",
    "merge_heads",
    "one_head_attention",
    "partition_functions",
    "partition_mask",
    "softmax_attention",
    "split_heads",
    "t5_boundaries",
]
