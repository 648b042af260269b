"""A recomputed block begins nothing of the sequence's size before its input is there.

TensorFlow's executor begins what is ready. What depends on weights and shapes alone
would be formed for all layers at the start of a step, and held until its turn.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tfeff import layers

T, D = 64, 8  # No weight has a dimension of T.
METHODS = ("shaw", "rpe", "bias", "huang1", "huang2", "huang3", "huang4")
BLOCKS = {"query_block_size": 16}
ATTENTIONS = {
    "self": functools.partial(layers.SelfAttention, 2, **BLOCKS),
    "partitioned": functools.partial(layers.PartitionedAttention, 4, 1, 3, **BLOCKS),
    "Shatter": functools.partial(layers.OneHeadAttention, 4, **BLOCKS),
    **{
        method: functools.partial(layers.RelativeAttention, 2, method, 20, **BLOCKS)
        for method in METHODS
    },
    "xlnet": functools.partial(layers.RelativeAttention, 2, "xlnet", **BLOCKS),
    "sparse": functools.partial(layers.SparseAttention, 2, 16, 1, **BLOCKS),
    "mixed": functools.partial(layers.MixedAttention, 4, kernel_size=3),
    "blockwise": functools.partial(layers.BlockwiseAttention, 4, "3:1"),
}


@pytest.mark.quick("Shatter", "huang4")
@pytest.mark.parametrize("name", ATTENTIONS)
def test_nothing_is_formed_early(name):
    block = layers.EncoderBlock(
        ATTENTIONS[name](), layers.FeedForward(16), memory_efficient="block"
    )
    block.build((None, T, D))

    @tf.function
    def step(hidden, upstream):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            output = block(hidden, training=True)
        variables = [v.value for v in block.trainable_variables]
        return tape.gradient(output, [hidden, *variables], upstream)

    spec = tf.TensorSpec((2, T, D), tf.float32)
    graph = step.get_concrete_function(spec, spec).graph
    waits = {}
    for node in graph.get_operations():
        is_given = node.type == "Placeholder" and node.outputs[0].dtype != tf.resource
        before = [x.op for x in node.inputs] + list(node.control_inputs)
        waits[node.name] = is_given or any(waits.get(x.name) for x in before)
    early = [
        (node.type, node.name, tuple(x.shape))
        for node in graph.get_operations()
        for x in node.outputs
        if not waits[node.name]
        and x.consumers()
        and x.shape.rank
        and max(filter(None, x.shape), default=0) >= T
    ]
    assert not early
    assert np.mean([waits[x.name] for x in graph.get_operations()]) > 0.3
