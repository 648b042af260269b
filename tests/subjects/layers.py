"""All layers of `tfeff.layers`, each with inputs of its call."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import keras
import numpy as np

from tests.subjects.attentions import attention_classes
from tfeff import layers

BATCH, LENGTH, WIDTH = 3, 6, 8
SHAPE = BATCH, LENGTH, WIDTH


class Case(NamedTuple):
    """A layer, its first input, and the other ones of its call that it needs.

    Attributes:
        make: makes a new layer, with further arguments.
        inputs: an array, or a list of arrays.
        others: dict of arrays by argument.
    """

    make: Callable
    inputs: np.ndarray | list
    others: dict = {}


def vectors(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def integers(*shape):
    return np.random.default_rng(1).integers(0, 2, shape).astype("int32")


def make_block(**options):
    return layers.EncoderBlock(
        layers.SelfAttention(2), layers.FeedForward(12), **options
    )


def make_relative_block(**options):
    """One whose attention reads segments."""
    attention = layers.RelativeAttention(2, "xlnet", relative_segments=True)
    return layers.EncoderBlock(attention, layers.FeedForward(12), **options)


# What an attention needs beside its number of heads or parts.
NEEDED = {
    layers.BlockwiseAttention: dict(head_blocks="1:1"),
    layers.RelativeAttention: dict(method="shaw"),
    layers.SparseAttention: dict(stride=2, expressivity=1),
}
HIDDEN, IDS = vectors(*SHAPE), integers(BATCH, LENGTH)
CASES = {
    **{
        kind.__name__: Case(partial(kind, 2, **NEEDED.get(kind, {})), HIDDEN)
        for kind in attention_classes()
    },
    "Dropout": Case(partial(layers.Dropout, 0.5), HIDDEN),
    "EncoderBlock": Case(make_block, HIDDEN),
    "EncoderEmbedding": Case(partial(layers.EncoderEmbedding, 9, WIDTH), IDS),
    "FeedForward": Case(partial(layers.FeedForward, 12), HIDDEN),
    "GroupedDense": Case(partial(layers.GroupedDense, 6, num_groups=2), HIDDEN),
    "LayerwisePooling": Case(
        lambda **options: layers.LayerwisePooling([make_block()], **options),
        [HIDDEN, vectors(*SHAPE)],
    ),
    "MeanPooling": Case(layers.MeanPooling, HIDDEN),
    "PartitionOfUnityMask": Case(partial(layers.PartitionOfUnityMask, 4), HIDDEN),
    "RelativeEmbedding": Case(partial(layers.RelativeEmbedding, 3, (5,)), IDS),
    "SegmentPooling": Case(layers.SegmentPooling, HIDDEN, {"segment_ids": IDS}),
    "TwoStreamBlocks": Case(
        lambda **options: layers.TwoStreamBlocks([make_block()], **options),
        HIDDEN,
        {"ranks": IDS, "target_positions": integers(BATCH, 2)},
    ),
}


def symbolic(array):
    """A symbolic tensor like the array, for batches of any size."""
    return keras.Input(array.shape[1:], dtype=str(array.dtype))


def layer_classes() -> set[str]:
    """The names of all public layers."""
    public = ((name, getattr(layers, name)) for name in layers.__all__)
    return {
        name
        for name, x in public
        if inspect.isclass(x) and issubclass(x, keras.layers.Layer)
    }
