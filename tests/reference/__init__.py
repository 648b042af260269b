"""Literal NumPy float64 versions of the Shatter paper's equations.

They are written from the paper alone, one function an equation, with loops over
positions and heads, and know nothing of `tfeff`. A layer's weights come as a
mapping from names such as "query/kernel" to arrays. Functions take one sequence:
`hidden` [T, D] and `visible` [T] (True = real token); `batched` adds the batch.
"""

from tests.reference.attention import (
    batched,
    one_head_attention,
    one_head_pooling,
    partitioned_attention,
    self_attention,
    softmax_pooling,
)
from tests.reference.encoder import (
    embedding,
    encoder_block,
    feed_forward,
    gelu,
    layerwise_pooling,
    part_of,
)
from tests.reference.partition import (
    bucket_function,
    partition_function,
    partition_mask,
)

__all__ = [
    "batched",
    "bucket_function",
    "embedding",
    "encoder_block",
    "feed_forward",
    "gelu",
    "layerwise_pooling",
    "one_head_attention",
    "one_head_pooling",
    "part_of",
    "partition_function",
    "partition_mask",
    "partitioned_attention",
    "self_attention",
    "softmax_pooling",
]
