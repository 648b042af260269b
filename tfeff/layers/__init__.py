"""Keras layers of tfeff. They need Keras alone and run on any of its backends."""

from tfeff.layers.blockwise_attention import BlockwiseAttention
from tfeff.layers.dropout import Dropout
from tfeff.layers.dynamic_conv import DynamicConv1D
from tfeff.layers.encoder_block import EncoderBlock
from tfeff.layers.encoder_embedding import EncoderEmbedding
from tfeff.layers.feedforward import FeedForward
from tfeff.layers.grouped_dense import GroupedDense
from tfeff.layers.head_masks import masked_heads
from tfeff.layers.layerwise_pooling import LayerwisePooling
from tfeff.layers.lightweight_conv import LightweightConv1D
from tfeff.layers.mean_pooling import MeanPooling
from tfeff.layers.mixed_attention import MixedAttention
from tfeff.layers.one_head_attention import OneHeadAttention
from tfeff.layers.partition_of_unity_mask import PartitionOfUnityMask
from tfeff.layers.partition_registry import partitions, register_partition
from tfeff.layers.partitioned_attention import PartitionedAttention
from tfeff.layers.record_layers import record_layers
from tfeff.layers.relative_attention import RelativeAttention
from tfeff.layers.relative_embedding import RelativeEmbedding
from tfeff.layers.segment_pooling import SegmentPooling
from tfeff.layers.self_attention import SelfAttention
from tfeff.layers.span_dynamic_conv import SpanDynamicConv1D
from tfeff.layers.sparse_attention import SparseAttention
from tfeff.layers.two_stream_blocks import TwoStreamBlocks

__all__ = [
    "BlockwiseAttention",
    "Dropout",
    "DynamicConv1D",
    "EncoderBlock",
    "EncoderEmbedding",
    "FeedForward",
    "GroupedDense",
    "LayerwisePooling",
    "LightweightConv1D",
    "MeanPooling",
    "MixedAttention",
    "OneHeadAttention",
    "PartitionOfUnityMask",
    "PartitionedAttention",
    "RelativeAttention",
    "RelativeEmbedding",
    "SegmentPooling",
    "SelfAttention",
    "SpanDynamicConv1D",
    "SparseAttention",
    "TwoStreamBlocks",
    "masked_heads",
    "partitions",
    "record_layers",
    "register_partition",
]
