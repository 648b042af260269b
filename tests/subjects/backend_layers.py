"""Attentions whose values and gradients are the same on every backend.

    KERAS_BACKEND=torch python -m tests.subjects.backend_layers FILE

writes those of the backend.
"""

import sys

import keras
import numpy as np

from tfeff.layers import (
    BlockwiseAttention,
    DynamicConv1D,
    EncoderBlock,
    FeedForward,
    LightweightConv1D,
    MixedAttention,
    OneHeadAttention,
    PartitionedAttention,
    RelativeAttention,
    SelfAttention,
    SparseAttention,
)
from tfeff.ops.kernels.backends import pull_back

ATTENTIONS = {
    "self": lambda **blocks: SelfAttention(4, **blocks),
    "one_head": lambda **blocks: OneHeadAttention(4, **blocks),
    "one_head softmax": lambda **blocks: OneHeadAttention(
        4, "softmax", key_projection=True, values_by_part=False, **blocks
    ),
    "partitioned": lambda **blocks: PartitionedAttention(4, **blocks),
    **{
        method: lambda method=method, **blocks: RelativeAttention(4, method, **blocks)
        for method in ("bias", "xlnet")
    },
    **{
        method: lambda method=method, **blocks: RelativeAttention(
            4, method, max_distance=3, **blocks
        )
        for method in ("shaw", "rpe", "huang1", "huang2", "huang3", "huang4")
    },
    "blockwise": lambda **blocks: BlockwiseAttention(4, "2:1:1", **blocks),
    "sparse": lambda **blocks: SparseAttention(4, stride=3, expressivity=1, **blocks),
    **{
        kind: lambda kind=kind, **blocks: MixedAttention(4, 2, 3, kind, **blocks)
        for kind in ("span_dynamic", "dynamic", "lightweight", "separable")
    },
    "none": lambda **blocks: MixedAttention(4, convolution="none", **blocks),
    "lightweight_conv": lambda: LightweightConv1D(4, 3),
    "dynamic_conv": lambda: DynamicConv1D(4, 3),
}
WITHOUT_BLOCKS = ("lightweight_conv", "dynamic_conv")


def numbers() -> dict[str, np.ndarray]:
    """Outputs of blocks, and the gradients of their inputs, by the attention's name."""
    rng = np.random.default_rng(0)
    hidden, upstream = rng.normal(size=(2, 2, 7, 8)).astype("float32")
    hidden, upstream = map(keras.ops.convert_to_tensor, (hidden, upstream))
    mask = keras.ops.convert_to_tensor(np.arange(7) < np.array([[7], [4]]))
    results = {}
    for name, make in ATTENTIONS.items():
        sizes = ({},) if name in WITHOUT_BLOCKS else ({}, {"query_block_size": 3})
        for options in sizes:
            block = EncoderBlock(make(**options), FeedForward(12, num_groups=2))
            block.build((None, None, 8))
            own = np.random.default_rng(len(name))
            block.set_weights([own.normal(size=w.shape) for w in block.weights])

            def run(hidden, block=block):
                return block(hidden, padding_mask=mask)

            (gradient,) = pull_back(run, [hidden], upstream)
            for what, x in (("value", run(hidden)), ("gradient", gradient)):
                x = keras.ops.convert_to_numpy(x)
                results[f"{name} {options} {what}"] = x
    return results


if __name__ == "__main__":
    np.savez(sys.argv[1], **numbers())
