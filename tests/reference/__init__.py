"""Literal NumPy float64 versions of the papers' equations.

They are written from the papers alone, one function an equation, with loops over
positions and heads, and know nothing of `tfeff`. A layer's weights come as a
mapping from names such as "query/kernel" to arrays. Functions take one sequence:
`hidden` [T, D] and `visible` [T] (True = real token); `batched` adds the batch.
"""

from tests.reference.attention import (
    batched,
    grouped_linear,
    one_head_attention,
    one_head_pooling,
    partitioned_attention,
    self_attention,
    softmax_pooling,
)
from tests.reference.blockwise import (
    block_pairs,
    blockwise_attention,
    permuted_pairs,
    sparse_attention,
    sparse_pairs,
)
from tests.reference.convolution import (
    convolution_layer,
    mixed_attention,
)
from tests.reference.encoder import (
    embedding,
    encoder_block,
    feed_forward,
    gelu,
    layerwise_pooling,
    mean_pooling,
    part_of,
    segment_pooling,
)
from tests.reference.pairwise import all_pairs, pair_attention
from tests.reference.partition import (
    bucket_function,
    partition_function,
    partition_mask,
    tent,
    tent_mask,
)
from tests.reference.relative import (
    relative_attention,
    relative_embedding,
    relative_pair_attention,
    t5_bucket,
)
from tests.reference.two_stream import one_head_pairs, two_stream_blocks

__all__ = [
    "all_pairs",
    "batched",
    "block_pairs",
    "blockwise_attention",
    "bucket_function",
    "convolution_layer",
    "embedding",
    "encoder_block",
    "feed_forward",
    "gelu",
    "grouped_linear",
    "layerwise_pooling",
    "mean_pooling",
    "segment_pooling",
    "mixed_attention",
    "one_head_attention",
    "one_head_pairs",
    "one_head_pooling",
    "pair_attention",
    "part_of",
    "partition_function",
    "partition_mask",
    "partitioned_attention",
    "permuted_pairs",
    "relative_attention",
    "relative_embedding",
    "relative_pair_attention",
    "self_attention",
    "softmax_pooling",
    "sparse_attention",
    "sparse_pairs",
    "t5_bucket",
    "tent",
    "tent_mask",
    "two_stream_blocks",
]
